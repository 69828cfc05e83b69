package report

import (
	"path/filepath"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
)

// build derives the document.
func build(run *results.Run, s *results.State) *Document {
	b := builder{run: run, state: s, m: s.Model, final: s.Model.FinalBoots()}
	d := &Document{Format: DocumentFormat, Run: run.Meta, ExitStatus: s.Model.ExitStatus(),
		Damage: s.Journal.Notes, Doubtful: len(s.Journal.Doubtful), Sessions: s.Model.Sessions,
		Targets: []Target{}, Workloads: []Workload{}, Boots: []Boot{}, Failures: []Failure{}}
	d.Design, d.Kernels = s.Plan.Design, s.Plan.Kernels
	if d.Sessions == nil {
		d.Sessions = []results.Session{}
	}
	if d.Kernels == nil {
		d.Kernels = []results.PlannedKernel{}
	}
	if n := len(d.Sessions); n > 0 && d.Sessions[n-1].Ended.IsZero() {
		if h, held := run.HeldBy(); held {
			d.Running = h.String()
		}
	}
	b.plan()
	for _, t := range b.targets {
		d.Targets = append(d.Targets, b.target(t))
	}
	b.doc = d
	for _, c := range b.cells {
		i := slices.IndexFunc(d.Workloads, func(w Workload) bool { return w.ID == c.Workload })
		if i < 0 {
			kind, _, _ := strings.Cut(c.Workload, ".")
			i = len(d.Workloads)
			d.Workloads = append(d.Workloads, Workload{ID: c.Workload, Kind: kind})
		}
		d.Workloads[i].Cells = append(d.Workloads[i].Cells, b.cell(c))
	}
	for _, x := range s.Model.Boots {
		d.Boots = append(d.Boots, Boot{Lane: x.Lane, Number: x.Number, Asked: x.Asked, Judged: x.Judged, Result: x.Result})
	}
	d.Failures = append(d.Failures, b.failures()...)
	b.sessions(d)
	for _, n := range s.Model.Notes {
		d.Notes = append(d.Notes, Note{At: n.At, Lane: n.Lane, Text: n.Note})
	}
	return d
}

type builder struct {
	run     *results.Run
	state   *results.State
	m       *results.Model
	doc     *Document
	final   []*results.BootState
	targets []results.PlannedTarget
	cells   []results.PlannedCell
}

// plan takes the planned targets and cells, and adds what the journal has
// beyond them: an import has no plan at all.
func (b *builder) plan() {
	b.targets, b.cells = slices.Clone(b.state.Plan.Targets), slices.Clone(b.state.Plan.Cells)
	addTarget := func(name string) {
		if !slices.ContainsFunc(b.targets, func(t results.PlannedTarget) bool { return t.Name == name }) {
			b.targets = append(b.targets, results.PlannedTarget{Name: name})
		}
	}
	for _, l := range b.m.Lanes {
		addTarget(l.Name)
	}
	planned := map[results.Cell]bool{}
	for _, c := range b.cells {
		addTarget(c.Target)
		planned[c.Cell] = true
	}
	for _, c := range b.m.Cells() {
		addTarget(c.Target)
		if !planned[c] {
			b.cells = append(b.cells, results.PlannedCell{Cell: c})
		}
	}
}

func (b *builder) target(p results.PlannedTarget) Target {
	t := Target{PlannedTarget: p, Outcomes: b.m.CountLane(p.Name)}
	for _, l := range b.m.Lanes {
		if l.Name != p.Name {
			continue
		}
		t.Ended, t.Taken, t.Cut, t.Enough = !l.Ended.IsZero(), l.Taken, l.Cut, l.Enough
		if l.Quarantined {
			t.Quarantined = l.Reason
			if t.Quarantined == "" {
				t.Quarantined = "no reason recorded"
			}
		}
	}
	var names []string
	for _, c := range b.cells {
		if c.Target == p.Name {
			t.NotRun += b.notRun(c)
			names = append(names, c.Kernel)
		}
	}
	for _, x := range b.final {
		if x.Lane == p.Name {
			names = append(names, x.Result.Kernel)
		}
	}
	for i, n := range names {
		if !slices.Contains(names[:i], n) {
			t.Kernels = append(t.Kernels, b.kernel(p.Name, n))
		}
	}
	return t
}

func (b *builder) kernel(target, name string) Kernel {
	k := Kernel{Name: name, Boots: map[results.Outcome]int{}, Releases: []string{}, Schedulers: []string{}}
	for _, p := range b.state.Plan.Kernels {
		if p.Name == name {
			k.Want = p.Scheduler
		}
	}
	var failed *BootFailure
	for _, x := range b.final {
		r := x.Result
		if x.Lane != target || r.Kernel != name {
			continue
		}
		k.Boots[r.Outcome]++
		if r.Outcome == results.BootFailed && failed == nil {
			failed = &BootFailure{Stage: r.Stage, Reason: r.Reason, LastLines: r.LastLines}
		}
	}
	b.evidence(target, &k)
	for _, x := range b.m.Boots {
		if x.Lane == target && x.Result != nil && x.Result.Kernel == name {
			k.Replaced++
		}
	}
	for _, n := range k.Boots {
		k.Replaced -= n
	}
	if k.Boots[results.OK] == 0 {
		k.DidNotBoot = failed
	}
	return k
}

// evidence gathers what all boots of a kernel that counted have shown.
func (b *builder) evidence(target string, k *Kernel) {
	ids := map[string]bool{}
	for _, x := range b.m.Boots {
		r := x.Result
		if x.Lane != target || r == nil || r.Kernel != k.Name || r.Outcome != results.OK {
			continue
		}
		k.Releases = addNew(k.Releases, r.Record.Release)
		k.Schedulers = addNew(k.Schedulers, schedulerName(r))
		if r.Record.BootID != "" {
			ids[r.Record.BootID] = true
		}
		if !r.Record.Proven {
			why := r.Record.Unproven
			if why == "" {
				why = "no reason recorded"
			}
			k.Unproven = addNew(k.Unproven, why)
		}
	}
	k.BootIDs = len(ids)
}

func schedulerName(b *results.Boot) string {
	s := b.Record.Scheduler
	if s.Name == "" {
		return ""
	}
	if s.Detail != "" {
		return s.Name + " (" + s.Detail + ")"
	}
	return s.Name
}

func addNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// notRun counts planned slots the journal has no record of.
func (b *builder) notRun(c results.PlannedCell) int {
	return b.state.NotRun(c)
}

// rel is a path below the run directory.
func (b *builder) rel(path string) string {
	if r, err := filepath.Rel(b.run.Dir(), path); err == nil {
		return filepath.ToSlash(r)
	}
	return path
}
