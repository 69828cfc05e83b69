package plan

import (
	"fmt"
	"slices"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// Allowances for what a plan cannot know before the first run.
const (
	bootLocal  = 12 * time.Second // a QEMU guest, measured 4 to 9 s under TCG with -icount
	bootDevice = 90 * time.Second
	perTrial   = 3 * time.Second // checks, starting the agent, collecting
	emulation  = 2               // guest seconds under -icount cost about this many of the controller's
)

// Expand makes the plan of a sweep. Its error is about names that do not exist
// or a sweep left empty by the filter.
func Expand(lab *config.Lab, sweep *config.Sweep, seed int64, f Filter, h History) (*Plan, error) {
	return Changes{}.Expand(lab, sweep, seed, f, h)
}

// Expand makes the plan of a sweep that is changed so.
func (c Changes) Expand(lab *config.Lab, sweep *config.Sweep, seed int64, f Filter, h History) (*Plan, error) {
	if err := f.check(lab); err != nil {
		return nil, err
	}
	if err := c.check(sweep, f); err != nil {
		return nil, err
	}
	sweep = c.apply(sweep)
	p := &Plan{Sweep: sweep.Name, Seed: seed, Repeat: sweep.Repeat, Warmup: sweep.Warmup, Blocks: sweep.Boots,
		BootFailures: sweep.BootFailures, Baseline: map[string]string{}, Design: designOf(sweep)}
	p.Design.NoiseFloor = c.NoiseFloor
	e := expansion{lab: lab, sweep: sweep, filter: f, history: h, plan: p, pilot: c.Pilot, seen: map[results.Cell]bool{}, baseline: map[results.Cell]string{}}
	e.cells()
	e.family()
	for _, t := range e.targets {
		p.Lanes = append(p.Lanes, e.lane(t))
	}
	if len(p.Lanes) == 0 {
		return p, fmt.Errorf("sweep %s has nothing to run: %d cells, all of them n/a or filtered out", sweep.Name, len(p.NA))
	}
	return p, nil
}

// expansion is the state of one Expand.
type expansion struct {
	lab     *config.Lab
	sweep   *config.Sweep
	filter  Filter
	history History
	plan    *Plan
	pilot   bool
	seen    map[results.Cell]bool
	// baseline is that of each runnable cell's matrix
	baseline map[results.Cell]string
	targets  []*config.Target                     // with at least one runnable cell, in file order
	byLane   map[string]map[string][]results.Cell // target -> kernel -> cells
	kernels  map[string][]string                  // target -> kernels in order
}

// cells walks the matrices and sorts every cell into a lane or into NA.
func (e *expansion) cells() {
	e.byLane, e.kernels = map[string]map[string][]results.Cell{}, map[string][]string{}
	for _, m := range e.sweep.Matrices {
		for _, tn := range m.Targets {
			t := e.lab.Target(tn)
			if t == nil || !wanted(e.filter.Targets, tn) {
				continue
			}
			if _, ok := e.plan.Baseline[tn]; !ok && m.Baseline != "" {
				e.plan.Baseline[tn] = m.Baseline
			}
			for _, kn := range m.Kernels {
				if k := e.lab.Kernel(kn); k != nil && wanted(e.filter.Kernels, kn) {
					e.row(t, k, m)
				}
			}
		}
	}
}

func (e *expansion) row(t *config.Target, k *config.Kernel, m config.Matrix) {
	for _, id := range m.Workloads {
		w := e.lab.Workload(id)
		if w == nil || len(e.filter.Workloads) > 0 &&
			!slices.ContainsFunc(e.filter.Workloads, func(p string) bool { return matchesWorkload(p, w) }) {
			continue
		}
		for i := range w.Scenarios {
			c := results.Cell{Target: t.Name, Kernel: k.Name, Workload: id, Scenario: w.Scenarios[i].Name}
			if e.seen[c] {
				continue
			}
			e.seen[c] = true
			if why := reasonNA(t, k, &w.Scenarios[i]); why != "" {
				e.plan.NA = append(e.plan.NA, NA{c, why})
				continue
			}
			e.baseline[c] = m.Baseline
			e.add(t, c)
		}
	}
}

func (e *expansion) add(t *config.Target, c results.Cell) {
	if e.byLane[t.Name] == nil {
		e.byLane[t.Name] = map[string][]results.Cell{}
		e.targets = append(e.targets, t)
		e.warn(t)
	}
	if len(e.byLane[t.Name][c.Kernel]) == 0 {
		e.kernels[t.Name] = append(e.kernels[t.Name], c.Kernel)
	}
	e.byLane[t.Name][c.Kernel] = append(e.byLane[t.Name][c.Kernel], c)
}

// warn notes what a person should know of a target before the night.
func (e *expansion) warn(t *config.Target) {
	tr := targets.TraitsOf(t.Boot)
	w := func(format string, a ...any) {
		e.plan.Warnings = append(e.plan.Warnings, "target "+t.Name+": "+fmt.Sprintf(format, a...))
	}
	switch {
	case t.KnownGood != "" && tr.Image && !tr.Returns && !tr.Local && e.lab.Kernel(t.KnownGood).ImageFor(t) == nil:
		w("its known_good kernel %s has no image for it: after a failed boot nothing brings it back", t.KnownGood)
	case t.KnownGood != "" || tr.Local || tr.OnlyOnce:
	case tr.Returns:
		w("no known_good kernel: after a failed boot it is restarted, and what comes up is taken as it is")
	default:
		w("no known_good kernel: after a failed boot nothing brings it back")
	}
	switch {
	case t.Power != nil || tr.OnlyOnce:
	case t.Console != nil:
		w("no power driver: a hang here ends this lane, unless magic SysRq over its console still works")
	default:
		w("no power driver: a hang here ends this lane")
	}
	if t.Console == nil && !tr.Local && !tr.OnlyOnce {
		w("no console: a hang and a network failure cannot be told apart")
	}
	if tr.OnlyOnce {
		w("boot method %q starts nothing: one boot per run, and the boots after it are skipped", t.BootKind)
	}
	if tr.HostBound {
		w("its figures depend on the controller's load: not comparable with others")
	}
}

// reasonNA says why a cell cannot be had, "" when it can.
func reasonNA(t *config.Target, k *config.Kernel, s *config.Scenario) string {
	resolved, ok := k.For(t)
	if targets.TraitsOf(t.Boot).Image && !ok {
		return fmt.Sprintf("kernel %s has no image for %s (%s)", k.Name, t.Name, t.Arch)
	}
	if why := s.Run.Needs().GoAgent; why != "" {
		if t.Agent == "shell" {
			return "needs the Go agent (" + why + "), and the target has agent = \"shell\""
		}
		if old := tooOldForGo(resolved.Release); old != "" {
			return "needs the Go agent (" + why + "), and kernel " + old
		}
	}
	if s.Common.Timeslice > 0 {
		if why := targets.TimesliceReason(k.Scheduler); why != "" {
			return "timeslice: " + why
		}
	}
	return ""
}

func wanted(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }

func bootEstimate(lab *config.Lab, t *config.Target, h History, b Boot) time.Duration {
	d := bootTime(t, h) + t.Settle
	for _, s := range b.Trials {
		d += trialTime(lab, s.Cell, targets.TraitsOf(t.Boot), h)
	}
	return d
}
