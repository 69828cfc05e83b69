package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// ExactBoots is the largest number of boots on a side for which the U test
// counts permutations. Above it the normal approximation is used, corrected for
// ties and continuity; at 50 boots the two differ by less than a tenth of p.
const ExactBoots = 50

// uTest is the two-sided p of the Mann-Whitney U test: twice the smaller tail of
// the permutation distribution of the rank sum, ties having their mean rank. With
// several sessions the values are aligned (the session's mean taken away) and
// permuted within sessions (Hodges and Lehmann 1962).
func uTest(strata []stratum) float64 {
	r := ranked(strata)
	var n [2]int
	for _, s := range strata {
		n[0], n[1] = n[0]+len(s.z[0]), n[1]+len(s.z[1])
	}
	if max(n[0], n[1]) <= ExactBoots {
		return exact(r)
	}
	return approximate(r)
}

// ranks of one session, doubled so that they are whole: by side.
type ranks [2][]int32

func ranked(strata []stratum) []ranks {
	type item struct {
		z         float64
		side, row int32
	}
	n, out := 0, make([]ranks, len(strata))
	for row, s := range strata {
		n += len(s.z[0]) + len(s.z[1])
		out[row] = ranks{make([]int32, 0, len(s.z[0])), make([]int32, 0, len(s.z[1]))}
	}
	all := make([]item, 0, n)
	for row, s := range strata {
		mean := 0.0
		if len(strata) > 1 {
			ma, _ := squares(s.z[0])
			mb, _ := squares(s.z[1])
			na, nb := float64(len(s.z[0])), float64(len(s.z[1]))
			mean = (na*ma + nb*mb) / (na + nb)
		}
		for side, z := range s.z {
			for _, v := range z {
				all = append(all, item{v - mean, int32(side), int32(row)})
			}
		}
	}
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(a.z, b.z) })
	// Aligned values that differ by rounding only are ties.
	tie := 0.0
	if len(strata) > 1 {
		tie = (all[len(all)-1].z - all[0].z) * 1e-12
	}
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].z-all[i].z <= tie {
			j++
		}
		for _, it := range all[i:j] {
			out[it.row][it.side] = append(out[it.row][it.side], int32(i+j+1)) // 2 * (i+1+j)/2
		}
		i = j
	}
	return out
}

// exact counts the permutations within sessions.
func exact(rows []ranks) float64 {
	step := 0
	for _, r := range rows {
		step = commonStep(step, r)
	}
	if step == 0 {
		return 1 // all values of each session are equal
	}
	dist, at := []float64{1}, 0
	for _, r := range rows {
		d, x := rankSums(r, step)
		dist, at = convolve(dist, d), at+x
	}
	lower, upper := 0.0, 0.0
	for s, p := range dist {
		if s <= at {
			lower += p
		}
		if s >= at {
			upper += p
		}
	}
	return math.Min(1, 2*math.Min(lower, upper))
}

// commonStep is the greatest common divisor of a and all distances of ranks.
func commonStep(a int, r ranks) int {
	low := lowest(r)
	for _, side := range r {
		for _, v := range side {
			for b := int(v - low); b != 0; {
				a, b = b, a%b
			}
		}
	}
	return a
}

func lowest(r ranks) int32 { return min(slices.Min(r[0]), slices.Min(r[1])) }

// rankSums is the distribution of the second side's sum of ranks, counted in
// steps from the lowest, and the sum observed.
func rankSums(r ranks, step int) (dist []float64, at int) {
	low := lowest(r)
	var all []int
	for side, v := range r {
		for _, x := range v {
			s := int(x-low) / step
			all = append(all, s)
			if side == 1 {
				at += s
			}
		}
	}
	slices.Sort(all)
	total := 0
	for _, s := range all {
		total += s
	}
	k := len(r[1])
	mirrored := len(r[0]) < k // count the smaller side, its complement has the rest
	if mirrored {
		k = len(r[0])
	}
	top := 0
	for _, s := range all[len(all)-k:] {
		top += s
	}
	dist = subsets(all, k, top)
	if !mirrored {
		return dist, at
	}
	flipped := make([]float64, total+1)
	for s, p := range dist {
		flipped[total-s] = p
	}
	return flipped, at
}

// subsets gives the share of all k-subsets of scores by their sum.
func subsets(scores []int, k, top int) []float64 {
	width := top + 1
	n := make([]float64, (k+1)*width)
	n[0] = 1
	reach := make([]int, k+1) // largest sum so far, by size
	for i, s := range scores {
		for j := min(i+1, k); j >= 1; j-- {
			from, to := n[(j-1)*width:j*width], n[j*width:(j+1)*width]
			for sum := min(reach[j-1], top-s); sum >= 0; sum-- {
				to[sum+s] += from[sum]
			}
			reach[j] = min(max(reach[j], reach[j-1]+s), top)
		}
	}
	dist := n[k*width:]
	all := 0.0
	for _, c := range dist {
		all += c
	}
	for i := range dist {
		dist[i] /= all
	}
	return dist
}

func convolve(a, b []float64) []float64 {
	if len(a) == 1 {
		return b
	}
	out := make([]float64, len(a)+len(b)-1)
	for i, x := range a {
		if x == 0 {
			continue
		}
		for j, y := range b {
			out[i+j] += x * y
		}
	}
	return out
}

// approximate is the normal approximation, whose variance is that of sampling
// without replacement within sessions: it has the correction for ties in it.
func approximate(rows []ranks) float64 {
	distance, variance := 0.0, 0.0
	for _, r := range rows {
		n, m := float64(len(r[0])), float64(len(r[1]))
		sum, sumB := 0.0, 0.0
		for side, v := range r {
			for _, x := range v {
				sum += float64(x) / 2
				if side == 1 {
					sumB += float64(x) / 2
				}
			}
		}
		mean, ss := sum/(n+m), 0.0
		for _, v := range r {
			for _, x := range v {
				d := float64(x)/2 - mean
				ss += d * d
			}
		}
		distance += sumB - m*mean
		if n+m > 1 {
			variance += n * m / ((n + m) * (n + m - 1)) * ss
		}
	}
	if variance == 0 {
		return 1
	}
	z := math.Max(0, math.Abs(distance)-0.5) / math.Sqrt(variance)
	return math.Min(1, 2*distuv.UnitNormal.Survival(z))
}

// attainable is the smallest two-sided p of the U test: 2 / product of C(n+m, n).
func attainable(strata []stratum) float64 {
	ln := math.Ln2
	for _, s := range strata {
		ln -= lnChoose(len(s.z[0]), len(s.z[1]))
	}
	return math.Min(1, math.Exp(ln))
}

// Attainable is the smallest p that n boots against m can give: 2 / C(n+m, n).
func Attainable(n, m int) float64 {
	if n < 1 || m < 1 {
		return 1
	}
	return math.Min(1, math.Exp(math.Ln2-lnChoose(n, m)))
}

func lnChoose(n, m int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
	return lg(n+m) - lg(n) - lg(m)
}
