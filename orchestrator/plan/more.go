package plan

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
)

// Addition is what a later session adds to a run.
type Addition struct {
	Filter
	Blocks  int // of each kernel
	Session int // its number: with the run's seed it gives the order
}

// More is a plan of further blocks of cells that p has, numbered on from p's own,
// in an order drawn from the run's seed and the session. A kernel's baseline comes
// along, and so do all kernels unless some are named. p is the run's plan with all
// blocks that were ever added to it. The error is about names that p does not
// have, or that the lab lacks by now.
func (p *Plan) More(lab *config.Lab, a Addition, h History, baseline func(results.Cell) string) (*Plan, error) {
	if err := p.check(a.Filter); err != nil {
		return nil, err
	}
	s := Selection{Filter: a.Filter}
	out := *p
	out.Lanes, out.Warnings = nil, p.ofTargets()
	out.Design.Auto = false // so many were asked for
	blocks, first := a.Blocks, p.highest()+1
	if p.Design.NoiseFloor {
		blocks *= 2 // each half grows
	}
	for _, l := range p.Lanes {
		cells := l.cells(func(slot results.Slot) bool { return s.selects(slot) })
		for _, c := range slices.Clone(cells) {
			if b := c; baseline(c) != "" {
				b.Kernel = baseline(c)
				if !slices.Contains(cells, b) && slices.Contains(l.cells(nil), b) {
					cells = append(cells, b)
				}
			}
		}
		t := lab.Target(l.Target)
		if len(cells) == 0 || t == nil {
			continue
		}
		n := Lane{Target: l.Target}
		rng := rand.New(rand.NewPCG(uint64(p.Seed)+uint64(a.Session)<<32, hashOf(l.Target)))
		for _, st := range starts(rng, l.kernels(cells), blocks, p.Design.Order) {
			b := Boot{Number: len(n.Boots) + 1, Block: first + st.block - 1, Kernel: st.kernel}
			mine := slices.DeleteFunc(slices.Clone(cells), func(c results.Cell) bool { return c.Kernel != st.kernel })
			b.Trials = p.trials(rand.New(rand.NewPCG(st.cells, 0)), mine, b)
			b.Estimate = bootEstimate(lab, t, h, b)
			n.Estimate += b.Estimate
			n.Boots = append(n.Boots, b)
		}
		out.Lanes = append(out.Lanes, n)
	}
	if gone := out.gone(lab); len(gone) > 0 {
		return nil, fmt.Errorf("the configuration has no %s, which the run used: give the configuration of that run with -f, or choose what is left by --target, --kernel and --workload",
			strings.Join(gone, ", no "))
	}
	return &out, nil
}

// cells of a lane that have a slot that counts and is chosen (nil: any), in the
// order of the first boots.
func (l *Lane) cells(chosen func(results.Slot) bool) []results.Cell {
	var out []results.Cell
	seen := map[results.Cell]bool{}
	for _, b := range l.Boots {
		for _, s := range b.Trials {
			if !seen[s.Cell] && !s.Warmup() && (chosen == nil || chosen(s)) {
				seen[s.Cell] = true
				out = append(out, s.Cell)
			}
		}
	}
	slices.SortFunc(out, func(a, b results.Cell) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// kernels of cells, by name: the order of a lane's own plan is random already.
func (l *Lane) kernels(cells []results.Cell) []string {
	var out []string
	for _, c := range cells {
		if !slices.Contains(out, c.Kernel) {
			out = append(out, c.Kernel)
		}
	}
	slices.Sort(out)
	return out
}

// highest is the highest number of a block that the plan ever had.
func (p *Plan) highest() int {
	n := p.Blocks
	for _, l := range p.Lanes {
		for _, b := range l.Boots {
			n = max(n, b.Block)
		}
	}
	return n
}

// ofTargets are the warnings that still hold for a part of the plan.
func (p *Plan) ofTargets() []string {
	return slices.DeleteFunc(slices.Clone(p.Warnings), func(w string) bool { return !strings.HasPrefix(w, "target ") })
}

// Add takes over the blocks of a later session's plan that p does not have.
func (p *Plan) Add(later *Plan) {
	for _, l := range later.Lanes {
		i := slices.IndexFunc(p.Lanes, func(x Lane) bool { return x.Target == l.Target })
		if i < 0 {
			continue
		}
		for _, b := range l.Boots {
			if b.Block > p.Blocks {
				p.Lanes[i].add(b)
			}
		}
	}
}

// add takes a boot over, or those of its trials that an equal one lacks.
func (l *Lane) add(b Boot) {
	i := slices.IndexFunc(l.Boots, func(x Boot) bool { return x.Block == b.Block && x.Kernel == b.Kernel })
	if i < 0 {
		b.Number = len(l.Boots) + 1
		l.Boots, l.Estimate = append(l.Boots, b), l.Estimate+b.Estimate
		return
	}
	own := &l.Boots[i]
	for _, s := range b.Trials {
		if !slices.ContainsFunc(own.Trials, func(x results.Slot) bool { return x.Key() == s.Key() }) {
			own.Trials = append(own.Trials, s)
		}
	}
}

// Without leaves out the blocks that lanes did without, since they had enough
// after so many of the run's own; those that were added stay.
func (p *Plan) Without(enough map[string]int) {
	for i := range p.Lanes {
		l := &p.Lanes[i]
		most, ok := enough[l.Target]
		if !ok {
			continue
		}
		l.Boots = slices.DeleteFunc(slices.Clone(l.Boots), func(b Boot) bool { return b.Block > most && b.Block <= p.Blocks })
		l.Estimate = 0
		for _, b := range l.Boots {
			l.Estimate += b.Estimate
		}
	}
}

func hashOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
