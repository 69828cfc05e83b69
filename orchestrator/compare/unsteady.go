package compare

import (
	"fmt"
	"math"
	"math/rand/v2"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/stats"
)

// unsteady tells what is odd about the boots behind a comparison. None of it
// changes a number: a boot that is far off is no less a boot.
func (c *claim) unsteady() {
	c.drift()
	c.caveat()
	for _, s := range []struct {
		*side
		x stats.Sample
	}{{&c.a, c.x}, {&c.b, c.y}} {
		c.outliers(s.side, s.x)
		c.steps(s.side)
		var trials [][]float64
		for _, b := range s.boots {
			trials = append(trials, b.Values)
		}
		if w := stats.Warming(trials, s.step); w.Warming {
			c.soft("not settled", fmt.Sprintf("the first counted trial of %s is unlike the later ones: the workload had not settled, give it more warm-up trials", s.name),
				fmt.Sprintf("higher in %d and lower in %d of %d boots", w.Higher, w.Lower, w.Boots), "unlike on one side in at most half of the boots")
		}
	}
}

// caveat tells what stats says that the numbers of a comparison do not show:
// sessions that disagree, boots without any spread.
func (c *claim) caveat() {
	if c.hold == "" && c.SE.OK() && min(c.Boots[0], c.Boots[1]) > 1 && c.Note != "" {
		c.soft("read with care", c.Note, "", "")
	}
}

func (c *claim) drift() {
	d := stats.Drift(c.Effect, c.x, c.y)
	if !d.Flag {
		return
	}
	total := d.Total.Value // of logarithms, or of the mean
	if c.Scale == stats.Ratio {
		total = math.Expm1(total)
	}
	change := "a factor beyond all numbers"
	if stats.Num(total).OK() {
		change = percent(total)
	}
	evidence := fmt.Sprintf("%s from the first to the last of %d boots", change, len(c.x.Values)+len(c.y.Values))
	if d.T.OK() {
		evidence += fmt.Sprintf(", t = %s", statistic(d.T.Value))
	}
	c.soft("drift", "the values of both kernels drift along the run: heat, a filling cache, or a load that changes", evidence,
		"a slope with |t| below 2.6 or p above 0.01; below 2 or p above 0.05 where it makes more than the smallest effect")
}

func (c *claim) outliers(s *side, x stats.Sample) {
	var far []string
	for _, i := range stats.Outliers(x.Values, x.Resolution) {
		far = append(far, fmt.Sprintf("boot %d: %s, median %s", s.boots[i].Boot, c.absolute(x.Values[i]), c.absolute(stats.Quantile(x.Values, 0.5))))
	}
	if len(far) > 0 {
		c.soft("outlier", fmt.Sprintf("%s of %s far from the others, and counted all the same", plural.Of(len(far), "boot"), s.name),
			listed(far), "within 5 × 1.4826 × MAD of the median")
	}
}

// mostSeries is how many boots of a side are looked through for a step.
const mostSeries = 20

// steps tells a level that changed inside most boots that gave a series: seconds
// of one transfer, or many trials. The draws are the same each time.
func (c *claim) steps(s *side) {
	looked, found, first := 0, 0, ""
	for _, b := range s.boots[:min(len(s.boots), mostSeries)] {
		step := stats.ChangePoint(b.Values, rand.New(rand.NewPCG(uint64(b.Boot), 1)))
		if !c.Primary || !step.P.OK() {
			continue
		}
		looked++
		if !step.Found {
			continue
		}
		if found++; found == 1 {
			first = fmt.Sprintf("boot %d: mean %s, and %s from value %d of %d on", b.Boot, c.absolute(step.Before.Value), c.absolute(step.After.Value), step.At+1, len(b.Values))
		}
	}
	if 2*found > looked {
		c.soft("level changed", fmt.Sprintf("the values of %s change their level inside a boot: its mean is of two states of the machine", s.name),
			fmt.Sprintf("in %d of %s, first in %s", found, plural.Of(looked, "boot"), first), "no step with p below 0.01 in more than half of the boots")
	}
}
