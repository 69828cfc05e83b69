package plan

import (
	"math/rand/v2"
	"slices"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// lane orders the boots of one target. The generator depends on the seed and
// the target only, so a filtered sweep keeps the order of the others.
func (e *expansion) lane(t *config.Target) Lane {
	rng := rand.New(rand.NewPCG(uint64(e.plan.Seed), hashOf(t.Name)))
	l := Lane{Target: t.Name}
	blocks := e.sweep.Boots
	if e.plan.Design.Auto && targets.TraitsOf(t.Boot).OnlyOnce {
		blocks = 1 // there will be no second boot
	}
	for _, s := range starts(rng, e.kernels[t.Name], blocks, e.sweep.Order) {
		b := Boot{Number: len(l.Boots) + 1, Block: s.block, Kernel: s.kernel}
		b.Trials = e.plan.trials(rand.New(rand.NewPCG(s.cells, 0)), e.byLane[t.Name][s.kernel], b)
		b.Estimate = bootEstimate(e.lab, t, e.history, b)
		l.Estimate += b.Estimate
		l.Boots = append(l.Boots, b)
	}
	return l
}

// start is one boot in the order of a lane.
type start struct {
	block  int
	kernel string
	cells  uint64 // seed of the order of its cells: the same for all kernels of a block
}

// starts are the boots of a lane in order: block after block, or kernel after
// kernel.
func starts(rng *rand.Rand, kernels []string, blocks int, order string) []start {
	var out []start
	if order != config.Blocked {
		var now []string
		for block := 1; block <= blocks; block++ {
			now = nextOrder(rng, now, kernels, block)
			cells := rng.Uint64()
			for _, k := range now {
				out = append(out, start{block, k, cells})
			}
		}
		return out
	}
	cells := make([]uint64, blocks)
	for i := range cells {
		cells[i] = rng.Uint64()
	}
	for _, k := range nextOrder(rng, nil, kernels, 1) {
		for i, c := range cells {
			out = append(out, start{i + 1, k, c})
		}
	}
	return out
}

// nextOrder shuffles the kernels of a block; every even block mirrors the one
// before it (ABBA), so that a slow drift falls on all kernels alike.
func nextOrder(rng *rand.Rand, last, kernels []string, block int) []string {
	order := slices.Clone(kernels)
	if block%2 == 0 && len(last) == len(order) {
		order = slices.Clone(last)
		slices.Reverse(order)
		return order
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// trials of one boot: cells in shuffled order, the same for every kernel of a
// block; each cell's warm-up (repeat 0, -1, …) directly before its repeats.
func (p *Plan) trials(rng *rand.Rand, cells []results.Cell, b Boot) []results.Slot {
	cells = slices.Clone(cells)
	rng.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	var out []results.Slot
	for _, c := range cells {
		for r := 1 - p.Warmup; r <= p.Repeat; r++ {
			out = append(out, results.Slot{Cell: c, Block: b.Block, Repeat: r, Boot: b.Number})
		}
	}
	return out
}
