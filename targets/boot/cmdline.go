package boot

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/targets"
)

// ownArgs marks where our arguments begin on a command line, so that the next
// boot does not hand one kernel's arguments to another. The kernel takes a word
// with a dot for a module's parameter and does not pass it to init.
const ownArgs = "kernsweep.own"

// maxCmdline is COMMAND_LINE_SIZE of x86, arm64 and RISC-V, with the final zero
// (kernel arch/*/include/uapi/asm/setup.h); kernels cut a longer line silently.
const maxCmdline = 2048

// Cmdline says what a new kernel's command line is made of. Methods that start a
// kernel from a running system embed it.
type Cmdline struct {
	Mode string `hcl:"cmdline,optional" doc:"what goes before the kernel's own arguments: \"reuse\" (default) is the running kernel's command line, without the boot loader's words and those of earlier boots by kernsweep; \"root\" only what finds the root file system and the console (root*, ro, rw, ip, nfsroot, rd.*, console, earlycon); \"own\" nothing"`
}

func (c Cmdline) check() error {
	if !slices.Contains([]string{"", "reuse", "root", "own"}, c.Mode) {
		return fmt.Errorf("cmdline = %q: want \"reuse\", \"root\" or \"own\"", c.Mode)
	}
	return nil
}

// line makes the command line for k from that of the running kernel. What
// follows a "--" is init's and stays at the end (kernel
// Documentation/admin-guide/kernel-parameters.rst).
func (c Cmdline) line(running string, k targets.Kernel) (string, error) {
	var base, init []string
	ours := false
	for i, w := range splitArgs(running) {
		name, _, _ := strings.Cut(w, "=")
		switch {
		case w == "--":
			ours = false
			init = append(init, w)
		case len(init) > 0:
			init = append(init, w)
		case w == ownArgs:
			ours = true
		case ours, i == 0 && strings.HasPrefix(w, "/"), // U-Boot and old loaders put the image's name first
			slices.Contains([]string{"BOOT_IMAGE", "initrd", "kernsweep.nonce", "kexec_jump_back_entry"}, name):
		case c.Mode == "own", c.Mode == "root" && !findsRoot(name):
		default:
			base = append(base, w)
		}
	}
	if c.Mode == "own" || len(init) < 2 {
		init = nil
	}
	words := append(base, ownArgs, k.Args())
	s := strings.Join(append(words, init...), " ")
	if len(s) >= maxCmdline {
		return "", fmt.Errorf("the command line has %d characters, and a kernel takes %d: set cmdline = \"root\", or shorten the kernel's own", len(s), maxCmdline-1)
	}
	if strings.ContainsAny(s, "\n\r\x00") || strings.Count(s, `"`)%2 != 0 {
		return "", fmt.Errorf("the command line %q holds a line break or a quote that is not closed", s)
	}
	return s, nil
}

func findsRoot(name string) bool {
	return slices.Contains([]string{"root", "rootflags", "rootfstype", "rootwait", "rootdelay", "ro", "rw", "ip", "BOOTIF",
		"nfsroot", "netroot", "boot", "console", "earlycon", "earlyprintk", "cryptdevice", "zfs", "net.ifnames", "biosdevname"}, name) ||
		strings.HasPrefix(name, "rd.")
}

// splitArgs splits a command line as the kernel does: blanks inside double
// quotes do not count, and the quotes stay.
func splitArgs(line string) []string {
	quoted := false
	return strings.FieldsFunc(strings.TrimSpace(line), func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t' || r == '\n')
	})
}
