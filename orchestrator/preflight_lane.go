package orchestrator

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// readier is a virtual machine that knows whether it could start.
type readier interface {
	Ready(t *targets.Target) (string, error)
}

// stateful is a power driver that can be asked without switching.
type stateful interface {
	State(ctx context.Context) (on bool, err error)
}

// listener is a boot method for which files are served.
type listener interface{ Listens() string }

// laneChecks are the questions about one lane.
func (p *Preflight) laneChecks(l plan.Lane, t *config.Target) []check {
	at := func(what string, ask func(context.Context) []Finding) check { return check{t.Name, what, ask} }
	still := func(ask func() []Finding) func(context.Context) []Finding {
		return func(context.Context) []Finding { return ask() }
	}
	out := []check{
		at("what its drivers need on the controller", still(func() []Finding { return p.programs(t) })),
		at("its images", still(func() []Finding { return p.images(l, t) })),
		at("its lease", func(ctx context.Context) []Finding { return p.leases(ctx, t) }),
	}
	if m, ok := t.Boot.(readier); ok {
		return append(out, at("its virtual machine", still(func() []Finding { return p.machine(t, m) })))
	}
	if targets.TraitsOf(t.Boot).Local {
		return append(out, at("", still(func() []Finding {
			return []Finding{{Target: t.Name, Level: Fine, Text: "virtual, starts with its first boot"}}
		})))
	}
	out = append(out, at("whether it is reached", func(ctx context.Context) []Finding { return p.reach(ctx, l, t) }))
	if t.Console != nil {
		out = append(out, at("its console", func(ctx context.Context) []Finding { return p.console(ctx, t) }))
	}
	if b, ok := t.Boot.(listener); ok && b.Listens() != "" && p.Serve != nil {
		out = append(out, at("the TFTP server's port", func(ctx context.Context) []Finding { return p.served(ctx, t, b.Listens()) }))
	}
	return out
}

func (p *Preflight) programs(t *config.Target) []Finding {
	missing := missingPrograms(t)
	if len(missing) == 0 {
		return nil
	}
	return []Finding{{Target: t.Name, Level: Unsafe, Text: "missing on the controller: " + strings.Join(missing, ", "),
		Do: "install it here (" + InstallHint(missing[0]) + "), or correct its path in the target's block"}}
}

// missingPrograms are those that the target's drivers will start in vain.
func missingPrograms(t *config.Target) []string {
	var missing []string
	for _, d := range []any{t.Boot, t.Power, t.Console} {
		r, ok := d.(targets.Runner)
		if !ok {
			continue
		}
		for _, p := range r.Programs(&t.Target) {
			if lacks(p) && !slices.Contains(missing, p) {
				missing = append(missing, p)
			}
		}
	}
	return missing
}

// lacks says that a program is not on the controller.
func lacks(program string) bool {
	_, err := exec.LookPath(program)
	return err != nil
}

// InstallHint is how Debian installs a program, where its package has another name
// too.
func InstallHint(program string) string {
	pkg := map[string]string{"ipmitool": "ipmitool", "gpioset": "gpiod", "sispmctl": "sispmctl", "usbrelay": "usbrelay", "socat": "socat", "ssh": "openssh-client",
		"iperf": "iperf", "iperf3": "iperf3", "qemu-system-x86_64": "qemu-system-x86", "qemu-system-mips": "qemu-system-mips", "qemu-system-mipsel": "qemu-system-mips",
		"qemu-system-arm": "qemu-system-arm", "qemu-system-aarch64": "qemu-system-arm", "picocom": "picocom", "conserver": "conserver-client"}[program]
	if pkg == "" {
		return "apt-file search bin/" + program[strings.LastIndexByte(program, '/')+1:] + " names the package"
	}
	return "apt-get install " + pkg
}

// images looks at the files that the lane boots: readable, and for its
// architecture as far as their headers tell.
func (p *Preflight) images(l plan.Lane, t *config.Target) []Finding {
	var out []Finding
	for _, k := range laneKernels(p.Lab, l, t) {
		for _, f := range imageFiles(k.Image) {
			if why := unreadable(f); why != "" {
				out = append(out, Finding{Target: t.Name, Level: Unsafe, Text: fmt.Sprintf("kernel %s: %s: %s", k.Name, f, why), Do: "put the file there, or correct image in kernel " + k.Name})
			}
		}
		if got := imageArch(k.Image.Kernel); got != "" && t.Arch != "" && !strings.HasPrefix(t.Arch, got) && !(got == "386" && t.Arch == "amd64") {
			out = append(out, Finding{Target: t.Name, Level: Unsafe, Text: fmt.Sprintf("kernel %s: %s is for %s, and the target is %s", k.Name, k.Image.Kernel, got, t.Arch),
				Do: fmt.Sprintf("name the right file in image %q of kernel %s", t.Arch, k.Name)})
		}
	}
	return out
}

// imageArch is the GOARCH of a kernel image, or the beginning of one, by its header
// (ELF; Linux Documentation/arch/x86/boot.rst and arch/arm64/booting.rst; U-Boot
// include/image.h). "" where that does not tell.
func imageArch(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 1024)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	switch {
	case n > 20 && bytes.HasPrefix(head, []byte("\x7fELF")):
		if prog, err := targets.ProgramFromELF(head, ""); err == nil {
			return prog.GOARCH
		}
	case n > 0x206 && string(head[0x202:0x206]) == "HdrS":
		if n > 0x238 && binary.LittleEndian.Uint16(head[0x206:]) >= 0x20c && binary.LittleEndian.Uint16(head[0x236:])&1 == 0 {
			return "386"
		}
		return "" // older headers do not tell 64 bits
	case n > 60 && string(head[56:60]) == "ARM\x64":
		return "arm64"
	case n > 64 && binary.BigEndian.Uint32(head) == 0x27051956:
		return map[byte]string{2: "arm", 3: "386", 5: "mips", 6: "mips64", 22: "arm64", 24: "amd64", 26: "riscv64"}[head[29]]
	}
	return ""
}

// leases says whether the target is still ours, and who holds what its trials share.
func (p *Preflight) leases(ctx context.Context, t *config.Target) []Finding {
	if err := p.Claims.check(ctx, t.Name); err != nil {
		return []Finding{{Target: t.Name, Level: Unsafe, Text: err.Error(), Do: "begin again with --wait; who has it:", Command: p.cmd("status")}}
	}
	var out []Finding
	for _, r := range p.Held {
		for _, u := range t.Uses {
			if r.Key == "uses:"+u && r.State == leases.Held && !(p.Mine != nil && p.Mine(r)) {
				out = append(out, Finding{Target: t.Name, Level: Warning, Text: fmt.Sprintf("%s, which its trials share, is in use by %s", u, r), Do: "its trials wait for it; or have that run ended"})
			}
		}
	}
	return out
}

func (p *Preflight) machine(t *config.Target, m readier) []Finding {
	said, err := m.Ready(&t.Target)
	if err != nil {
		return []Finding{{Target: t.Name, Level: Unsafe, Text: err.Error(), Do: "correct the boot block of target " + t.Name}}
	}
	return []Finding{{Target: t.Name, Level: Fine, Text: "virtual, starts with its first boot: " + said}}
}

// console opens and closes the console.
func (p *Preflight) console(ctx context.Context, t *config.Target) []Finding {
	if r, ok := t.Console.(targets.Runner); ok && slices.ContainsFunc(r.Programs(&t.Target), lacks) {
		return nil // which is said
	}
	ctx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	c, err := t.Console.Open(ctx)
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		return []Finding{{Target: t.Name, Level: Unsafe, Text: "its console does not open: " + err.Error(), Do: "correct its console block; try it:", Command: p.cmd("console %s", t.Name)}}
	}
	return []Finding{{Target: t.Name, Level: Fine, Text: "console opens"}}
}

// served tries the port from which the boot loader fetches its files.
func (p *Preflight) served(ctx context.Context, t *config.Target, listen string) []Finding {
	s, err := p.Serve(ctx, listen, nil)
	if err != nil {
		return []Finding{{Target: t.Name, Level: Unsafe, Text: fmt.Sprintf("its files cannot be served at %s: %v", listen, err),
			Do: "end what listens there, run as root or give the program CAP_NET_BIND_SERVICE, or set tftp_listen or tftp_root in its boot block"}}
	}
	s.Release()
	return []Finding{{Target: t.Name, Level: Fine, Text: "TFTP at " + listen}}
}

// controller looks for what workloads need here, as a peer.
func (p *Preflight) controller() []Finding {
	var out []Finding
	for _, n := range p.tools("", func(l plan.Lane, s *config.Scenario, tool workloads.Tool) bool {
		return tool.Peer && s.Common.Peer == "controller"
	}) {
		if lacks(n.name) {
			out = append(out, Finding{Level: Unsafe, Text: fmt.Sprintf("%s is not on the controller, the peer of %s", n.name, n.cell), Do: InstallHint(n.name)})
		}
	}
	return out
}

// wantedTool is a tool and the first workload that wants it.
type wantedTool struct{ name, cell string }

// tools are those that a lane's scenarios want ("" = of every lane), each once.
func (p *Preflight) tools(lane string, take func(plan.Lane, *config.Scenario, workloads.Tool) bool) []wantedTool {
	var out []wantedTool
	for _, l := range p.Plan.Lanes {
		if lane != "" && l.Target != lane {
			continue
		}
		for _, s := range p.scenarios(l) {
			u, ok := s.Run.(workloads.ToolUser)
			if !ok {
				continue
			}
			for _, tool := range u.Tools() {
				if take(l, s.Scenario, tool) && !slices.ContainsFunc(out, func(w wantedTool) bool { return w.name == tool.Name }) {
					out = append(out, wantedTool{tool.Name, s.id})
				}
			}
		}
	}
	return out
}

// named is a scenario with its workload's name.
type named struct {
	*config.Scenario
	id string
}

// scenarios are what a lane runs, each once.
func (p *Preflight) scenarios(l plan.Lane) []named {
	var out []named
	seen := map[string]bool{}
	for _, b := range l.Boots {
		for _, slot := range b.Trials {
			w := p.Lab.Workload(slot.Workload)
			if id := slot.Workload + "." + slot.Scenario; w != nil && !seen[id] {
				seen[id] = true
				for i := range w.Scenarios {
					if w.Scenarios[i].Name == slot.Scenario {
						out = append(out, named{&w.Scenarios[i], slot.Workload})
					}
				}
			}
		}
	}
	return out
}
