package compare

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kernsweep/orchestrator/results"
)

// sameSession is how soon after the end of a session the next must begin to
// count as its continuation: a resume after a crash, not a rerun on another day.
const sameSession = time.Hour

// strata numbers the sessions that count as one, from 1. What no session asked
// for (an import) is in stratum 1.
func strata(m *results.Model) map[int]int {
	out := map[int]int{0: 1, 1: 1}
	for i := 1; i < len(m.Sessions); i++ {
		n := i + 1
		gap := m.Sessions[i].Began.Sub(lastSeen(m, i))
		out[n] = out[n-1]
		if gap > sameSession || gap < -sameSession { // a clock that was set says nothing
			out[n]++
		}
	}
	return out
}

// lastSeen is when session n (from 1) gave its last sign: one that died left no end.
func lastSeen(m *results.Model, n int) time.Time {
	s := m.Sessions[n-1]
	if !s.Ended.IsZero() {
		return s.Ended
	}
	last := s.Began
	for _, b := range m.Boots {
		if b.Session == n {
			last = later(later(last, b.Asked), b.Judged)
		}
	}
	for _, t := range m.Trials {
		for _, a := range t.Attempts {
			if a.Session == n {
				last = later(later(last, a.Started), a.Ended)
			}
		}
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// turn is one boot in the order they were made.
type turn struct {
	boot, stratum int
	kernel        bool // the kernel's, not the baseline's
	value         float64
}

func (c *claim) turns() []turn {
	var out []turn
	for i, b := range c.a.boots {
		out = append(out, turn{b.Boot, c.a.strata[i], false, c.x.Values[i]})
	}
	for i, b := range c.b.boots {
		out = append(out, turn{b.Boot, c.b.strata[i], true, c.y.Values[i]})
	}
	slices.SortStableFunc(out, func(a, b turn) int { return cmp.Compare(a.boot, b.boot) })
	return out
}

// inOrder looks at the sequence of the boots: whether it can tell kernel and
// time apart, and whether the values drift along it.
func (j *judging) inOrder(c *claim) {
	turns := c.turns()
	if c.hold == "" {
		if how := mixedUp(turns, &c.a, &c.b); how != "" || j.state.Plan.Design.Order == "blocked" && len(turns) > 2 {
			c.hold = "order and kernel cannot be told apart"
			if how == "" {
				how = "the sweep ran with order = \"blocked\""
			}
			c.hold += " (" + how + ")"
			c.remedy = "measure again with order = \"interleaved\""
		}
	}
	if c.a.unproven == "" && c.b.unproven == "" {
		c.drift(turns)
	}
	c.outliers()
	c.unsettled()
}

// mixedUp says how, when in every session with several boots all of one kernel
// were before all of the other, each time in the same direction.
func mixedUp(turns []turn, a, b *side) string {
	if len(a.boots) < 2 || len(b.boots) < 2 {
		return "" // too few to be claimed about in any order
	}
	type span struct{ n, first, last [2]int }
	spans := map[int]*span{}
	for i, t := range turns {
		s := spans[t.stratum]
		if s == nil {
			s = &span{}
			spans[t.stratum] = s
		}
		k := 0
		if t.kernel {
			k = 1
		}
		if s.n[k] == 0 {
			s.first[k] = i
		}
		s.n[k]++
		s.last[k] = i
	}
	before, after := 0, 0
	for _, s := range spans {
		switch {
		case s.n[0] == 0 || s.n[1] == 0:
			continue
		case s.n[0] < 2 && s.n[1] < 2:
			continue // one pair says little; the others decide
		case s.last[0] < s.first[1]:
			before++
		case s.last[1] < s.first[0]:
			after++
		default:
			return ""
		}
	}
	switch {
	case before > 0 && after == 0:
		return fmt.Sprintf("all boots of %s came before all of %s", a.name, b.name)
	case after > 0 && before == 0:
		return fmt.Sprintf("all boots of %s came before all of %s", b.name, a.name)
	}
	return ""
}
