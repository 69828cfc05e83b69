package qemu

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"kernsweep/targets"
)

// emulation is what an architecture needs of QEMU.
type emulation struct {
	program string
	pkg     string // Debian package of the program
	machine string
	cpu     string
	nic     string
	memory  int    // MiB
	cmdline string // what the machine's hardware asks of every kernel
	longest int    // bytes of a command line that the kernel does not cut
	kvm     bool   // the controller's own CPU could run it
}

// nokaslr: addresses, and with them cache and branch behaviour, stay the same
// from boot to boot; Debian's mipsel kernel also dies silently without it when
// memory is short.
const everyKernel = "console=ttyS0 panic=-1 nokaslr"

// -cx16: QEMU's emulation (7.2) can leave garbage in a guest's flags when an
// interrupt meets cmpxchg16b, which Linux's slab allocator uses where it is
// offered: Linux 6.12 died of it within a minute. Without it, Linux uses other
// instructions.

// emulated gives what GOARCH arch needs, with the block's settings over it.
func (m *Machine) emulated(arch string) (emulation, error) {
	var e emulation
	switch arch {
	case "amd64":
		e = emulation{program: "qemu-system-x86_64", pkg: "qemu-system-x86", machine: "q35", cpu: "max,-cx16",
			nic: "virtio-net-pci", memory: 256, longest: 2047, kvm: runtime.GOARCH == "amd64"}
	case "mipsle", "mips":
		e = emulation{program: "qemu-system-mipsel", pkg: "qemu-system-mips", machine: "malta", cpu: "4KEc",
			nic: "pcnet", memory: 128, longest: 255 - len("rd_start=0xffffffff87000000 rd_size=10000000 ")}
		if arch == "mips" {
			e.program = "qemu-system-mips"
		}
	case "":
		return e, errors.New("a QEMU target needs its arch in testbeds.hcl: \"amd64\", \"mipsle\" or \"mips\"")
	default:
		return e, fmt.Errorf("no QEMU machine is known for arch %q; there are amd64, mipsle and mips", arch)
	}
	e.cmdline = everyKernel
	for set, to := range map[*string]string{&e.program: m.Program, &e.machine: m.Type, &e.cpu: m.CPU, &e.nic: m.NIC} {
		if to != "" {
			*set = to
		}
	}
	if m.Memory > 0 {
		e.memory = m.Memory
	}
	return e, nil
}

// File descriptors that the QEMU process inherits.
const (
	fdSerial = 3 + iota
	fdQMP
	fdInitrd
)

// argv is the whole QEMU command line for one boot.
func (m *Machine) argv(e emulation, accel string, k targets.Kernel, initrd bool) ([]string, error) {
	if k.Image.Kernel == "" {
		return nil, errors.New("the kernel has no image for this target; add image { kernel = … } to it")
	}
	if f, err := os.Open(k.Image.Kernel); err != nil {
		return nil, fmt.Errorf("kernel image: %w (scripts/lab makes the virtual lab's images)", err)
	} else if err := f.Close(); err != nil {
		return nil, err
	}
	cmdline := strings.TrimSpace(e.cmdline + " " + k.Args())
	if len(cmdline) > e.longest {
		return nil, fmt.Errorf("the command line has %d bytes, and this machine's kernels cut it after %d: %s", len(cmdline), e.longest, cmdline)
	}
	if accel == "tcg" {
		accel = "tcg,tb-size=64" // MiB; the default of 1 GiB lets a guest take that much
	}
	device := e.nic + ",netdev=net0"
	if strings.HasPrefix(e.nic, "virtio-net-pci") {
		device += ",romfile=" // no boot ROM: the kernel comes by -kernel
	}
	argv := []string{e.program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-S",
		"-machine", e.machine, "-cpu", e.cpu, "-accel", accel,
		"-m", strconv.Itoa(e.memory), "-smp", strconv.Itoa(max(m.CPUs, 1)),
		"-chardev", fmt.Sprintf("socket,id=serial,fd=%d", fdSerial), "-serial", "chardev:serial",
		"-chardev", fmt.Sprintf("socket,id=qmp,fd=%d", fdQMP), "-mon", "chardev=qmp,mode=control",
		"-netdev", "user,id=net0", "-device", device,
		"-kernel", k.Image.Kernel, "-append", cmdline}
	if initrd {
		argv = append(argv, "-initrd", fmt.Sprintf("/proc/self/fd/%d", fdInitrd))
	}
	if k.Image.DTB != "" {
		argv = append(argv, "-dtb", k.Image.DTB)
	}
	if m.Icount != "" {
		// Without clock=vm the real-time clock follows the host, and MIPS guests
		// calibrate their CPU against it.
		argv = append(argv, "-icount", m.Icount, "-rtc", "clock=vm")
	}
	return append(argv, m.Args...), nil
}
