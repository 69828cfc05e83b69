package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// RunSide is one of the runs that CompareRuns and History look at.
type RunSide struct {
	Meta     results.RunMeta
	State    *results.State
	Findings []results.Found // of orchestrator/validity
	// Settings as the run's record keeps them: a hash of each, by "workload W (S):
	// ATTRIBUTE", "kernel K: …", "target T: …"; nil: not on file.
	Settings map[string]string
	// Images are SHA-256 hashes by "KERNEL on TARGET: PART PATH"; nil: not on file.
	Images map[string]string
}

// Selection narrows runs to these names; an empty list stands for all. A workload
// is named KIND, KIND.NAME or NAME.
type Selection struct{ Targets, Kernels, Workloads []string }

func (s *Selection) has(c results.Cell) bool {
	in := func(list []string, names ...string) bool {
		return len(list) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
	}
	kind, name, _ := strings.Cut(c.Workload, ".")
	return in(s.Targets, c.Target) && in(s.Kernels, c.Kernel) && in(s.Workloads, c.Workload, kind, name)
}

// RunsOptions of CompareRuns.
type RunsOptions struct {
	Selection
	Common bool        // what both runs share is compared, the rest is named and left out
	Floors Floors      // noise floors of devices
	Rules  stats.Rules // zero: those of run B's plan
}

// RunName says which run a side is.
type RunName struct {
	Name    string    `json:"name"`
	Sweep   string    `json:"sweep"`
	Created time.Time `json:"created"`
}

// RunsJudgement is what two runs say of the same cells: each cell of run B beside
// the same cell of run A. In its comparisons Kernel and Baseline are the one
// kernel, Base is run A's and Value is run B's.
type RunsJudgement struct {
	A RunName `json:"a"`
	B RunName `json:"b"`
	Judgement
	LeftOut  []string `json:"left_out,omitempty"` // for --common: what only one run has, or has otherwise
	Images   []string `json:"images,omitempty"`   // that changed, or that nobody knows of
	Machines []string `json:"machines,omitempty"` // targets that are another machine now
}

// ExitStatus is 1 when a primary comparison is slower, or a kernel that booted in
// run A did not boot in run B; 4 when none is but the answer is open; else 0.
func (r *RunsJudgement) ExitStatus() int {
	status := 0
	for _, c := range r.Comparisons {
		switch {
		case !c.Primary:
		case c.Verdict == stats.Slower, c.Verdict == stats.DidNotBoot && c.Base.OK():
			return results.ExitFailed
		case c.Verdict == stats.Inconclusive, c.Verdict == stats.Invalid, c.Verdict == stats.DidNotBoot:
			status = ExitInconclusive
		}
	}
	return status
}

// ExitInconclusive is the exit status of compare when the answer is open.
const ExitInconclusive = 4

// UnequalError says that two runs do not measure the same.
type UnequalError struct {
	A, B        string
	Differences []string
	Nothing     bool // they share no cell at all
}

func (e *UnequalError) Error() string {
	end := "--common compares what they share"
	if e.Nothing {
		end = "they share nothing that could be compared"
	}
	return fmt.Sprintf("%s and %s do not measure the same:\n  %s\n%s", e.A, e.B, strings.Join(e.Differences, "\n  "), end)
}

// CompareRuns compares run b with run a, cell by cell. It refuses runs of unequal
// cells with an *UnequalError.
func CompareRuns(a, b RunSide, o RunsOptions) (*RunsJudgement, error) {
	shared, differences := sharedCells(&a, &b, &o.Selection)
	if len(shared) == 0 && len(differences) == 0 {
		differences = []string{"nothing is selected: neither run has a cell of that name"}
	}
	if len(shared) == 0 || len(differences) > 0 && !o.Common {
		return nil, &UnequalError{a.Meta.Name, b.Meta.Name, differences, len(shared) == 0}
	}
	out := &RunsJudgement{A: nameOf(a.Meta), B: nameOf(b.Meta), LeftOut: differences}
	machines := otherMachines(&a, &b, shared)
	ja := newJudging(a.Meta.Name, a.State, Options{Findings: a.Findings, Rules: o.Rules})
	jb := newJudging(b.Meta.Name, b.State, Options{Findings: b.Findings, Rules: o.Rules, Floors: o.Floors})
	var claims []*claim
	for _, c := range shared {
		for _, m := range metricsOf(b.State, c) {
			if m.Better != workloads.Informative {
				claims = append(claims, across(ja, jb, c, m, machines[c.Target]))
			}
		}
	}
	out.Rules, out.Comparisons = jb.rules, []Comparison{}
	jb.familySize = family(claims)
	out.Family = jb.familySize
	for _, c := range claims {
		jb.conclude(c)
		c.MoreCommand = moreRuns(ja, jb, c)
		out.Comparisons = append(out.Comparisons, *c.Comparison)
	}
	for _, c := range shared {
		if t := machines[c.Target]; t != "" && !slices.Contains(out.Machines, t) {
			out.Machines = append(out.Machines, t)
		}
	}
	if a.Meta.ID == "" || a.Meta.ID != b.Meta.ID {
		out.Images = imageChanges(&a, &b, shared)
	}
	out.Findings = slices.Concat(a.Findings, b.Findings)
	out.Notes = append(runNotes(&a, &b, shared), jb.primary.unused()...)
	return out, nil
}

func nameOf(m results.RunMeta) RunName { return RunName{m.Name, m.Sweep, m.Created} }

// across compares one metric of one cell between the runs.
func across(ja, jb *judging, c results.Cell, m workloads.Metric, machine string) *claim {
	x, y := ja.side(c, m.Name), jb.side(c, m.Name)
	x.name, y.name = "run A", "run B"
	x.apart, y.apart = true, true
	x.strata, y.strata = make([]int, len(x.boots)), make([]int, len(y.boots)) // the runs are what differs
	key := Key{c.Target, c.Workload, c.Scenario, c.Kernel, c.Kernel}
	k := jb.claim(key, m, x, y)
	k.each = "run"
	ja.findings(k)
	k.caveat()
	k.plain()
	if machine != "" {
		k.Comparison.Findings = append(k.Comparison.Findings, results.Finding{Rule: "another machine", Hard: true, Text: machine})
		k.spoilt = machine
	}
	if t := ja.targets[c.Target]; k.hold == "" && t.HostBound && k.Change.OK() {
		k.hold = fmt.Sprintf("NOT COMPARABLE, the figures of %s depend on the controller's load", c.Target)
	}
	return k
}

// plain drops findings that two passes over the rules gave twice.
func (c *claim) plain() {
	var out []results.Finding
	for _, f := range c.Comparison.Findings {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	c.Comparison.Findings = out
}

// moreRuns adds blocks to the run that lacks them; to both when both do.
func moreRuns(ja, jb *judging, c *claim) string {
	if c.More == 0 {
		return ""
	}
	var commands []string
	need := min(c.Boots[0], c.Boots[1]) + c.More
	for i, j := range []*judging{ja, jb} {
		n := need - c.Boots[i]
		if n <= 0 {
			continue
		}
		k := *c
		k.Comparison = &Comparison{Key: c.Key, More: n}
		command := j.moreCommand(&k)
		if command == "" {
			return ""
		}
		commands = append(commands, command)
	}
	return strings.Join(commands, " && ")
}
