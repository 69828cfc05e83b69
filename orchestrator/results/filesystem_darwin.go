package results

import "golang.org/x/sys/unix"

// fileSystem names what a directory lies on. local is true only where two
// machines cannot have it mounted at once: there a lock that is free proves that
// its holder is gone.
func fileSystem(dir string) (name string, local bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "an unknown file system", false
	}
	name = unix.ByteSliceToString(s.Fstypename[:])
	switch name {
	case "apfs", "hfs", "msdos", "exfat":
		return name, true
	}
	return name, false
}
