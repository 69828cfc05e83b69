package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm corrects the p-values of a family (Holm 1979); a missing one is not of
// the family and stays missing.
func Holm(p []Number) []Number {
	out := slices.Clone(p)
	order := byP(p)
	worst := 0.0
	for rank, i := range order {
		worst = math.Max(worst, math.Min(1, p[i].Value*float64(len(order)-rank)))
		out[i] = Num(worst)
	}
	return out
}

// byP gives the indexes of the p-values that are there, the smallest first.
func byP(p []Number) []int {
	var order []int
	for i := range p {
		if p[i].OK() {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a].Value, p[b].Value) })
	return order
}

// Family fills Holm and HolmAttainable of the cases of one family: the declared
// primary comparisons of a campaign. Cases without a P are not of the family.
func Family(cases []Case) []Case {
	out := slices.Clone(cases)
	p := make([]Number, len(out))
	for i := range out {
		p[i] = out[i].P
	}
	holm, order := Holm(p), byP(p)
	for i := range out {
		out[i].Holm, out[i].HolmAttainable = holm[i], p[i]
		if p[i].OK() {
			out[i].HolmAttainable = Num(holmOf(out[i].Attainable.Value, i, order, p))
		}
	}
	return out
}

// holmOf is the corrected p of case i if its p were best.
func holmOf(best float64, i int, order []int, p []Number) float64 {
	worst, left := 0.0, len(order)
	for _, j := range order {
		if j == i {
			continue
		}
		if p[j].Value > best {
			break
		}
		worst = math.Max(worst, p[j].Value*float64(left))
		left--
	}
	return math.Min(1, math.Max(worst, best*float64(left)))
}
