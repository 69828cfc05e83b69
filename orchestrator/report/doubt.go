package report

import (
	"slices"

	"kernsweep/orchestrator/results"
)

// doubts are why a boot's values are none that a verdict would rest on.
type doubts struct {
	hostBound map[string]bool
	unproven  map[doubtKey]bool
	hard      map[doubtKey][]results.Found
}

type doubtKey struct {
	target string
	boot   int
}

func doubtsOf(d *Document) doubts {
	x := doubts{map[string]bool{}, map[doubtKey]bool{}, map[doubtKey][]results.Found{}}
	for _, t := range d.Targets {
		x.hostBound[t.Name] = t.HostBound
	}
	for _, b := range d.Boots {
		x.unproven[doubtKey{b.Lane, b.Number}] = b.Result == nil || !b.Result.Record.Proven
	}
	if d.Judgement == nil {
		return x
	}
	for _, f := range d.Judgement.Findings {
		if k := (doubtKey{f.Target, f.Boot}); f.Hard && f.Boot != 0 {
			x.hard[k] = append(x.hard[k], f)
		}
	}
	return x
}

// about is a word for the doubt about the i-th boot of a figure, "" for none.
func (x *doubts) about(c *Cell, f *Figure, i int) string {
	if x.hostBound[c.Target] {
		return "controller-load"
	}
	if i >= len(f.boots) {
		return ""
	}
	k := doubtKey{c.Target, f.boots[i]}
	hard := slices.ContainsFunc(x.hard[k], func(h results.Found) bool {
		return h.About(c.Cell, "") && (h.Metric == "" || h.Metric == f.Name)
	})
	switch {
	case hard:
		return "hard-finding"
	case x.unproven[k]:
		return "unproven"
	}
	return ""
}
