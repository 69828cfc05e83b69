package stats

import (
	"cmp"
	"math"
	"slices"
)

// Gain is how much better a kernel was than its baseline in one block and cell:
// ln of the ratio, positive when better, whatever direction the metric has.
type Gain struct {
	Block  int
	Family string // of workloads; families weigh alike
	Cell   string // within the family: cells of a family share its weight
	Log    float64
}

// GainOf two values of a metric in one block; false when they have no ratio.
func GainOf(base, v float64, b Better) (float64, bool) {
	g := float64(b) * (logOf(v) - logOf(base))
	return g, base > 0 && v > 0 && Num(g).OK()
}

// Overall is one figure over workloads. Gain and its interval are shares.
type Overall struct {
	Blocks   int      // that held every cell
	Left     int      // blocks that lacked one: a mean over other cells is another figure
	Families []string // sorted
	Gain     Number
	Low      Number // 95 %: Student's t over blocks, which keeps what the workloads of one boot have in common
	High     Number
	P        Number // of the t
}

// OverallOf is the geometric mean over workload families of the gains of each
// block, and over blocks. Gains that are no finite numbers count as not there;
// of a cell that occurs twice in a block the mean counts.
func OverallOf(gains []Gain) Overall {
	type key struct{ family, cell string }
	cells := map[key]bool{}
	blocks := map[int]map[key][]float64{}
	for _, g := range gains {
		if blocks[g.Block] == nil {
			blocks[g.Block] = map[key][]float64{}
		}
		if !Num(g.Log).OK() {
			continue
		}
		k := key{g.Family, g.Cell}
		cells[k] = true
		blocks[g.Block][k] = append(blocks[g.Block][k], g.Log)
	}
	o := Overall{}
	size := map[string]float64{}
	for k := range cells {
		size[k.family]++
	}
	for f := range size {
		o.Families = append(o.Families, f)
	}
	slices.Sort(o.Families)
	order := make([]key, 0, len(cells)) // sums do not depend on the order of a map
	for k := range cells {
		order = append(order, k)
	}
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.cell, b.cell))
	})
	numbers := make([]int, 0, len(blocks))
	for n := range blocks {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var mean []float64
	for _, n := range numbers {
		if len(blocks[n]) < len(cells) || len(cells) == 0 {
			o.Left++
			continue
		}
		g := 0.0
		for _, k := range order {
			g += MomentsOf(blocks[n][k]).Mean / size[k.family] / float64(len(size))
		}
		mean = append(mean, g)
	}
	o.Blocks = len(mean)
	o.interval(mean)
	return o
}

func (o *Overall) interval(g []float64) {
	if len(g) == 0 {
		o.Gain = Missing("no block holds every workload of both kernels")
		o.Low, o.High, o.P = o.Gain, o.Gain, o.Gain
		return
	}
	m := MomentsOf(g)
	o.Gain = numOr(math.Expm1(m.Mean), "more than a number holds")
	if m.N < 2 {
		o.Low = Missing("one block")
		o.High, o.P = o.Low, o.Low
		return
	}
	se := m.SD / math.Sqrt(float64(m.N))
	half := quantileT(0.975, float64(m.N-1)) * se
	o.Low = numOr(math.Expm1(m.Mean-half), "more than a number holds")
	o.High = numOr(math.Expm1(m.Mean+half), "more than a number holds")
	switch {
	case se > 0:
		o.P = pOfT(m.Mean/se, float64(m.N-1))
	case m.Mean == 0:
		o.P = Num(1)
	default:
		o.P = Num(0)
	}
}
