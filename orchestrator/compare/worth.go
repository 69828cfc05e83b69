package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/stats"
)

// mostWorth is how many cells are proposed for more boots.
const mostWorth = 2

// moreCommand measures so many further blocks of the comparison's cells; "": the
// run cannot be gone on with.
func (j *judging) moreCommand(c *claim) string {
	boot := j.targets[c.Target].Boot
	if c.More == 0 || boot == "" || boot == "none" {
		return ""
	}
	return fmt.Sprintf("kernsweep rerun %s --more %d --target %s --workload %s", paste.Word(j.run), c.More, paste.Word(c.Target), paste.Word(c.Workload))
}

// byHand says which boots to make where no command does.
func (j *judging) byHand(c *claim, n int) string {
	if j.targets[c.Target].Boot == "none" {
		return fmt.Sprintf("%s has boot method \"none\" and gives one boot a run: give it one that boots kernels, then %d boots of each", c.Target, n)
	}
	return fmt.Sprintf("no command adds to this run: boot %s and %s %d times each, in turns, prove each boot, and run %s in each", c.a.name, c.b.name, n, c.Workload)
}

// worth are the cells most worth more boots: inconclusive ones that few boots may
// settle, of these the ones with the largest difference.
func (j *judging) worth(claims []*claim) []Worth {
	type scored struct {
		Worth
		score float64
	}
	var all []scored
	for _, c := range claims {
		if !c.Primary || c.Verdict != stats.Inconclusive || !c.Change.OK() || c.Kernel == c.Baseline {
			continue
		}
		w := Worth{Key: c.Key, Metric: c.Metric.Name, Boots: c.More, Command: c.MoreCommand}
		switch {
		case c.hold == "" && c.More > 0:
		case c.unproven:
			w.Boots = j.rules.MinBoots
		default:
			continue // no number of boots would help
		}
		w.Why = fmt.Sprintf("observed %s, %s", c.observed(), c.bootsWords())
		if w.Command == "" {
			w.Why += "; " + j.byHand(c, w.Boots)
		}
		all = append(all, scored{w, c.size() / float64(w.Boots)})
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var out []Worth
	for _, s := range all {
		same := slices.ContainsFunc(out, func(w Worth) bool {
			return w.Target == s.Target && w.Workload == s.Workload && w.Scenario == s.Scenario
		})
		if !same && len(out) < mostWorth {
			out = append(out, s.Worth)
		}
	}
	return out
}

// size is how large the observed difference is, whichever its direction: a
// logarithm, or in widths of the interval where there is none.
func (c *claim) size() float64 {
	if c.Scale == stats.Ratio {
		return math.Abs(math.Log1p(c.Change.Value))
	}
	if c.High.OK() && c.High.Value > c.Low.Value {
		return math.Abs(c.Change.Value) / (c.High.Value - c.Low.Value) / 10
	}
	return 0
}
