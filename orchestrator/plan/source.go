package plan

import (
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
)

// Source is what an estimate is made of.
type Source struct {
	Seen     time.Duration `json:"seen"`     // ns that earlier runs took
	Declared time.Duration `json:"declared"` // ns that the configuration says
	Guessed  time.Duration `json:"guessed"`  // ns of allowances, for boots that nobody has seen
}

// SourceOf says where the estimate of a lane comes from.
func SourceOf(lab *config.Lab, l Lane, h History) Source {
	var s Source
	t := lab.Target(l.Target)
	if t == nil {
		return s
	}
	tr := targets.TraitsOf(t.Boot)
	for _, b := range l.Boots {
		if _, seen := h.Boot[t.Name]; seen {
			s.Seen += bootTime(t, h)
		} else {
			s.Guessed += bootTime(t, h)
		}
		s.Declared += t.Settle
		for _, slot := range b.Trials {
			d := trialTime(lab, slot.Cell, tr, h)
			if _, seen := h.Trial[slot.Cell]; seen {
				s.Seen += d
			} else {
				s.Declared += d
			}
		}
	}
	return s
}

// String is a word for it: "runs" (nearly all of it was seen), "part" (some of it
// was), "guess" (most is allowances) or "file".
func (s Source) String() string {
	switch all := s.Seen + s.Declared + s.Guessed; {
	case s.Seen > 0 && s.Seen >= all-all/10:
		return "runs"
	case s.Seen > 0:
		return "part"
	case s.Guessed > s.Declared:
		return "guess"
	}
	return "file"
}
