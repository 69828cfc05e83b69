package compare

import (
	"fmt"
	"math"

	"kernsweep/orchestrator/stats"
)

// Thresholds of what is told beside a number and never changes it.
const (
	driftT      = 2.6    // |t| of a slope along the run (p about 0.01 at 20 boots)
	farAway     = 5      // an outlier's distance from the median, in deviations
	notSettled  = 3      // the same of a boot's first trial from the others
	settleTrial = 4      // trials in a boot from which on its first can be judged
	deviation   = 1.4826 // of a normal distribution, in median absolute deviations
	tooFlat     = 1e-9   // a spread below this share is rounding
)

// drift fits a line through what is left of the boot values when each kernel and
// session has its own mean.
func (c *claim) drift(turns []turn) {
	type cell struct {
		kernel  bool
		stratum int
	}
	x, z, n := map[cell]float64{}, map[cell]float64{}, map[cell]float64{}
	on := func(t turn) float64 {
		if c.Scale == stats.Ratio {
			return math.Log(t.value)
		}
		return t.value
	}
	for i, t := range turns {
		k := cell{t.kernel, t.stratum}
		x[k] += float64(i)
		z[k] += on(t)
		n[k]++
	}
	var xs, zs []float64
	for i, t := range turns {
		if k := (cell{t.kernel, t.stratum}); n[k] > 1 {
			xs, zs = append(xs, float64(i)-x[k]/n[k]), append(zs, on(t)-z[k]/n[k])
		}
	}
	slope, t, ok := line(xs, zs, len(n))
	if !ok || math.Abs(t) < driftT {
		return
	}
	total := slope * float64(len(turns)-1)
	if c.Scale == stats.Ratio {
		if math.Abs(total) < tooFlat {
			return
		}
		total = math.Expm1(total)
	}
	c.soft("drift", "the values drift along the run: heat, a filling cache, or a load that changes",
		fmt.Sprintf("%s from the first to the last of %d boots", c.change(total), len(turns)), fmt.Sprintf("a slope with |t| below %.1f", driftT))
}

// line is the least-squares slope through the origin of centred values, from
// groups whose means were taken out, and its t.
func line(x, y []float64, groups int) (slope, t float64, ok bool) {
	free := float64(len(x) - groups - 1)
	var sxx, sxy, rest float64
	for i := range x {
		sxx += x[i] * x[i]
		sxy += x[i] * y[i]
	}
	if free < 2 || sxx == 0 || sxy == 0 {
		return 0, 0, false
	}
	slope = sxy / sxx
	for i := range x {
		d := y[i] - slope*x[i]
		rest += d * d
	}
	se := math.Sqrt(rest / free / sxx)
	t = slope / math.Max(se, 1e-9*math.Abs(slope)) // a perfect line has no error
	return slope, t, !math.IsNaN(t) && !math.IsInf(t, 0)
}

// outliers tells boots far from the others of their kernel. They stay: being far
// is no reason to drop a value.
func (c *claim) outliers() {
	for i, s := range []*side{&c.a, &c.b} {
		v := c.x.Values
		if i == 1 {
			v = c.y.Values
		}
		var far []string
		for k, b := range s.boots {
			if len(v) >= 4 && away(v[k], v, farAway) {
				far = append(far, fmt.Sprintf("boot %d: %s, median %s", b.Boot, c.figure(v[k]), c.figure(stats.Quantile(v, 0.5))))
			}
		}
		if len(far) > 0 {
			c.soft("outlier", fmt.Sprintf("%s of %s far from the others, and counted all the same", counted(len(far), "boot is", "boots are"), s.name),
				listed(far), fmt.Sprintf("within %d × %.4f × MAD of the median", farAway, deviation))
		}
	}
}

// away reports whether x is further from the median of v than so many deviations.
func away(x float64, v []float64, far float64) bool {
	middle := stats.Quantile(v, 0.5)
	off := make([]float64, len(v))
	for i := range v {
		off[i] = math.Abs(v[i] - middle)
	}
	spread := math.Max(stats.Quantile(off, 0.5)*deviation, tooFlat*math.Abs(middle))
	return math.Abs(x-middle) > far*spread
}

// unsettled tells when the first counted trial of most boots is unlike the
// others: the warm-up was too short.
func (c *claim) unsettled() {
	for _, s := range []*side{&c.a, &c.b} {
		first, boots := 0, 0
		for _, b := range s.boots {
			if len(b.Values) < settleTrial {
				continue
			}
			boots++
			if away(b.Values[0], b.Values[1:], notSettled) {
				first++
			}
		}
		if boots >= 2 && 2*first > boots {
			c.soft("not-settled", fmt.Sprintf("the first counted trial of %s is unlike the later ones: it had not settled, give the workload a longer warm-up", s.name),
				fmt.Sprintf("in %d of %d boots", first, boots), "in at most half of the boots")
		}
	}
}
