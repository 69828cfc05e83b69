package targets

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// Program says how programs for a machine must be built.
type Program struct {
	GOARCH    string
	GOARM     int  // of arm: 5, 6 or 7; 0 otherwise
	SoftFloat bool // MIPS programs avoid the FPU, which few routers have
}

// ProgramFromELF reads the first bytes (20 or more) of an executable of the
// machine and its `uname -m`, which alone says too little: "mips" has two byte
// orders, and a 64-bit kernel may carry 32-bit programs.
func ProgramFromELF(head []byte, machine string) (Program, error) {
	if len(head) < 20 || !bytes.HasPrefix(head, []byte("\x7fELF")) {
		return Program{}, fmt.Errorf("no ELF header (%d bytes: % x)", len(head), head[:min(len(head), 8)])
	}
	wide := head[4] == 2
	var order binary.ByteOrder = binary.LittleEndian
	if head[5] == 2 {
		order = binary.BigEndian
	}
	little := head[5] == 1
	m := order.Uint16(head[18:])
	pick := func(yes bool, a, b string) string {
		if yes {
			return a
		}
		return b
	}
	switch m {
	case 3:
		return Program{GOARCH: "386"}, nil
	case 8, 10:
		return Program{GOARCH: pick(wide, "mips64", "mips") + pick(little, "le", ""), SoftFloat: true}, nil
	case 21:
		return Program{GOARCH: pick(little, "ppc64le", "ppc64")}, nil
	case 22:
		return Program{GOARCH: "s390x"}, nil
	case 40:
		return Program{GOARCH: "arm", GOARM: goarm(machine)}, nil
	case 62:
		return Program{GOARCH: "amd64"}, nil
	case 183:
		return Program{GOARCH: "arm64"}, nil
	case 243:
		return Program{GOARCH: pick(wide, "riscv64", "riscv")}, nil
	case 258:
		return Program{GOARCH: "loong64"}, nil
	}
	return Program{}, fmt.Errorf("ELF machine %d is unknown here", m)
}

// goarm is the newest instruction set that is safe for a `uname -m`.
func goarm(machine string) int {
	switch {
	case strings.HasPrefix(machine, "armv6"):
		return 6
	case strings.HasPrefix(machine, "armv7"), strings.HasPrefix(machine, "armv8"), machine == "aarch64":
		return 7
	}
	return 5
}

// Program says how programs for the probed machine must be built.
func (ev *Evidence) Program() (Program, error) {
	head := ev.Files["elf"]
	if x := ev.Files["elf_hex"]; len(head) < 20 && x != nil {
		head, _ = hex.DecodeString(strings.Join(strings.Fields(string(x)), "")) // a bad one is no ELF header
	}
	return ProgramFromELF(head, ev.uname(4))
}

// uname returns line i of the section: s, n, r, v, m.
func (ev *Evidence) uname(i int) string {
	lines := strings.Split(strings.TrimSpace(string(ev.Files["uname"])), "\n")
	if i >= len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[i])
}
