package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// sheet prints a table and checks its bounds.
type sheet struct {
	t *testing.T
}

func (s sheet) row(what string, got, low, high float64) {
	s.t.Helper()
	bound := ""
	switch {
	case low > 0 && high < 1:
		bound = fmt.Sprintf("%.3f … %.3f", low, high)
	case low > 0:
		bound = fmt.Sprintf("≥ %.3f", low)
	case high < 1:
		bound = fmt.Sprintf("≤ %.3f", high)
	}
	s.t.Logf("%-78s %6.3f  %s", what, got, bound)
	if got < low || got > high {
		s.t.Errorf("%s: %.4f is not within %.3f … %.3f", what, got, low, high)
	}
}

func rounds() int {
	if os.Getenv("KERNSWEEP_LONG") == "1" {
		return 40000
	}
	return 3000
}

func TestSimulationDefaultDesign(t *testing.T) {
	n, s := rounds(), sheet{t}
	w := standard()
	null := judged(w, 1, n)
	s.row("default design, no difference: faster or slower", share(null.claims, n), 0, 0.05)
	s.row("… the naive design beside it: 15 trials a side as independent", share(naive(w, n), n), 0.15, 1)
	six := judged(w, 6, n/2)
	s.row("… family of 6, no differences: any faster or slower", share(six.claims, six.n), 0, 0.05)
	s.row("… coverage of the 95 % interval", share(null.covers, n), 0.93, 0.97)
	w.effect = 0.02
	s.row("2 % difference: faster", share(judged(w, 1, n).right, n), 0.5, 1)
	w.effect = math.Log(1.03)
	three := judged(w, 1, n)
	s.row("3 % difference: faster", share(three.right, n), 0.9, 1)
	s.row("… coverage", share(three.covers, n), 0.93, 0.97)
	s.row("… called same", share(three.same, n), 0, 0.001)
	six = judged(w, 6, n/4)
	s.row("… first of a family of 6: faster", share(six.right, six.n), 0.5, 1)
	w.effect = 0.05
	s.row("5 % difference: faster", share(judged(w, 1, n).right, n), 0.99, 1)
	w = standard()
	w.otherSD = 0.03
	unequal := judged(w, 1, n)
	s.row("boots of one kernel spread 3 %, no difference: faster or slower", share(unequal.claims, n), 0, 0.05)
	s.row("… coverage", share(unequal.covers, n), 0.93, 0.97)
	w = standard()
	w.bootSD, w.trialSD = 0.003, 0.003
	s.row("boots spread 0.3 %, no difference: called same", share(judged(w, 1, n).same, n), 0.8, 1)
	w.effect = math.Log(1.01)
	s.row("… the smallest effect, 1 %: wrongly called same", share(judged(w, 1, n).same, n), 0, 0.05)
}

func TestSimulationStopsOnWidth(t *testing.T) {
	n, s := rounds()/2, sheet{t}
	w := standard()
	for _, ofRatio := range []bool{false, true} {
		what := "auto, width of each cell"
		if ofRatio {
			what = "auto, width of the ratio"
		}
		w.effect, w.bootSD = 0, 0.01
		null := auto(w, ofRatio, n)
		s.row(fmt.Sprintf("%s (5 … 15 blocks, mean %.1f), no difference: faster or slower", what, null.boots/float64(n)), share(null.claims, n), 0, 0.05)
		s.row("… coverage", share(null.covers, n), 0.93, 0.97)
		w.effect = math.Log(1.03)
		s.row("… 3 % difference: faster", share(auto(w, ofRatio, n).right, n), 0.95, 1)
		w.effect, w.bootSD = 0, 0.005
		calm := auto(w, ofRatio, n)
		s.row(fmt.Sprintf("… boots spread 0.5 %% (mean %.1f blocks): faster or slower", calm.boots/float64(n)), share(calm.claims, n), 0, 0.05)
		s.row("… coverage", share(calm.covers, n), 0.93, 0.97)
		w.bootSD = 0.02
		wide := auto(w, ofRatio, n)
		s.row(fmt.Sprintf("… boots spread 2 %% (mean %.1f blocks): faster or slower", wide.boots/float64(n)), share(wide.claims, n), 0, 0.05)
		s.row("… coverage", share(wide.covers, n), 0.93, 0.97)
	}
}

func TestSimulationSessions(t *testing.T) {
	n, s := rounds(), sheet{t}
	w := standard()
	w.sessions, w.level = []int{3, 2}, 0.05
	two := judged(w, 1, n)
	s.row("sessions of 3 and 2 boots, their levels 5 % apart: faster or slower", share(two.claims, n), 0, 0.05)
	s.row("… coverage", share(two.covers, n), 0.93, 0.97)
	w.effect = math.Log(1.03)
	s.row("… 3 % difference: faster", share(judged(w, 1, n).right, n), 0.85, 1)
	w.effect, w.sessions = 0, []int{5, 1}
	one := judged(w, 1, n)
	s.row("sessions of 5 and 1 boots: faster or slower", share(one.claims, n), 0, 0.05)
	s.row("… coverage", share(one.covers, n), 0.93, 0.97)
	w.sessions = []int{1, 1, 1, 1, 1}
	pair := judged(w, 1, n)
	s.row("5 sessions of one boot each: faster or slower", share(pair.claims, n), 0, 0.05)
	s.row("… coverage", share(pair.covers, n), 0.93, 0.97)
}

func TestSimulationAwkwardValues(t *testing.T) {
	n, s := rounds(), sheet{t}
	for _, c := range []struct {
		name string
		set  func(*world)
		top  float64 // heavy tails widen the interval: it covers more
	}{
		{"heavy tails (t with 3 degrees of freedom)", func(w *world) { w.tail = student3 }, 0.99},
		{"one boot in ten slower by 5 sd", func(w *world) { w.tail = stray }, 0.99},
		{"lopsided (exponential)", func(w *world) { w.tail = func(r *rand.Rand) float64 { return r.ExpFloat64() - 1 } }, 0.99},
		{"printed in steps of two sd", func(w *world) { w.step = 2 }, 0.99},
		{"printed in steps of 6 sd", func(w *world) { w.step = 6 }, 1},
	} {
		w := standard()
		c.set(&w)
		y := judged(w, 1, n)
		s.row(c.name+", no difference: faster or slower", share(y.claims, n), 0, 0.05)
		s.row("… coverage", share(y.covers, n), 0.93, c.top)
	}
}

func student3(r *rand.Rand) float64 {
	chi := 0.0
	for range 3 {
		v := r.NormFloat64()
		chi += v * v
	}
	return r.NormFloat64() / math.Sqrt(chi) // variance 1: t3 / sqrt 3
}

func stray(r *rand.Rand) float64 {
	if r.IntN(10) == 0 {
		return r.NormFloat64() - 5
	}
	return r.NormFloat64()
}

func TestSimulationOrder(t *testing.T) {
	n, s := rounds(), sheet{t}
	w := standard()
	w.drift = 0.005
	abba := judged(w, 1, n)
	s.row("drift of 4.5 % over the run, ABBA, no difference: faster or slower", share(abba.claims, n), 0, 0.05)
	w.blocked = true
	s.row("… blocked: faster or slower", share(judged(w, 1, n).claims, n), 0, 0)
	w.hideOrder = true
	s.row("… blocked, by a tool that does not look at the order", share(judged(w, 1, n).claims, n), 0.5, 1)
	flags := func(w world) (flag, either int) {
		rng := rand.New(rand.NewPCG(20261130, 3))
		for range n {
			a, b := w.draw(rng)
			if d := Drift(0.01, a, b); d.Flag {
				flag++
				either++
			} else if d.Large {
				either++
			}
		}
		return flag, either
	}
	w.blocked, w.hideOrder = false, false
	flag, _ := flags(w)
	s.row("… that drift is flagged", share(flag, n), 0.9, 1)
	w.drift = 0
	flag, either := flags(w)
	s.row("no drift: flagged all the same", share(flag, n), 0, 0.1)
	s.row("… if |slope * length| above 1 % alone were a flag", share(either, n), 0.25, 1)
}

func TestSimulationSmallSigns(t *testing.T) {
	n, s := rounds(), sheet{t}
	rng := rand.New(rand.NewPCG(20261130, 4))
	w := standard()
	warm, out5, out10, step, covered := 0, 0, 0, 0, 0
	for i := range n {
		w.draw(rng)
		if Warming(w.baseRaw, 0).Warming {
			warm++
		}
		if len(Outliers(Summarise(w.baseRaw, 0).BootValues, 0)) > 0 {
			out5++
		}
		x := make([]float64, 30)
		for j := range x {
			x[j] = 100 + rng.NormFloat64()
		}
		if len(Outliers(x[:10], 0)) > 0 {
			out10++
		}
		if i < n/4 && ChangePoint(x, rng).Found {
			step++
		}
		var gains []Gain
		for block := range 5 {
			common := 0.01 * rng.NormFloat64() // what all workloads of a boot have in common
			for f, name := range []string{"a", "b", "c"} {
				gains = append(gains, Gain{block, name, "x", 0.02*float64(f) + common + 0.005*rng.NormFloat64()})
			}
		}
		if o := OverallOf(gains); math.Log1p(o.Low.Value) <= 0.02 && 0.02 <= math.Log1p(o.High.Value) {
			covered++
		}
	}
	s.row("5 boots of 3 trials, all alike: warming all the same", share(warm, n), 0, 0.05)
	s.row("5 normal boot values: an outlier flagged", share(out5, n), 0, 0.25)
	s.row("10 normal values: an outlier flagged", share(out10, n), 0, 0.1)
	s.row("30 normal values: a step found", share(step, n/4), 0.001, 0.015)
	s.row("overall gain of 3 workloads whose boots move together: coverage", share(covered, n), 0.93, 0.97)
}
