package plan

import (
	"errors"
	"fmt"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets"
)

// pilotBoots and pilotRepeat are enough to tell the spread between boots from
// that inside one.
const pilotBoots, pilotRepeat = 3, 5

// Changes are what a command line changes of a sweep's design. The zero value
// changes nothing.
type Changes struct {
	Boots  int  // of each kernel; 0: as configured
	Auto   bool // boots = "auto"
	Repeat int  // 0: as configured
	// NoiseFloor measures each target's baseline kernel alone, twice as often, to
	// compare it with itself.
	NoiseFloor bool
	Pilot      bool // to tell how figures vary: it is to decide nothing
}

// Pilot is a small run of all cells, from which Propose tells how many boots and
// repeats the sweep needs.
func Pilot() Changes { return Changes{Boots: pilotBoots, Repeat: pilotRepeat, Pilot: true} }

// check refuses what does not go together.
func (c Changes) check(sweep *config.Sweep, f Filter) error {
	switch {
	case c.Auto && sweep.Order == config.Blocked:
		return fmt.Errorf("sweep %s has order = \"blocked\": boots = \"auto\" needs \"interleaved\", since it looks at all kernels after each block", sweep.Name)
	case c.NoiseFloor && len(f.Kernels) > 0:
		return errors.New("a noise floor is measured with each target's baseline kernel: leave --kernel out")
	}
	return nil
}

// apply is a copy of a sweep, changed.
func (c Changes) apply(sweep *config.Sweep) *config.Sweep {
	s := *sweep
	switch {
	case c.Boots > 0:
		s.Boots, s.Auto = c.Boots, false
	case c.Auto && !s.Auto:
		s.Boots, s.Auto = config.MaxBoots, true
	}
	if c.Repeat > 0 {
		s.Repeat = c.Repeat
	}
	if !c.NoiseFloor {
		return &s
	}
	if s.Auto {
		s.Boots, s.Auto = config.MinBoots, false
	}
	s.Boots, s.Order, s.Matrices = 2*s.Boots, config.Interleaved, nil
	for _, m := range sweep.Matrices {
		if m.Baseline == "" && len(m.Kernels) > 0 {
			m.Baseline = m.Kernels[0]
		}
		m.Kernels = []string{m.Baseline}
		s.Matrices = append(s.Matrices, m)
	}
	return &s
}

func designOf(s *config.Sweep) results.Design {
	d := results.Design{Order: s.Order, HalfWidth: s.HalfWidth, Effect: s.Effect, Primary: s.Primary}
	if d.Order == "" {
		d.Order = config.Interleaved
	}
	if s.Auto {
		d.Auto, d.MinBoots, d.MaxBoots = true, config.MinBoots, s.Boots
	}
	return d
}

// family counts the primary comparisons, and warns where so many cannot be
// decided by so few boots. boots = "auto" makes as many as deciding takes.
func (e *expansion) family() {
	d, n := &e.plan.Design, e.sweep.Boots
	warn := func(format string, a ...any) {
		e.plan.Warnings = append(e.plan.Warnings, fmt.Sprintf(format, a...))
	}
	if d.Order == config.Blocked {
		warn("order = \"blocked\": all boots of one kernel come before those of the next, so whatever changes in between looks like a difference between them; no verdict can tell the two apart")
	}
	if d.NoiseFloor {
		n /= 2
	}
	m := e.comparisons()
	e.plan.Family = m
	if m == 0 {
		if len(d.Primary) > 0 {
			warn("none of the declared primary comparisons is in this plan: figures will have intervals and no verdict")
		}
		return
	}
	rules := stats.Defaults()
	needs := bootsFor(m, rules)
	if d.Auto {
		d.MinBoots, n = max(d.MinBoots, min(needs, d.MaxBoots)), d.MaxBoots
	}
	switch {
	case e.pilot:
		warn("a pilot: %s of each kernel decide nothing; kernsweep plan %s then proposes boots and repeat", count(n, "boot"), e.sweep.Name)
	case n < rules.MinBoots:
		warn("%s of each kernel: every verdict will be inconclusive, since fewer than %d on each side show nothing", count(n, "boot"), rules.MinBoots)
	case n < needs:
		warn("%s with %d boots of each kernel: none can reach p = %g after correction for their number; it needs %d boots, or at most %s: declare what the sweep is to decide, primary = […]",
			count(m, "primary comparison"), n, rules.Alpha, needs, count(int(rules.Alpha/stats.Attainable(n, n)), "comparison"))
	}
}

// comparisons counts the primary ones of the plan.
func (e *expansion) comparisons() int {
	n := 0
	for _, t := range e.targets {
		if targets.TraitsOf(t.Boot).OnlyOnce {
			continue // one boot of one kernel
		}
		for _, cells := range e.byLane[t.Name] {
			for _, c := range cells {
				base := c
				base.Kernel = e.baseline[c]
				_, both := e.baseline[base]
				s := scenarioOf(e.lab, c)
				if s == nil || !both || base == c && !e.plan.Design.NoiseFloor {
					continue
				}
				for _, m := range s.Run.Metrics() {
					if e.plan.Design.Decides(c.Workload, c.Scenario, m) {
						n++
					}
				}
			}
		}
	}
	return n
}

// bootsFor are the fewest boots on each side with which one of m comparisons can
// be decided after Holm's correction.
func bootsFor(m int, r stats.Rules) int {
	n := r.MinBoots
	for stats.Attainable(n, n)*float64(m) > r.Alpha {
		n++
	}
	return n
}

// Takes is how long the plan takes, in words: a span with boots = "auto".
func (p *Plan) Takes() string {
	most := Round(p.Estimate())
	if !p.Design.Auto {
		return "about " + most
	}
	least := time.Duration(0)
	for _, l := range p.Lanes {
		d := time.Duration(0)
		for _, b := range l.Boots {
			if b.Block <= p.Design.MinBoots {
				d += b.Estimate
			}
		}
		least = max(least, d)
	}
	if Round(least) == most {
		return "about " + most
	}
	return fmt.Sprintf("about %s to %s", Round(least), most)
}

// EnoughText says why a lane left blocks out.
func EnoughText(e *results.Enough) string {
	return fmt.Sprintf("enough: %s, widest ±%s (%s); ±%s was asked for", count(e.Blocks, "block"), percent(e.HalfWidth), e.Widest, percent(e.Wanted))
}

// percent shows a share.
func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
