package plan

import (
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// newest is how many of the newest measurements of a kind decide: the slowest of
// them, so that one odd boot does not weigh on a whole night.
const newest = 5

// Costs are how long the boots and trials of a lane take: as this run has seen,
// else as earlier runs have, else as declared. One goroutine may use it.
type Costs struct {
	lab     *config.Lab
	target  *config.Target
	traits  targets.BootTraits
	once    bool
	history History
	waits   map[string]time.Duration // workload.scenario -> for other lanes, for what they share
	boots   map[string][]time.Duration
	failed  map[string][]time.Duration // boots that failed, by kernel
	trials  map[results.Cell][]time.Duration
}

// NewCosts are the costs of a target's lane in p, before it begins.
func NewCosts(lab *config.Lab, p *Plan, target string, h History) *Costs {
	c := &Costs{lab: lab, target: lab.Target(target), history: h, waits: map[string]time.Duration{},
		boots: map[string][]time.Duration{}, failed: map[string][]time.Duration{}, trials: map[results.Cell][]time.Duration{}}
	if c.target != nil {
		c.traits = targets.TraitsOf(c.target.Boot)
		c.once = c.traits.OnlyOnce
		c.contend(p)
	}
	return c
}

// SawBoot notes how long a boot of a kernel took until its first trial, settling
// included.
func (c *Costs) SawBoot(kernel string, d time.Duration) {
	c.boots[kernel] = saw(c.boots[kernel], d)
}

// SawFailure notes how long a boot of a kernel took that failed, until the lane
// could go on.
func (c *Costs) SawFailure(kernel string, d time.Duration) {
	c.failed[kernel] = saw(c.failed[kernel], d)
}

// SawTrial notes how long a trial took from one to the next, waiting included.
func (c *Costs) SawTrial(cell results.Cell, d time.Duration) {
	c.trials[cell] = saw(c.trials[cell], d)
}

func saw(list []time.Duration, d time.Duration) []time.Duration {
	list = append(list, d)
	return list[max(0, len(list)-newest):]
}

// Boot is the cost of a planned boot with its trials.
func (c *Costs) Boot(b Boot) time.Duration {
	d := c.Start(b.Kernel)
	for _, s := range b.Trials {
		d += c.Trial(s.Cell)
	}
	return d
}

// Start is the cost of a boot until its first trial.
func (c *Costs) Start(kernel string) time.Duration {
	if seen := slices.Concat(c.boots[kernel], c.failed[kernel]); len(seen) > 0 {
		return slices.Max(seen)
	}
	var others []time.Duration
	for _, seen := range c.boots {
		others = append(others, seen...)
	}
	if len(others) > 0 {
		return slices.Max(others)
	}
	if c.target == nil {
		return 0
	}
	return bootTime(c.target, c.history) + c.target.Settle
}

// Trial is the cost of a trial of a cell.
func (c *Costs) Trial(cell results.Cell) time.Duration {
	if seen := c.trials[cell]; len(seen) > 0 {
		return slices.Max(seen)
	}
	var alike []time.Duration // with another kernel
	for other, seen := range c.trials {
		if other.Workload == cell.Workload && other.Scenario == cell.Scenario {
			alike = append(alike, seen...)
		}
	}
	if len(alike) > 0 {
		return slices.Max(alike)
	}
	return trialTime(c.lab, cell, c.traits, c.history) + c.waits[cell.Workload+"."+cell.Scenario]
}

// Home is the cost of ending the lane after a boot of kernel last.
func (c *Costs) Home(last string) time.Duration {
	if c.target == nil || c.traits.Local || c.once || c.target.KnownGood == "" || c.target.KnownGood == last {
		return perTrial
	}
	return c.Start(c.target.KnownGood) - c.target.Settle
}

// contend adds the time for which each other lane may hold what a trial shares
// with it: one trial of theirs, as nobody is passed over.
func (c *Costs) contend(p *Plan) {
	for _, b := range c.lane(p).Boots {
		for _, s := range b.Trials {
			id := s.Workload + "." + s.Scenario
			if _, done := c.waits[id]; done {
				continue
			}
			mine := shared(c.lab, c.target, s.Cell)
			for _, l := range p.Lanes {
				if l.Target != c.target.Name {
					c.waits[id] += c.longest(l, mine)
				}
			}
		}
	}
}

func (c *Costs) lane(p *Plan) Lane {
	for _, l := range p.Lanes {
		if l.Target == c.target.Name {
			return l
		}
	}
	return Lane{}
}

// longest is the longest trial of a lane that needs one of the names.
func (c *Costs) longest(l Lane, names []string) time.Duration {
	var d time.Duration
	t := c.lab.Target(l.Target)
	if t == nil || len(names) == 0 || len(l.Boots) == 0 {
		return 0
	}
	for _, b := range l.InBlocks()[0] {
		for _, s := range b.Trials {
			if slices.ContainsFunc(shared(c.lab, t, s.Cell), func(n string) bool { return slices.Contains(names, n) }) {
				d = max(d, trialTime(c.lab, s.Cell, targets.TraitsOf(t.Boot), c.history))
			}
		}
	}
	return d
}

// shared names what a trial holds that a trial elsewhere may need too.
func shared(lab *config.Lab, t *config.Target, cell results.Cell) []string {
	names := []string{"target " + t.Name}
	for _, u := range t.Uses {
		names = append(names, "uses "+u)
	}
	if s := scenarioOf(lab, cell); s != nil && s.Run.Needs().Peer {
		names = append(names, "target "+strings.TrimPrefix(s.Common.Peer, "target."))
	}
	return names
}

func scenarioOf(lab *config.Lab, cell results.Cell) *config.Scenario {
	w := lab.Workload(cell.Workload)
	if w == nil {
		return nil
	}
	for i := range w.Scenarios {
		if w.Scenarios[i].Name == cell.Scenario {
			return &w.Scenarios[i]
		}
	}
	return nil
}

// bootTime is how long a boot of a target should take, without settling.
func bootTime(t *config.Target, h History) time.Duration {
	if d, ok := h.Boot[t.Name]; ok {
		return d
	}
	switch tr := targets.TraitsOf(t.Boot); {
	case tr.OnlyOnce:
		return 0
	case tr.Local:
		return bootLocal
	}
	return bootDevice
}

// trialTime is how long a trial of a cell should take.
func trialTime(lab *config.Lab, cell results.Cell, tr targets.BootTraits, h History) time.Duration {
	if d, ok := h.Trial[cell]; ok {
		return d
	}
	s := scenarioOf(lab, cell)
	if s == nil {
		return perTrial
	}
	d := s.Run.Estimate()
	if tr.Emulated {
		d *= emulation
	}
	return d + perTrial
}
