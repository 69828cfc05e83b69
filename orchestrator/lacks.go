package orchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// SweepLacks are what a target still lacks for a sweep.
type SweepLacks struct {
	Sweep string   `json:"sweep,omitempty"` // "": for each of them
	Lacks []string `json:"lacks"`
}

// Lacks says what keeps t from taking part in the sweeps of lab, of which it need
// not be a part yet: first what every sweep wants, then each sweep in turn.
// Nothing is contacted.
func Lacks(lab *config.Lab, t *config.Target, s *targets.Survey, runs string) []SweepLacks {
	out := []SweepLacks{{Lacks: always(t, runs)}}
	for _, sweep := range lab.Sweeps {
		l := SweepLacks{Sweep: sweep.Name}
		add := func(text string) {
			if !slices.Contains(l.Lacks, text) {
				l.Lacks = append(l.Lacks, text)
			}
		}
		without := missingKernels(lab, t, sweep)
		if len(without) > 0 {
			add(fmt.Sprintf("%s for %s", noImage(without), cmp.Or(t.Arch, "its architecture, which is unknown")))
		}
		for _, text := range notThere(lab, t, sweep, without) {
			add(text)
		}
		for _, n := range neededTools(lab, sweep) {
			if why := n.missing(s); why != "" {
				add(fmt.Sprintf("%s for workload %s", why, n.workload))
			}
		}
		out = append(out, l)
	}
	return out
}

// always is what every sweep wants of a target.
func always(t *config.Target, runs string) []string {
	var out []string
	tr := targets.TraitsOf(t.Boot)
	if tr.OnlyOnce {
		out = append(out, fmt.Sprintf("boot %q starts no kernel: only what runs is measured, once a run, as a kernel block without images", t.BootKind))
	}
	if t.Power == nil {
		out = append(out, "no power driver: a hung kernel cannot be recovered")
	}
	if t.Console == nil {
		out = append(out, "no console: a kernel that hangs cannot be told from a network that fails")
	}
	if t.KnownGood == "" && !tr.OnlyOnce {
		out = append(out, "no known_good kernel: nothing brings it back after a failed boot")
	}
	if tr.Local {
		return out
	}
	r, err := LoadRehearsal(runs, t.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out = append(out, "never rehearsed: kernsweep target doctor "+t.Name)
	case err != nil:
		out = append(out, err.Error())
	case r.Address != AddressOf(t):
		out = append(out, fmt.Sprintf("rehearsed at another address (%s): kernsweep target doctor %s", r.Address, t.Name))
	case r.Failed() != nil:
		out = append(out, fmt.Sprintf("its rehearsal failed at %q: kernsweep target doctor %s", r.Failed().Name, t.Name))
	}
	return out
}

// missingKernels are the kernels of a sweep without an image for t. A boot method
// that is yet to be written will want one.
func missingKernels(lab *config.Lab, t *config.Target, sweep *config.Sweep) []string {
	tr := targets.TraitsOf(t.Boot)
	if !tr.Image && !tr.OnlyOnce {
		return nil
	}
	var out []string
	for _, m := range sweep.Matrices {
		for _, name := range m.Kernels {
			k := lab.Kernel(name)
			if k == nil || k.ImageFor(t) != nil || tr.OnlyOnce && len(k.Images) == 0 || slices.Contains(out, name) {
				continue
			}
			out = append(out, name)
		}
	}
	return out
}

func noImage(kernels []string) string {
	if len(kernels) == 1 {
		return "kernel " + kernels[0] + " has no image"
	}
	return "kernels " + strings.Join(kernels, ", ") + " have no image"
}

// notThere are the cells that a plan would call n/a for other reasons than the
// kernels without an image, each reason once.
func notThere(lab *config.Lab, t *config.Target, sweep *config.Sweep, without []string) []string {
	with := *sweep
	with.Matrices = slices.Clone(sweep.Matrices)
	for i := range with.Matrices {
		with.Matrices[i].Targets = []string{t.Name}
	}
	p, err := plan.Expand(lab, &with, 1, plan.Filter{}, plan.History{})
	if p == nil {
		return []string{err.Error()}
	}
	var reasons []string
	which := map[string][]string{}
	for _, na := range p.NA {
		if slices.Contains(without, na.Kernel) {
			continue
		}
		if which[na.Reason] == nil {
			reasons = append(reasons, na.Reason)
		}
		if id := na.Workload; !slices.Contains(which[na.Reason], id) {
			which[na.Reason] = append(which[na.Reason], id)
		}
	}
	var out []string
	for _, r := range reasons {
		out = append(out, fmt.Sprintf("workload %s is n/a: %s", strings.Join(which[r], ", "), r))
	}
	return out
}

// toolNeed is what a workload wants to find on the target.
type toolNeed struct {
	workload string
	tools    []string // one of them will do
	words    string
}

// neededTools are those of a sweep's workloads.
func neededTools(lab *config.Lab, sweep *config.Sweep) []toolNeed {
	var out []toolNeed
	add := func(n toolNeed) {
		if !slices.ContainsFunc(out, func(o toolNeed) bool { return o.workload == n.workload && o.words == n.words }) {
			out = append(out, n)
		}
	}
	for _, m := range sweep.Matrices {
		for _, id := range m.Workloads {
			w := lab.Workload(id)
			if w == nil {
				continue
			}
			for i := range w.Scenarios {
				switch run := w.Scenarios[i].Run.(type) {
				case *workloads.Iperf:
					if run.Tool == "iperf2" {
						add(toolNeed{id, []string{"iperf"}, "iperf2"})
					}
					if run.Tool == "iperf3" {
						add(toolNeed{id, []string{"iperf3"}, "iperf3"})
					}
				case *workloads.Kernbench:
					add(toolNeed{id, []string{"make"}, "make"})
				}
			}
		}
	}
	return out
}

// missing says what a target lacks, "" when it has it.
func (n toolNeed) missing(s *targets.Survey) string {
	if s.Cut != "" && len(s.Running.Tools) == 0 {
		return "" // nobody knows
	}
	for _, t := range n.tools {
		v, ok := s.Running.Tools[t]
		if ok && (n.words != "iperf2" || !strings.HasPrefix(v, "iperf 3")) {
			return ""
		}
	}
	return n.words + " is missing on the target"
}
