package compare

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"kernsweep/orchestrator/stats"
)

// welch compares two means whose spread is known, the baseline's first.
func welch(a, b moments) *Within {
	w := &Within{Trials: [2]int{a.n, b.n}}
	va, vb := a.sd*a.sd/float64(a.n), b.sd*b.sd/float64(b.n)
	if va+vb == 0 {
		w.T, w.DF, w.P = stats.Missing("the trials have no spread"), stats.Missing("the trials have no spread"), stats.Missing("the trials have no spread")
		return w
	}
	t := (b.mean - a.mean) / math.Sqrt(va+vb)
	df := (va + vb) * (va + vb) / (va*va/float64(a.n-1) + vb*vb/float64(b.n-1))
	w.T, w.DF = stats.Num(t), stats.Num(df)
	if w.T.OK() && w.DF.OK() {
		w.P = stats.Num(2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Survival(math.Abs(t)))
		w.Separate = w.P.Value <= 0.05
	} else {
		w.P = stats.Missing("not a finite number")
	}
	return w
}
