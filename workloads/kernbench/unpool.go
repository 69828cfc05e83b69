package kernbench

import (
	"fmt"
	"math"
	"slices"
)

// Unpool takes the runs of earlier levels out of pooled ones and returns the
// levels as they were measured, each over runs runs. The script clears only the
// elapsed time at the start of a level, so that a level's other figures are
// those of all runs since the last level that was not pooled. A figure that
// cannot be recovered is missing with the reason.
func Unpool(levels []Level, runs int) []Level {
	out := slices.Clone(levels)
	before := 0 // runs inside the figures of the preceding level
	for i, l := range levels {
		if !l.Pooled {
			before = runs
			continue
		}
		for m := User; m < metrics; m++ {
			if i == 0 {
				out[i].Figures[m] = Figure{Missing: "pooled with a level that is not in the log"}
				continue
			}
			out[i].Figures[m] = unpool(levels[i-1].Figures[m], l.Figures[m], before, before+runs, m.grid())
		}
		out[i].Pooled = false
		before += runs
	}
	return out
}

// unpool takes the first n1 runs (a) out of n2 runs (b). Sums of runs are
// multiples of grid, which mostly restores the digits that the log cut off.
func unpool(a, b Figure, n1, n2 int, grid float64) Figure {
	switch {
	case a.Missing != "":
		return Figure{Missing: "pooled with a level whose figure is missing: " + a.Missing}
	case b.Missing != "":
		return b
	}
	f1, f2 := float64(n1), float64(n2)
	n := f2 - f1
	sum1, open1 := sum(a.Mean, f1, grid)
	sum2, open2 := sum(b.Mean, f2, grid)
	f := Figure{Mean: (sum2 - sum1) / n, Open: (open1 + open2) / n}
	if f.Mean < 0 {
		return Figure{Missing: fmt.Sprintf("un-pooling gives %g: the level has another number of runs than %g", f.Mean, n)}
	}
	if n < 2 || !b.HasSD || n1 > 1 && !a.HasSD || f.Open > 0 {
		return f
	}
	m1, m2 := sum1/f1, sum2/f2
	squares1 := a.SD*a.SD*(f1-1) + f1*m1*m1
	squares2 := b.SD*b.SD*(f2-1) + f2*m2*m2
	// Rounded input can leave a spread of nothing slightly below 0.
	f.SD, f.HasSD = math.Sqrt(max(0, (squares2-squares1-n*f.Mean*f.Mean)/(n-1))), true
	return f
}

// sum is the sum of n runs whose mean was printed with six digits: the middle of
// the multiples of grid that fit, and how far from it they go.
func sum(mean, n, grid float64) (middle, open float64) {
	half := 0.0
	if mean > 0 {
		half = 0.5000001 * math.Pow(10, math.Floor(math.Log10(mean))-5)
	}
	low, high := math.Ceil((mean-half)*n/grid), math.Floor((mean+half)*n/grid)
	if low > high { // not on the grid: another tool's log
		return mean * n, half * n
	}
	return (low + high) / 2 * grid, (high - low) / 2 * grid
}

// Mean is the figure of single runs; none makes a missing one.
func Mean(runs []float64) Figure {
	if len(runs) == 0 {
		return Figure{Missing: "no run"}
	}
	var f Figure
	n := float64(len(runs))
	for _, v := range runs {
		f.Mean += v / n
	}
	for _, v := range runs {
		f.SD += (v - f.Mean) * (v - f.Mean)
	}
	if f.HasSD = len(runs) > 1; f.HasSD {
		f.SD = math.Sqrt(f.SD / (n - 1))
	} else {
		f.SD = 0
	}
	return f
}
