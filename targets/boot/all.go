// Package boot holds the boot methods, one file each. A method is a struct that
// config decodes from a `boot "NAME"` block.
package boot

import "kernsweep/targets"

// All names every boot method of this folder. A new one is one file and one
// line here. Drivers that fill several slots (targets/qemu) are added by config.
func All() map[string]func() targets.Booter {
	return map[string]func() targets.Booter{
		"cfe":          func() targets.Booter { return new(CFE) },
		"command":      func() targets.Booter { return new(Command) },
		"grub":         func() targets.Booter { return new(Grub) },
		"extlinux":     func() targets.Booter { return new(Extlinux) },
		"kexec":        func() targets.Booter { return new(Kexec) },
		"none":         func() targets.Booter { return new(None) },
		"pxe":          func() targets.Booter { return new(PXE) },
		"redboot":      func() targets.Booter { return new(RedBoot) },
		"ssh-reboot":   func() targets.Booter { return new(SSHReboot) },
		"systemd-boot": func() targets.Booter { return new(SDBoot) },
		"sysupgrade":   func() targets.Booter { return new(Sysupgrade) },
		"uboot":        func() targets.Booter { return new(UBoot) },
		"uboot-env":    func() targets.Booter { return new(UBootEnv) },
	}
}
