package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/proxydhcp"
)

// PXE starts a machine whose firmware boots over the network first. It writes
// the file that the network's loader reads for this one machine, or names a
// loader itself beside the network's DHCP server, and makes the machine restart.
// Once the kernel was fetched the machine is sent to its own disk again.
type PXE struct {
	Netload
	MAC       string   `hcl:"mac" doc:"Ethernet address of the port that the machine boots from, in any spelling"`
	Style     []string `hcl:"style,optional" doc:"loaders to write files for: \"pxelinux\", \"grub\", \"ipxe\" (default: all three)"`
	GrubDir   string   `hcl:"grub_dir,optional" doc:"folder of GRUB's grub.cfg on the TFTP server (default \"grub\")"`
	Proxy     bool     `hcl:"proxy,optional" doc:"answer this machine's PXE requests beside the network's DHCP server"`
	Interface string   `hcl:"interface,optional" doc:"interface of the network that the machine boots from, for proxy (default: the one that has the address tftp)"`
	BIOS      string   `hcl:"bios,optional,path" doc:"loader for BIOS firmware (default: Debian's pxelinux.0 or undionly.kpxe, whichever style and the system have)"`
	EFI       string   `hcl:"efi,optional,path" doc:"loader for 64-bit EFI firmware (default: Debian's ipxe.efi, grubnetx64.efi or syslinux.efi)"`
	ARM64     string   `hcl:"arm64,optional,path" doc:"loader for ARM64 EFI firmware (default: Debian's ipxe-arm64.efi or grubnetaa64.efi)"`

	mac     net.HardwareAddr
	files   *pxeFiles
	configs *targets.Serving // of the per-machine files and the loaders; nil: another server has them
	names   []string         // of kernel and initrd
	proxy   *proxydhcp.Server
	close   []func() error // what to undo, newest last
}

// Check refuses what cannot work; it touches nothing.
func (p *PXE) Check() error {
	n := p.Netload
	if n.TFTP == "" && n.Root != "" && !p.Proxy {
		n.TFTP = "another server" // the network's DHCP server names it
	}
	if err := n.checkServer(); err != nil {
		return err
	}
	if _, err := parseMAC(p.MAC); err != nil {
		return err
	}
	for _, s := range p.Style {
		if !slices.Contains(pxeStyles(), s) {
			return fmt.Errorf("style = %q: want \"pxelinux\", \"grub\" or \"ipxe\"", s)
		}
	}
	if !p.Proxy {
		if p.Interface != "" {
			return errors.New("interface is for proxy = true")
		}
		return nil
	}
	if a, err := netip.ParseAddr(p.TFTP); err != nil || !a.Is4() {
		return fmt.Errorf("tftp = %q: a proxy DHCP names the TFTP server by its IPv4 address", p.TFTP)
	}
	return nil
}

// Traits: with another server's files nobody tells when they were read, so a
// machine that restarts by itself starts the same kernel until the next boot or
// the end of the lane.
func (p *PXE) Traits() targets.BootTraits {
	return targets.BootTraits{Cmdline: true, Image: true, Returns: p.Root == ""}
}

// Owns names the machine's network port.
func (p *PXE) Owns() []string {
	mac, err := parseMAC(p.MAC)
	if err != nil {
		return nil
	}
	return []string{"MAC " + mac.String()}
}

// Boot makes the files ready and restarts the machine, over SSH or by its supply.
func (p *PXE) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	if err := p.Close(); err != nil {
		return err
	}
	p.configs, p.proxy = nil, nil
	err := p.prepare(ctx, t, k)
	if err == nil {
		_, err = targets.Restart(ctx, t)
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	return nil
}

func (p *PXE) prepare(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	var err error
	if p.mac, err = parseMAC(p.MAC); err != nil {
		return err
	}
	if p.Proxy {
		if err := p.anyLoader(); err != nil {
			return err
		}
	}
	f, err := p.publish(ctx, t, k)
	if err != nil {
		return err
	}
	p.close = append(p.close, p.Netload.Close)
	p.names = []string{f.Kernel}
	if f.Initrd != "" {
		p.names = append(p.names, f.Initrd)
	}
	if err := p.writeFiles(f, k); err != nil {
		return err
	}
	if p.Root == "" {
		if err := p.serveFiles(ctx, t); err != nil {
			return err
		}
	}
	if p.Proxy {
		return p.startProxy()
	}
	return nil
}

// writeFiles arms the per-machine files.
func (p *PXE) writeFiles(f netFiles, k targets.Kernel) error {
	p.files = &pxeFiles{dir: p.Root, local: map[string]string{}}
	if p.Root == "" {
		dir, err := os.MkdirTemp("", "kernsweep-pxe-")
		if err != nil {
			return err
		}
		p.files.dir = dir
		p.close = append(p.close, func() error { return os.RemoveAll(dir) })
	}
	kernel := map[string]string{}
	for _, s := range p.styles() {
		name := p.configName(s, p.mac)
		text, err := kernelConfig(s, f, k)
		if err != nil {
			return err
		}
		kernel[name], p.files.local[name] = text, localConfig(s)
	}
	if err := p.files.arm(kernel, p.Root != ""); err != nil {
		return err
	}
	p.close = append(p.close, p.files.disarm)
	return nil
}

// serveFiles offers them and the loaders, and disarms them once the machine has
// what it needs.
func (p *PXE) serveFiles(ctx context.Context, t *targets.Target) error {
	offered := p.loaderFiles()
	for name := range p.files.local {
		offered[name] = filepath.Join(p.files.dir, name)
	}
	var err error
	if p.configs, err = p.offer(ctx, t, offered); err != nil {
		return err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	kernel, files := p.served, p.files
	go func() {
		defer close(done)
		for !p.fetched() {
			select {
			case <-kernel.Changed:
			case <-stop:
				return
			}
		}
		_ = files.disarm() // again by Close, which says what is wrong
	}()
	p.close = append(p.close, func() error {
		close(stop)
		<-done
		p.configs.Release()
		return nil
	})
	return nil
}

// fetched says that the machine has kernel and initrd. Another machine may fetch
// the same kernel; ours is the one that read its own file.
func (p *PXE) fetched() bool {
	if p.configs == nil {
		return false
	}
	for _, t := range p.configs.Transfers() {
		if _, ours := p.files.local[t.Name]; ours && t.Done && p.served.Fetched(t.Client.Addr(), p.names...) {
			return true
		}
	}
	return false
}

func (p *PXE) startProxy() error {
	addr, err := netip.ParseAddr(p.TFTP)
	if err != nil {
		return err
	}
	link := p.Interface
	if link == "" {
		if link, err = linkOf(addr); err != nil {
			return err
		}
	}
	p.proxy, err = proxydhcp.Start(proxydhcp.Config{Interface: link, MAC: p.mac, TFTP: addr, File: p.loader,
		Wanted: func() bool { return !p.fetched() }, Log: zap.NewNop()})
	if err != nil {
		return err
	}
	p.close = append(p.close, p.proxy.Close)
	return nil
}

// linkOf finds the interface with an address.
func linkOf(addr netip.Addr) (string, error) {
	links, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, l := range links {
		addrs, err := l.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if q, err := netip.ParsePrefix(a.String()); err == nil && q.Addr() == addr {
				return l.Name, nil
			}
		}
	}
	return "", fmt.Errorf("proxy: no interface has the address tftp = %q: set interface, or is the network down?", addr)
}

func pxeStyles() []string { return []string{stylePxelinux, styleGrub, styleIPXE} }

func (p *PXE) styles() []string {
	if len(p.Style) == 0 {
		return pxeStyles()
	}
	return p.Style
}

func (p *PXE) wants(style string) bool { return slices.Contains(p.styles(), style) }

// Notes tells what the machine asked for and got.
func (p *PXE) Notes() []string {
	var notes []string
	if p.proxy != nil {
		notes = append(notes, p.proxy.Notes()...)
	}
	if p.configs != nil {
		read := map[string]bool{}
		for _, t := range p.configs.Transfers() {
			if t.Size >= 0 && !read[t.Name] && (t.Done || t.Failed != "") {
				read[t.Name] = true
				notes = append(notes, "TFTP: "+t.String())
			}
		}
	}
	return append(notes, p.Netload.Notes()...)
}

// Close sends the machine to its own disk at its next start, and ends what was
// served. It may be called again.
func (p *PXE) Close() error {
	var errs []error
	for _, undo := range slices.Backward(p.close) {
		errs = append(errs, undo())
	}
	p.close = nil
	return errors.Join(errs...)
}
