package stats

import (
	"math"
	"math/rand/v2"
)

// world is a cell and its baseline as they might be. Spreads are on logs.
type world struct {
	boots, repeat     int
	effect            float64 // true ln of the ratio
	bootSD, trialSD   float64
	otherSD           float64 // of the kernel's boots; 0: bootSD
	step              float64 // values are about 100 and printed in it
	drift             float64 // ln per boot
	blocked           bool
	tail              func(*rand.Rand) float64 // of boots, variance about 1; nil: normal
	sessions          []int                    // boots of each kernel in each; nil: one session
	level             float64                  // sd of the sessions' levels
	hideOrder         bool
	baseRaw, otherRaw [][]float64 // drawn
}

// draw gives both sides through Summarise, as a report does.
func (w *world) draw(rng *rand.Rand) (base, v Sample) {
	sizes := w.sessions
	if sizes == nil {
		sizes = []int{w.boots}
	}
	w.baseRaw, w.otherRaw = nil, nil
	var sess, order [2][]int
	seq := 0
	for s, n := range sizes {
		level := w.level * rng.NormFloat64()
		for i := range 2 * n {
			side := [4]int{0, 1, 1, 0}[i%4]
			if w.blocked {
				side = i / n
			}
			raw := w.boot(rng, side, level+w.drift*float64(seq))
			if side == 0 {
				w.baseRaw = append(w.baseRaw, raw)
			} else {
				w.otherRaw = append(w.otherRaw, raw)
			}
			sess[side], order[side] = append(sess[side], s+1), append(order[side], seq)
			seq++
		}
	}
	a, b := Summarise(w.baseRaw, w.step), Summarise(w.otherRaw, w.step)
	base = Sample{Values: a.BootValues, Session: sess[0], Order: order[0], Resolution: w.step}
	v = Sample{Values: b.BootValues, Session: sess[1], Order: order[1], Resolution: w.step}
	if w.hideOrder {
		base.Order, v.Order = nil, nil
	}
	return base, v
}

func (w *world) boot(rng *rand.Rand, side int, level float64) []float64 {
	z := rng.NormFloat64()
	if w.tail != nil {
		z = w.tail(rng)
	}
	spread := w.bootSD
	if side == 1 && w.otherSD > 0 {
		spread = w.otherSD
	}
	mean := level + spread*z + float64(side)*w.effect
	raw := make([]float64, w.repeat)
	for i := range raw {
		raw[i] = 100 * math.Exp(mean+w.trialSD*rng.NormFloat64())
		if w.step > 0 {
			raw[i] = math.Round(raw[i]/w.step) * w.step
		}
	}
	return raw
}

// standard is the default design on a machine with 1 % between boots.
func standard() world { return world{boots: 5, repeat: 3, bootSD: 0.01, trialSD: 0.005} }

type tally struct {
	n                           int
	claims, right, same, covers int
	boots                       float64
}

func (y *tally) add(verdicts []Verdict, c Comparison, truth float64) {
	y.n++
	claim := false
	for _, v := range verdicts {
		claim = claim || v == Faster || v == Slower
	}
	if claim {
		y.claims++
	}
	if verdicts[0] == Faster {
		y.right++
	}
	if verdicts[0] == Same {
		y.same++
	}
	if math.Log1p(c.Low.Value) <= truth && truth <= math.Log1p(c.High.Value) {
		y.covers++
	}
	y.boots += float64(c.Boots[0])
}

func share(k, n int) float64 { return float64(k) / float64(n) }

// judged runs a world through Compare, Family and Judge.
func judged(w world, family, rounds int) tally {
	rng := rand.New(rand.NewPCG(20261130, uint64(family)))
	y := tally{}
	for range rounds {
		cases := make([]Case, family)
		for i := range cases {
			base, v := w.draw(rng)
			cases[i] = Case{Comparison: Compare(base, v), Better: Higher}
		}
		var verdicts []Verdict
		for _, c := range Family(cases) {
			got, _ := Judge(c, Defaults())
			verdicts = append(verdicts, got)
		}
		y.add(verdicts, cases[0].Comparison, w.effect)
	}
	return y
}

// auto adds blocks until the intervals are narrow, as boots = "auto" does: those
// of both cells, or that of their ratio.
func auto(w world, ofRatio bool, rounds int) tally {
	rng := rand.New(rand.NewPCG(20261130, 99))
	y := tally{}
	for range rounds {
		var a, b [][]float64
		for n := 1; n <= 15; n++ {
			a, b = append(a, w.boot(rng, 0, 0)), append(b, w.boot(rng, 1, 0))
			if n < 5 {
				continue
			}
			sa, sb := Summarise(a, w.step), Summarise(b, w.step)
			c := Compare(Sample{Values: sa.BootValues}, Sample{Values: sb.BootValues})
			narrow, _ := Narrow(0.01, sa.HalfWidth(w.step), sb.HalfWidth(w.step))
			if ofRatio {
				narrow, _ = Narrow(0.01, c.HalfWidth)
			}
			if !narrow && n < 15 {
				continue
			}
			verdict, _ := Judge(Family([]Case{{Comparison: c, Better: Higher}})[0], Defaults())
			y.add([]Verdict{verdict}, c, w.effect)
			break
		}
	}
	return y
}

// naive takes every trial for a replication, as tools do that pool them.
func naive(w world, rounds int) (claims int) {
	rng := rand.New(rand.NewPCG(20261130, 5))
	flat := func(b [][]float64) (x []float64) {
		for _, t := range b {
			x = append(x, t...)
		}
		return x
	}
	for range rounds {
		w.draw(rng)
		if c := Compare(Sample{Values: flat(w.baseRaw)}, Sample{Values: flat(w.otherRaw)}); c.P.Value <= 0.05 {
			claims++
		}
	}
	return claims
}
