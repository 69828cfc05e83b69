package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/insomniacslk/dhcp/iana"

	"kernsweep/targets/proxydhcp"
)

// pxeLoader is a program that firmware loads over the network.
type pxeLoader struct {
	style  string
	file   string // on the controller
	beside string // a file that it loads by its name from its own folder; "" = none
	pkg    string // Debian's packages of both
}

func (l pxeLoader) name() string { return strings.TrimSuffix(filepath.Base(l.file), ".signed") }

// loaders lists what a kind of firmware can load, the block's own first. The
// paths are those of Debian.
func (p *PXE) loaders(arch iana.Arch) (which string, all []pxeLoader) {
	own := func(file, beside string) {
		if file != "" {
			all = append(all, pxeLoader{file: file, beside: filepath.Join(filepath.Dir(file), beside)})
		}
	}
	switch arch {
	case iana.INTEL_X86PC:
		own(p.BIOS, "ldlinux.c32")
		return "BIOS", append(all,
			pxeLoader{stylePxelinux, "/usr/lib/PXELINUX/pxelinux.0", "/usr/lib/syslinux/modules/bios/ldlinux.c32", "pxelinux syslinux-common"},
			pxeLoader{styleIPXE, "/usr/lib/ipxe/undionly.kpxe", "", "ipxe"})
	case iana.EFI_X86_64, iana.EFI_BC:
		own(p.EFI, "ldlinux.e64")
		return "EFI", append(all,
			pxeLoader{styleIPXE, "/usr/lib/ipxe/ipxe.efi", "", "ipxe"},
			pxeLoader{styleGrub, "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed", "", "grub-efi-amd64-signed"},
			pxeLoader{stylePxelinux, "/usr/lib/SYSLINUX.EFI/efi64/syslinux.efi", "/usr/lib/syslinux/modules/efi64/ldlinux.e64", "syslinux-efi syslinux-common"})
	case iana.EFI_ARM64:
		own(p.ARM64, "")
		return "ARM64 EFI", append(all,
			pxeLoader{styleIPXE, "/usr/lib/ipxe/ipxe-arm64.efi", "", "ipxe"},
			pxeLoader{styleGrub, "/usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed", "", "grub-efi-arm64-signed"})
	}
	return "", nil
}

// loader chooses for a client: the script itself for iPXE, else the first
// loader of a wanted style that is installed.
func (p *PXE) loader(c proxydhcp.Client) (string, error) {
	if c.IPXE && p.wants(styleIPXE) {
		return p.configName(styleIPXE, p.mac), nil
	}
	which, all := p.loaders(c.Arch)
	if which == "" {
		return "", fmt.Errorf("firmware of the kind %s is not supported", c.Arch)
	}
	var missing []string
	for _, l := range all {
		if l.style != "" && !p.wants(l.style) {
			continue
		}
		if p.Root != "" {
			l.file = filepath.Join(p.Root, l.name())
		}
		if isFile(l.file) && (p.Root != "" || l.pkg == "" || l.beside == "" || isFile(l.beside)) {
			return l.name(), nil
		}
		missing = append(missing, l.file+ofPackage(l.pkg))
	}
	if len(missing) == 0 {
		return "", fmt.Errorf("no loader of %s firmware knows the wanted style: name more in style", which)
	}
	return "", fmt.Errorf("no loader for %s firmware is there; one of these is needed: %s", which, strings.Join(missing, ", "))
}

func isFile(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode().IsRegular()
}

func ofPackage(pkg string) string {
	if pkg == "" {
		return ""
	}
	return " (of " + pkg + ")"
}

// loaderFiles are the loaders that are installed, and what they load beside
// themselves, name -> path.
func (p *PXE) loaderFiles() map[string]string {
	files := map[string]string{}
	for _, arch := range []iana.Arch{iana.INTEL_X86PC, iana.EFI_X86_64, iana.EFI_ARM64} {
		_, all := p.loaders(arch)
		for _, l := range all {
			if l.style != "" && !p.wants(l.style) {
				continue
			}
			for name, file := range map[string]string{l.name(): l.file, filepath.Base(l.beside): l.beside} {
				if _, have := files[name]; isFile(file) && !have {
					files[name] = file
				}
			}
		}
	}
	return files
}

// anyLoader is an error when a proxy would have nothing to offer to any machine.
func (p *PXE) anyLoader() error {
	if p.wants(styleIPXE) {
		return nil // firmware that is iPXE itself needs none
	}
	var errs []string
	for _, arch := range []iana.Arch{iana.INTEL_X86PC, iana.EFI_X86_64, iana.EFI_ARM64} {
		_, err := p.loader(proxydhcp.Client{Arch: arch})
		if err == nil {
			return nil
		}
		errs = append(errs, err.Error())
	}
	return fmt.Errorf("proxy: %s", strings.Join(errs, "; "))
}
