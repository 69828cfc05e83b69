package boot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"kernsweep/targets"
)

// imageFacts are what a kernel image's own header says.
type imageFacts struct {
	arch   string // GOARCH; "" where the format does not tell
	pe     bool   // it is an EFI program, which can carry a signature
	signed bool   // it carries one; whose, only the firmware can tell
}

// readImage reads the header of a kernel image: an x86 bzImage (kernel
// Documentation/arch/x86/boot.rst), an Image of arm64 or RISC-V
// (Documentation/arch/arm64/booting.rst, arch/riscv/boot-image-header.rst), an
// EFI program (Microsoft's PE format), or an ELF file. Other formats give no facts.
func readImage(path string) (imageFacts, error) {
	f, err := os.Open(path)
	if err != nil {
		return imageFacts{}, err
	}
	defer f.Close()
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return imageFacts{}, err
	}
	if n == 0 {
		return imageFacts{}, fmt.Errorf("kernel image %s is empty", path)
	}
	return imageHeader(head[:n]), nil
}

func imageHeader(b []byte) imageFacts {
	facts := peHeader(b)
	at := func(off int, magic string) bool {
		return len(b) >= off+len(magic) && bytes.HasPrefix(b[off:], []byte(magic))
	}
	switch {
	case at(0x202, "HdrS") && len(b) > 0x237:
		facts.arch = "386"
		if version := binary.LittleEndian.Uint16(b[0x206:]); version >= 0x20c && b[0x236]&1 != 0 {
			facts.arch = "amd64" // XLF_KERNEL_64
		}
	case at(56, "ARM\x64"):
		facts.arch = "arm64"
	case at(56, "RSC\x05"):
		facts.arch = "riscv64"
	case at(0, "\x7fELF"):
		if p, err := targets.ProgramFromELF(b[:min(len(b), 64)], ""); err == nil {
			facts.arch = p.GOARCH
		}
	}
	return facts
}

// peHeader reads the machine and whether the certificate table, the fifth of the
// optional header's data directories, is there.
func peHeader(b []byte) imageFacts {
	le := binary.LittleEndian
	if len(b) < 0x40 || b[0] != 'M' || b[1] != 'Z' {
		return imageFacts{}
	}
	pe := int(le.Uint32(b[0x3c:]))
	if pe < 0 || pe > len(b)-24-160 || string(b[pe:pe+4]) != "PE\x00\x00" {
		return imageFacts{}
	}
	facts := imageFacts{pe: true}
	switch le.Uint16(b[pe+4:]) {
	case 0x8664:
		facts.arch = "amd64"
	case 0x14c:
		facts.arch = "386"
	case 0xaa64:
		facts.arch = "arm64"
	case 0x5064:
		facts.arch = "riscv64"
	}
	opt := b[pe+24:]
	dirs := 96
	if le.Uint16(opt) == 0x20b { // PE32+
		dirs = 112
	}
	if le.Uint32(opt[dirs-4:]) > 4 {
		facts.signed = le.Uint32(opt[dirs+4*8+4:]) != 0
	}
	return facts
}
