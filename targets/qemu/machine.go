// Package qemu is a target that is a QEMU process: boot method, power, console
// and network in one driver. Each boot is a new process with nothing left of
// the one before, reached only by what a real device offers: SSH, a serial
// console, its supply, and the ports that a network workload needs.
//
// A guest that reboots or panics (the command line says panic=-1) ends its
// process; its console then ends too, which a boot notices at once.
package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"kernsweep/targets"
)

// Deadlines of the driver's own steps. Starting is bound by how busy the
// controller is, so it is generous.
const (
	startWait = 30 * time.Second
	killWait  = 10 * time.Second
	qmpWait   = 10 * time.Second
)

// sshPort is where the guest's SSH server listens.
const sshPort = 22

// Machine is a target's QEMU machine, decoded from its `boot "qemu"` block. The
// target's arch decides what is emulated.
type Machine struct {
	Memory  int      `hcl:"memory,optional" doc:"MiB of RAM (default 256, MIPS 128)"`
	CPUs    int      `hcl:"cpus,optional" doc:"number of CPUs (default 1)"`
	CPU     string   `hcl:"cpu,optional" doc:"QEMU CPU model (default max,-cx16, MIPS 4KEc)"`
	Type    string   `hcl:"machine,optional" doc:"QEMU machine type (default q35, MIPS malta)"`
	Icount  string   `hcl:"icount,optional" doc:"-icount setting (\"shift=1\"): the guest's time follows its instructions, so figures do not depend on the controller's load; implies accel \"tcg\""`
	Accel   string   `hcl:"accel,optional" doc:"\"auto\" (default: KVM when a trial of it works, else TCG), \"tcg\" or \"kvm\""`
	NIC     string   `hcl:"nic,optional" doc:"QEMU network device (default virtio-net-pci, MIPS pcnet)"`
	Ports   []int    `hcl:"ports,optional" doc:"guest ports that peers reach, TCP and UDP; each is forwarded from a free port of 127.0.0.1"`
	HostKey string   `hcl:"host_key,optional,path" doc:"file of the guest's public SSH host key, pinned unless ssh.host_keys is set"`
	Args    []string `hcl:"args,optional" doc:"further QEMU arguments"`
	Program string   `hcl:"program,optional" doc:"QEMU program (default qemu-system-ARCH)"`

	traces string // folder of its processes' traces; "" = the user's

	boot   sync.Mutex // one Boot, Set or Close at a time
	looked bool       // for what killed controllers left

	mu       sync.Mutex // guards what follows
	hub      hub
	proc     *process
	last     *order
	ports    map[int]int // guest port -> port of 127.0.0.1
	notes    []string
	kvm      error // result of the trial of KVM
	kvmTried bool
}

// order is what the machine was last asked to start.
type order struct {
	target *targets.Target
	kernel targets.Kernel
}

// Check refuses settings that make no sense; it touches nothing.
func (m *Machine) Check() error {
	switch {
	case m.Memory < 0 || m.CPUs < 0:
		return errors.New("memory and cpus must not be negative")
	case m.Accel != "" && m.Accel != "auto" && m.Accel != "tcg" && m.Accel != "kvm":
		return fmt.Errorf("accel is %q; it must be \"auto\", \"tcg\" or \"kvm\"", m.Accel)
	case m.Icount != "" && m.Accel == "kvm":
		return errors.New("icount counts emulated instructions, so it cannot go with accel \"kvm\"")
	case m.Icount != "" && m.CPUs > 1:
		return errors.New("icount emulates all CPUs on one thread; leave it out with more than one CPU")
	}
	for _, p := range m.Ports {
		if p < 1 || p > 65535 || p == sshPort {
			return fmt.Errorf("ports has %d; it takes 1 to 65535, and %d is always forwarded", p, sshPort)
		}
	}
	return nil
}

// Traits of the method.
func (m *Machine) Traits() targets.BootTraits {
	return targets.BootTraits{Cmdline: true, Image: true, Local: true, Emulated: true, HostBound: m.Icount == ""}
}

// Boot ends the machine's process, if one runs, and starts a new one with k. It
// fills t.SSH and t.Network with the way to reach the guest. It returns when the guest runs its first
// instruction; every error is infrastructure.
func (m *Machine) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	m.boot.Lock()
	defer m.boot.Unlock()
	if err := m.stop(); err != nil {
		return fmt.Errorf("boot %s: %w", t.Name, err)
	}
	m.mu.Lock()
	m.last, m.notes = &order{t, k}, nil
	m.mu.Unlock()
	m.endLeft(ctx)
	if err := m.start(ctx, t, k); err != nil {
		return fmt.Errorf("boot %s with kernel %s: %w", t.Name, k.Name, err)
	}
	return nil
}

// Programs is QEMU's own, for an architecture that there is a machine for.
func (m *Machine) Programs(t *targets.Target) []string {
	e, err := m.emulated(t.Arch)
	if err != nil {
		return nil // Boot says it better
	}
	return []string{e.program}
}

// Set switches the machine's supply. Off ends the process like a pulled plug; on
// starts the kernel of the last Boot again, with the same command line.
func (m *Machine) Set(ctx context.Context, on bool) error {
	m.boot.Lock()
	defer m.boot.Unlock()
	if !on {
		return m.stop()
	}
	m.mu.Lock()
	last, running := m.last, m.proc != nil && !m.proc.ended()
	m.mu.Unlock()
	switch {
	case running:
		return nil
	case last == nil:
		return errors.New("power on: this QEMU machine has no kernel yet; boot one")
	}
	if err := m.stop(); err != nil {
		return err
	}
	return m.start(ctx, last.target, last.kernel)
}

// Close ends the process and every console stream.
func (m *Machine) Close() error {
	m.boot.Lock()
	defer m.boot.Unlock()
	err := m.stop()
	m.hub.end()
	return err
}

// Network says how the target and the controller reach each other. Its Ports
// have every port that will be forwarded, with 0 until the first Boot has bound
// them; each Boot may change them, and puts them into its target.
func (m *Machine) Network() targets.Network {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := targets.Network{Address: "127.0.0.1", Peer: "10.0.2.2", Ports: make(map[int]int, len(m.Ports)+1)}
	for _, guest := range m.guestPorts() {
		n.Ports[guest] = m.ports[guest]
	}
	if m.Icount != "" {
		n.Clock = "guest"
	}
	return n
}

// Notes are facts about the newest boot for the journal: the accelerator, and
// why it was chosen.
func (m *Machine) Notes() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.notes...)
}

// start starts a process for a stopped machine and lets its guest run.
func (m *Machine) start(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	e, err := m.emulated(t.Arch)
	if err != nil {
		return err
	}
	accel := m.accelerator(ctx, e, k)
	initrd, err := openInitrd(k.Image)
	if err != nil {
		return err
	}
	if initrd != nil {
		defer initrd.Close()
	}
	argv, err := m.argv(e, accel, k, initrd != nil)
	if err != nil {
		return err
	}
	trace, err := m.guests().leave(e.program, t.Name)
	if err != nil {
		trace = nil
		m.remark("a later run could not end this QEMU process, should this one be killed: " + err.Error())
	}
	p, err := startProcess(append(argv, trace.args()...), e.pkg, initrd, &m.hub, trace)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.proc = p
	m.notes = append(m.notes, "accelerator: "+accel)
	m.mu.Unlock()
	if err := m.release(ctx, t, p); err != nil {
		err = p.explain(err)
		if p.refusedImage() { // a fact about the kernel: the machine is as good as before
			err = &targets.BootError{Kernel: k.Name, Stage: "loading", Err: fmt.Errorf("%s makes nothing of the kernel's files: %s", p.program, p.stderr.String())}
		}
		return errors.Join(err, m.stop())
	}
	return nil
}

// guests is where the traces of the machine's processes are kept.
func (m *Machine) guests() guests {
	if m.traces == "" {
		return ourGuests()
	}
	return guests{m.traces}
}

// endLeft ends, before the machine's first boot, what killed controllers left: it
// would take the controller's CPUs from this run's guests.
func (m *Machine) endLeft(ctx context.Context) {
	if m.looked {
		return
	}
	m.looked = true
	if err := m.guests().endLeft(ctx, m.remark); err != nil {
		m.remark(err.Error())
	}
}

func (m *Machine) remark(s string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes = append(m.notes, s)
}

// release sets up what the paused process needs, then lets the guest run.
func (m *Machine) release(ctx context.Context, t *targets.Target, p *process) error {
	if err := p.qmp.hello(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	old := m.ports
	m.mu.Unlock()
	ports, err := forward(ctx, p.qmp, m.guestPorts(), old)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.ports = ports
	m.mu.Unlock()
	m.describe(t)
	if m.HostKey != "" && len(t.SSH.HostKeys) == 0 {
		key, err := os.ReadFile(m.HostKey)
		if err != nil {
			return fmt.Errorf("the guest's host key: %w (scripts/lab makes it)", err)
		}
		t.SSH.HostKeys = []string{strings.TrimSpace(string(key))}
	}
	return p.qmp.execute(ctx, "cont", nil, nil)
}

// describe fills what the forwarding of this boot decides about t.
func (m *Machine) describe(t *targets.Target) {
	n := m.Network()
	t.SSH.Host, t.SSH.Port = n.Address, n.Ports[sshPort]
	t.Network.Ports, t.Network.Clock = n.Ports, n.Clock
	if t.Network.Address == "" {
		t.Network.Address = n.Address
	}
	if t.Network.Peer == "" {
		t.Network.Peer = n.Peer
	}
}

func (m *Machine) guestPorts() []int { return append([]int{sshPort}, m.Ports...) }

// stop ends the process, if there is one, and waits until it is gone. Console
// streams stay open for the next one.
func (m *Machine) stop() error {
	m.mu.Lock()
	p := m.proc
	m.proc = nil
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.kill()
}
