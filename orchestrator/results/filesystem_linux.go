package results

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystem names what a directory lies on. local is true only where two
// machines cannot have it mounted at once: there a lock that is free proves that
// its holder is gone.
func fileSystem(dir string) (name string, local bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "an unknown file system", false
	}
	switch magic := uint32(s.Type); magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext2/3/4", true
	case unix.XFS_SUPER_MAGIC:
		return "xfs", true
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", true
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return "tmpfs", true
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", true
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs", true
	case unix.MSDOS_SUPER_MAGIC:
		return "vfat", true
	case 0x2fc12fc1:
		return "zfs", true
	case 0xca451a4e:
		return "bcachefs", true
	case unix.NFS_SUPER_MAGIC:
		return "nfs", false
	case unix.FUSE_SUPER_MAGIC:
		return "fuse", false
	case unix.V9FS_MAGIC:
		return "9p", false
	case 0xff534d42, 0xfe534d42, unix.SMB_SUPER_MAGIC:
		return "smb", false
	case 0x00c36400:
		return "ceph", false
	default:
		return fmt.Sprintf("a file system of type %#x", magic), false
	}
}
