package compare

import (
	"fmt"
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

// inOrder looks at the sequence of the boots: whether it can tell kernel and time
// apart.
func (j *judging) inOrder(c *claim) {
	if c.hold != "" || min(len(c.a.boots), len(c.b.boots)) < 2 {
		return // of one boot no order says anything
	}
	how := ""
	switch {
	case c.MixedUp:
		first, then := c.a.name, c.b.name
		if c.b.boots[0].Boot < c.a.boots[0].Boot {
			first, then = then, first
		}
		how = fmt.Sprintf("all boots of %s came before all of %s", first, then)
		if c.Sessions > 1 {
			how = "in each session " + how
		}
	case j.state.Plan.Design.Order == "blocked":
		how = "the sweep ran with order = \"blocked\""
	default:
		return
	}
	c.hold = "order and kernel cannot be told apart (" + how + ")"
	c.remedy = "measure again with order = \"interleaved\""
}
