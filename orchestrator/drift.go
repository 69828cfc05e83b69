package orchestrator

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
)

// Drift is something of a target that is not as its block says.
type Drift struct {
	Pos  config.Pos `json:"pos"`
	Text string     `json:"text"`
}

// FindDrift compares what a target is with what the file says of it. at gives the
// place of an attribute or block of its block.
func FindDrift(lab *config.Lab, t *config.Target, s *targets.Survey, at func(path ...string) config.Pos) []Drift {
	out := []Drift{}
	say := func(p config.Pos, format string, args ...any) {
		out = append(out, Drift{p, fmt.Sprintf(format, args...)})
	}
	if t.Arch != "" && s.Arch.Value != "" && t.Arch != s.Arch.Value {
		say(at("arch"), "arch is %q, and the target is %s (%s)", t.Arch, s.Arch.Value, s.Arch.Evidence)
	}
	for _, l := range t.Labels {
		if wrongLabel(l, s) {
			say(at("labels"), "it is labelled %q, and is %s, %s", l, s.Arch.Value, s.ByteOrder.Value)
		}
	}
	bootDrift(t, s, func(format string, args ...any) { say(at("boot"), format, args...) })
	if k := kernelDrift(lab, s); k != "" {
		say(t.Pos, "%s", k)
	}
	if t.Agent != "shell" && len(s.Places) > 0 && !slices.ContainsFunc(s.Places, targets.Place.Usable) {
		say(t.Pos, "no folder there takes a program and runs it: the agent has no place")
	}
	for _, sweep := range lab.Sweeps {
		if !slices.ContainsFunc(sweep.Matrices, func(m config.Matrix) bool { return slices.Contains(m.Targets, t.Name) }) {
			continue
		}
		for _, n := range neededTools(lab, sweep) {
			if why := n.missing(s); why != "" {
				say(lab.Workload(n.workload).Pos, "%s, and sweep %s needs it for workload %s", why, sweep.Name, n.workload)
			}
		}
	}
	return out
}

// wrongLabel says that a label names another architecture or byte order.
func wrongLabel(l string, s *targets.Survey) bool {
	switch l {
	case "big-endian", "little-endian":
		return s.ByteOrder.Value != "" && l != s.ByteOrder.Value
	case "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x":
		return s.Arch.Value != "" && l != s.Arch.Value
	}
	return false
}

// bootDrift says what the boot method wants and the device has no more.
func bootDrift(t *config.Target, s *targets.Survey, say func(string, ...any)) {
	if s.Cut != "" || !slices.Contains([]string{"kexec", "grub", "extlinux", "systemd-boot", "uboot-env", "sysupgrade", "ssh-reboot"}, t.BootKind) {
		return
	}
	for _, m := range s.Methods {
		if m.Name != t.BootKind {
			continue
		}
		if m.Fill != "" && slices.Contains([]string{"kexec", "grub", "extlinux"}, m.Name) {
			say("boot %q: %s", m.Name, m.Fill)
		}
		return
	}
	switch {
	case s.UID != "" && s.UID != "0":
		if t.BootKind != "ssh-reboot" {
			say("boot %q needs root, and the login has uid %s", t.BootKind, s.UID)
		}
	case s.Container != "":
		say("boot %q cannot work: %s", t.BootKind, s.Container)
	default:
		say("boot %q: nothing that it needs is seen there (boot loader: %s)", t.BootKind, s.Loader())
	}
}

// kernelDrift says that what runs is no kernel of the file.
func kernelDrift(lab *config.Lab, s *targets.Survey) string {
	if len(lab.Kernels) == 0 || s.Running.Release == "" || len(RunningKernels(lab, s)) > 0 {
		return ""
	}
	return fmt.Sprintf("it runs %s with the scheduler %s, which is no kernel of the file; to measure it as it is: kernel \"NAME\" { release = %q }",
		s.Running.Release, orUnknown(s.Running.Scheduler.Name), s.Running.Release)
}

func orUnknown(s string) string {
	if s == "" {
		return "n/a (unknown)"
	}
	return s
}

// RunningKernels are the kernels of the file that what runs could be, by release
// and scheduler.
func RunningKernels(lab *config.Lab, s *targets.Survey) []*config.Kernel {
	var out []*config.Kernel
	for _, k := range lab.Kernels {
		fits, err := path.Match(k.Release, s.Running.Release)
		if (k.Release == "" || err == nil && fits) && (k.Scheduler == "" || k.Scheduler == s.Running.Scheduler.Name) {
			out = append(out, k)
		}
	}
	return out
}

// Change is something of a target that was otherwise when it was added.
type Change struct {
	What string `json:"what"`
	Was  string `json:"was"`
	Is   string `json:"is"`
}

// Changes compares two surveys of one target in what a lab would want to know.
func Changes(was, is *targets.Survey) []Change {
	var out []Change
	now := map[string]targets.Found{}
	for _, f := range is.Facts() {
		now[f.Name] = f.Found
	}
	for _, f := range was.Facts() {
		if !slices.Contains([]string{"hostname", "architecture", "byte order", "CPUs", "memory", "kernel", "scheduler", "boot loader", "SSH server",
			"host key", "SFTP", "iperf2", "iperf3", "distribution", "BusyBox"}, f.Name) {
			continue
		}
		if n := now[f.Name]; n.Value != f.Value && !(f.Name == "memory" && near(was, is)) {
			out = append(out, Change{f.Name, f.String(), n.String()})
		}
	}
	places := func(s *targets.Survey) string {
		var names []string
		for _, p := range s.Places {
			if p.Usable() {
				names = append(names, p.Dir)
			}
		}
		return strings.Join(names, ", ")
	}
	if a, b := places(was), places(is); a != b && was.Cut == "" && is.Cut == "" {
		out = append(out, Change{"places", a, b})
	}
	return out
}

// near says that memory is the same but for what another kernel keeps for itself.
func near(a, b *targets.Survey) bool {
	x, y := a.Running.MemoryKB, b.Running.MemoryKB
	return x > 0 && y > 0 && max(x, y)-min(x, y) < max(x, y)/16
}
