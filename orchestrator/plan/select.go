package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
)

// Selection is what a rerun asks for.
type Selection struct {
	Filter
	// Want says which slots are to be repeated; nil: all that the filter leaves.
	Want func(results.Slot) bool
	// Alone repeats the selected slots and nothing else. Without it a block of a
	// target that holds one is repeated whole, with all its kernels, so that they
	// are compared on one day; of the workloads those that the filter leaves.
	Alone bool
}

// Select is Repeated for the selected slots alone. want may be nil.
func (p *Plan) Select(lab *config.Lab, f Filter, want func(results.Slot) bool) (*Plan, error) {
	return p.Repeated(lab, Selection{Filter: f, Want: want, Alone: true})
}

// Repeated narrows an existing plan to what a rerun asks for, in the plan's
// order. Boots without a trial are left out, and a trial brings its warm-up
// along. No lanes are left when nothing is selected. The error is about names
// that the plan does not have, or that the lab lacks by now.
func (p *Plan) Repeated(lab *config.Lab, s Selection) (*Plan, error) {
	if err := p.check(s.Filter); err != nil {
		return nil, err
	}
	out := *p
	out.Lanes, out.Warnings = nil, p.ofTargets()
	for _, l := range p.Lanes {
		blocks := map[int]bool{}
		for _, b := range l.Boots {
			if slices.ContainsFunc(b.Trials, s.selects) {
				blocks[b.Block] = true
			}
		}
		n := Lane{Target: l.Target}
		for _, b := range l.Boots {
			all := len(b.Trials)
			if b.Trials = s.trials(b.Trials, blocks[b.Block]); len(b.Trials) == 0 {
				continue
			}
			b.Estimate = b.Estimate * time.Duration(len(b.Trials)) / time.Duration(all)
			n.Estimate += b.Estimate
			n.Boots = append(n.Boots, b)
		}
		if len(n.Boots) > 0 {
			out.Lanes = append(out.Lanes, n)
		}
	}
	if gone := out.gone(lab); len(gone) > 0 {
		return nil, fmt.Errorf("the configuration has no %s, which the run used: give the configuration of that run with -f, or choose what is left by --target, --kernel and --workload",
			strings.Join(gone, ", no "))
	}
	return &out, nil
}

// selects says that a slot that counts is asked for itself.
func (s *Selection) selects(slot results.Slot) bool {
	return !slot.Warmup() && wanted(s.Targets, slot.Target) && wanted(s.Kernels, slot.Kernel) && s.workload(slot.Workload) &&
		(s.Want == nil || s.Want(slot))
}

func (s *Selection) workload(id string) bool {
	return len(s.Workloads) == 0 || slices.ContainsFunc(s.Workloads, func(w string) bool { return isWorkload(w, id) })
}

// isWorkload accepts KIND, KIND.NAME and NAME for an ID.
func isWorkload(pattern, id string) bool {
	kind, name, _ := strings.Cut(id, ".")
	return pattern == id || pattern == kind || pattern == name
}

// trials are those of a boot that are repeated; block says that its block is.
func (s *Selection) trials(slots []results.Slot, block bool) []results.Slot {
	keep := s.selects
	if !s.Alone {
		keep = func(slot results.Slot) bool { return block && s.workload(slot.Workload) }
	}
	chosen := map[results.Cell]bool{}
	for _, slot := range slots {
		if !slot.Warmup() && keep(slot) {
			chosen[slot.Cell] = true
		}
	}
	var out []results.Slot
	for _, slot := range slots {
		if chosen[slot.Cell] && (slot.Warmup() || keep(slot)) {
			out = append(out, slot)
		}
	}
	return out
}

// Measured counts the trials that are no warm-up.
func (l *Lane) Measured() int {
	n := 0
	for _, b := range l.Boots {
		for _, s := range b.Trials {
			if !s.Warmup() {
				n++
			}
		}
	}
	return n
}

// Rounds counts the blocks of a lane.
func (l *Lane) Rounds() int {
	seen := map[int]bool{}
	for _, b := range l.Boots {
		seen[b.Block] = true
	}
	return len(seen)
}

// gone names what the plan needs and lab does not have.
func (p *Plan) gone(lab *config.Lab) []string {
	var out []string
	lacks := func(kind, name string, lacking bool) {
		if s := kind + " " + name; lacking && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, l := range p.Lanes {
		lacks("target", l.Target, lab.Target(l.Target) == nil)
		for _, b := range l.Boots {
			lacks("kernel", b.Kernel, lab.Kernel(b.Kernel) == nil)
			for _, s := range b.Trials {
				w := lab.Workload(s.Workload)
				lacks("workload", s.Workload, w == nil)
				lacks("scenario", s.Workload+"."+s.Scenario, w != nil &&
					!slices.ContainsFunc(w.Scenarios, func(x config.Scenario) bool { return x.Name == s.Scenario }))
			}
		}
	}
	return out
}

// check refuses names that the plan does not have.
func (p *Plan) check(f Filter) error {
	var lanes, kernels, workloads []string
	add := func(to *[]string, name string) {
		if !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	for _, l := range p.Lanes {
		add(&lanes, l.Target)
		for _, b := range l.Boots {
			add(&kernels, b.Kernel)
			for _, s := range b.Trials {
				add(&workloads, s.Workload)
			}
		}
	}
	for _, list := range [][]string{lanes, kernels, workloads} {
		slices.Sort(list)
	}
	same := func(a, b string) bool { return a == b }
	return errors.Join(unknown("target", f.Targets, lanes, same), unknown("kernel", f.Kernels, kernels, same),
		unknown("workload", f.Workloads, workloads, isWorkload))
}

func unknown(what string, asked, have []string, is func(asked, have string) bool) error {
	for _, n := range asked {
		if slices.ContainsFunc(have, func(h string) bool { return is(n, h) }) {
			continue
		}
		if near := nearest(n, have); near != "" {
			return fmt.Errorf("the run has no %s %q; did you mean %s? It has %s", what, n, near, strings.Join(have, ", "))
		}
		return fmt.Errorf("the run has no %s %q; it has %s", what, n, strings.Join(have, ", "))
	}
	return nil
}

// nearest is the name that is few letters away from what was typed, "" when
// none is.
func nearest(typed string, have []string) string {
	best, least := "", 1+max(1, len(typed)/3)
	for _, h := range have {
		if d := distance(typed, h); d < least {
			best, least = h, d
		}
		if _, name, ok := strings.Cut(h, "."); ok && distance(typed, name) < least {
			best, least = h, distance(typed, name)
		}
	}
	return best
}

// distance counts the letters to insert, remove or change (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
