package boot

import "net"

// Folders are where the kernel's files go on the target: the first that is there,
// or has room. Without any the method puts nothing there.
func (g *Grub) Folders() []string {
	if g.Into != "" {
		return []string{g.Into}
	}
	return []string{"/boot"}
}

// Folders are where the kernel's files go on the target.
func (x *Extlinux) Folders() []string {
	if x.Dir != "" {
		return []string{x.Dir}
	}
	return []string{"/boot", "/extlinux", "/syslinux"}
}

// Folders are where the kernel's files go on the target.
func (s *SDBoot) Folders() []string {
	if s.Dir != "" {
		return []string{s.Dir}
	}
	return []string{"/efi", "/boot", "/boot/efi"}
}

// Folders are where the kernel's files go on the target until they are loaded.
func (x *Kexec) Folders() []string { return x.places() }

// Folders are where the image goes on the target.
func (s *Sysupgrade) Folders() []string {
	if s.Dir != "" {
		return []string{s.Dir}
	}
	return []string{"/tmp"}
}

// Folders are where the kernel's files go on the target, if there.
func (u *UBootEnv) Folders() []string {
	if u.Dir != "" {
		return []string{u.Dir}
	}
	return nil
}

// Listens is where kernsweep's own TFTP server will be, "" for another server.
func (n *Netload) Listens() string {
	switch {
	case n.TFTP == "" || n.Root != "":
		return ""
	case n.Listen != "":
		return n.Listen
	}
	return net.JoinHostPort(n.TFTP, "69")
}
