package boot

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"kernsweep/targets"
)

// readUUID takes it from the first block of the file system, where neither udev
// nor blkid told it.
func (s *grubSystem) readUUID(ctx context.Context, conn targets.Conn) error {
	if s.uuid != "" || s.bootDisk.name == "" {
		return nil
	}
	said, err := shell(ctx, conn, `dd if="/dev/$1" bs=512 count=4 2>/dev/null | od -A n -v -t x1`, s.bootDisk.name)
	if err != nil {
		return err
	}
	block, err := hex.DecodeString(strings.Join(strings.Fields(said), ""))
	if err != nil {
		return fmt.Errorf("the first block of %s: %w", s.bootDisk.name, err)
	}
	s.uuid = uuidOf(s.bootDisk.mount.fstype, block)
	return nil
}

// uuidOf reads the UUID as GRUB's search --fs-uuid spells it: 16 bytes on ext2 to
// ext4 (s_uuid of the superblock at 1024) and XFS, a serial number on FAT. ""
// is unknown.
func uuidOf(fstype string, block []byte) string {
	at := func(off, n int) []byte {
		if len(block) < off+n {
			return nil
		}
		return block[off : off+n]
	}
	var id []byte
	switch fstype {
	case "ext2", "ext3", "ext4":
		id = at(1024+0x68, 16)
	case "xfs":
		id = at(32, 16)
	case "vfat", "msdos":
		id = at(39, 4)
		if string(at(82, 5)) == "FAT32" {
			id = at(67, 4)
		}
	}
	switch len(id) {
	case 4:
		return fmt.Sprintf("%04X-%04X", binary.LittleEndian.Uint16(id[2:]), binary.LittleEndian.Uint16(id))
	case 16:
		return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	}
	return ""
}
