package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"

	"kernsweep/orchestrator/stats"
)

const (
	mostBoots = 15 // of each kernel: beyond that the spread is the trouble, not the number
	mostWorth = 2  // cells that are proposed
)

// more is how many further boots of each kernel may settle an inconclusive
// comparison; 0: none of a reasonable number. It looks at numbers of boots and at
// the interval's width, never at where the interval lies.
func (j *judging) more(c *claim) int {
	have := min(c.Boots[0], c.Boots[1])
	need := max(j.rules.MinBoots, j.enough(c))
	if have >= need {
		need = j.narrow(c)
	}
	return max(0, need-have)
}

// enough boots of each kernel make the exact test's smallest p significant within
// the family.
func (j *judging) enough(c *claim) int {
	times := 1.0
	if c.holmLeast.OK() && c.Attainable.OK() && c.Attainable.Value > 0 {
		times = c.holmLeast.Value / c.Attainable.Value
		if c.holmLeast.Value >= 1 { // cut off at 1: the others all count
			times = math.Max(times, float64(j.familySize))
		}
	}
	for n := j.rules.MinBoots; n < 40; n++ {
		if times*2*math.Exp(-combin.LogGeneralizedBinomial(float64(2*n), float64(n))) <= j.rules.Alpha {
			return n
		}
	}
	return 40
}

// narrow is how many boots of each kernel make the interval as narrow as wanted,
// if they spread as those on file do; 0: more than mostBoots.
func (j *judging) narrow(c *claim) int {
	if !c.HalfWidth.OK() || !c.DF.OK() || c.DF.Value <= 0 {
		return 0
	}
	n, m := float64(c.Boots[0]), float64(c.Boots[1])
	sd := c.HalfWidth.Value / quantile(c.DF.Value) / math.Sqrt(1/n+1/m)
	for k := max(j.rules.MinBoots, min(c.Boots[0], c.Boots[1])+1); k <= mostBoots; k++ {
		if quantile(float64(2*k-2))*sd*math.Sqrt(2/float64(k)) <= j.rules.HalfWidth {
			return k
		}
	}
	return 0
}

func quantile(df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(0.975)
}

// moreCommand measures so many further blocks of the comparison's cells; "": the
// run cannot be gone on with.
func (j *judging) moreCommand(c *claim) string {
	boot := j.targets[c.Target].Boot
	if c.More == 0 || boot == "" || boot == "none" {
		return ""
	}
	return fmt.Sprintf("kernsweep rerun %s --more %d --target %s --workload %s", j.run, c.More, c.Target, c.Workload)
}

// byHand says which boots to make where no command does.
func (j *judging) byHand(c *claim, n int) string {
	if j.targets[c.Target].Boot == "none" {
		return fmt.Sprintf("%s has boot method \"none\" and gives one boot a run: give it one that boots kernels, then %d boots of each", c.Target, n)
	}
	return fmt.Sprintf("this run cannot be gone on with: boot %s and %s %d times each, in turns, prove each boot, and run %s in each", c.a.name, c.b.name, n, c.Workload)
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
		case c.a.unproven != "" || c.b.unproven != "":
			w.Boots = j.rules.MinBoots
		default:
			continue // no number of boots would help
		}
		w.Why = c.Sentence
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
