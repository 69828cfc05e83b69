package boot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"kernsweep/targets"
)

// Styles of a per-machine file.
const (
	stylePxelinux = "pxelinux"
	styleGrub     = "grub"
	styleIPXE     = "ipxe"
)

// pxeMark is in every file of ours; one without it belongs to somebody else.
const pxeMark = "# written by kernsweep"

// parseMAC reads an Ethernet address in any spelling: aa:bb:cc:dd:ee:ff,
// AA-BB-…, aabb.ccdd.eeff, aabbccddeeff.
func parseMAC(s string) (net.HardwareAddr, error) {
	m, err := hex.DecodeString(strings.NewReplacer(":", "", "-", "", ".", "", " ", "").Replace(s))
	if err != nil || len(m) != 6 {
		return nil, fmt.Errorf("mac = %q: want an Ethernet address, such as \"52:54:00:12:34:56\"", s)
	}
	if m[0]&1 != 0 || slices.Max(m) == 0 {
		return nil, fmt.Errorf("mac = %q is no address of a single machine", s)
	}
	return m, nil
}

// configName is where a loader looks for the file of one machine, relative to
// its own folder: pxelinux and GRUB by themselves, iPXE because a script of the
// lab, or our proxy DHCP, names it.
func (p *PXE) configName(style string, mac net.HardwareAddr) string {
	dashed := strings.ReplaceAll(mac.String(), ":", "-")
	switch style {
	case stylePxelinux:
		return "pxelinux.cfg/01-" + dashed // 01 is Ethernet (RFC 1700)
	case styleGrub:
		dir := p.GrubDir
		if dir == "" {
			dir = "grub"
		}
		return path.Join(dir, "grub.cfg-01-"+dashed)
	}
	return "MAC-" + hex.EncodeToString(mac) + ".ipxe"
}

// localConfig sends the machine on to its own disk.
func localConfig(style string) string {
	switch style {
	case stylePxelinux:
		return pxeMark + "\ndefault local\nprompt 0\nlabel local\n  localboot 0\n"
	case styleGrub:
		return pxeMark + "\nexit\n"
	}
	return "#!ipxe\n" + pxeMark + "\nexit\n"
}

// kernelConfig starts k at once.
func kernelConfig(style string, f netFiles, k targets.Kernel) (string, error) {
	args := k.Args()
	if strings.ContainsAny(args, "\n\r\x00") {
		return "", fmt.Errorf("the command line %q holds a line break", args)
	}
	head := pxeMark + ": kernel " + k.Name + "\n"
	var b strings.Builder
	switch style {
	case stylePxelinux:
		fmt.Fprintf(&b, "%sdefault kernsweep\nprompt 0\nlabel kernsweep\n  kernel %s\n", head, f.Kernel)
		if f.Initrd != "" {
			fmt.Fprintf(&b, "  initrd %s\n", f.Initrd)
		}
		if f.DTB != "" {
			fmt.Fprintf(&b, "  fdt %s\n", f.DTB)
		}
		if args != "" {
			fmt.Fprintf(&b, "  append %s\n", args)
		}
	case styleGrub:
		fmt.Fprintf(&b, "%slinux /%s", head, f.Kernel)
		for _, a := range splitArgs(args) {
			b.WriteString(" '" + strings.ReplaceAll(a, "'", `'\''`) + "'")
		}
		if f.Initrd != "" {
			fmt.Fprintf(&b, "\ninitrd /%s", f.Initrd)
		}
		if f.DTB != "" {
			fmt.Fprintf(&b, "\ndevicetree /%s", f.DTB)
		}
		b.WriteString("\nboot\n")
	default:
		if err := plainForIPXE(args); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "#!ipxe\n%skernel %s", head, f.Kernel)
		if f.Initrd != "" { // its EFI stub finds the file by this word
			fmt.Fprintf(&b, " initrd=%s", f.Initrd)
		}
		if args != "" {
			b.WriteString(" " + args)
		}
		if f.Initrd != "" {
			fmt.Fprintf(&b, "\ninitrd %s", f.Initrd)
		}
		b.WriteString("\nboot\n")
	}
	return b.String(), nil
}

// plainForIPXE refuses what its shell takes for its own; it knows no escapes.
func plainForIPXE(args string) error {
	for _, w := range strings.Fields(args) {
		if strings.Contains(w, "${") || strings.HasPrefix(w, "#") || slices.Contains([]string{"&&", "||", ";"}, w) {
			return errors.New("iPXE cannot pass the argument " + w + " of the command line: leave \"ipxe\" out of style, or change the argument")
		}
	}
	return nil
}
