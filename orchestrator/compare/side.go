package compare

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
)

// side is one metric of one cell, as it enters a comparison.
type side struct {
	name  string // of the kernel, or of the run: what the other side does not share
	cell  results.Cell
	boots []results.BootValues
	step  float64 // resolution of the values
	// none says why there is no value; "": there are some.
	none string
	// boot is how far the kernel came that never booted here; nil: it booted, or
	// was never asked to.
	boot *results.Boot
	// invalid: no trial is valid, and the first reason why; "": some are.
	invalid string
	// unproven says why no boot of the side is proven; "": those that entered are.
	unproven string
	declared bool  // of all its boots, unproven as they are, somebody says that they were boots
	left     int   // unproven boots beside proven ones: they did not enter
	spoilt   []int // boots that a hard finding is about: they did not enter
	strata   []int // of boots
	// apart: in which order the boots of both sides were is not known; they are of
	// two runs that number their own, or of logs that do not say it.
	apart bool

	blocks, bootsFailed int    // of the kernel on the target: by the final state of each block
	trials, lost        int    // slots that were tried, and those without a value
	lostWhy             string // of the first of them
}

// side gathers what a cell has of a metric. Boots that nobody proved never enter
// beside proven ones, nor do boots that a hard finding is about.
func (j *judging) side(c results.Cell, metric string) side {
	s := side{name: c.Kernel, cell: c}
	m := j.state.Model.Values(c, metric)
	s.step = m.Resolution
	var proven, unproven []results.BootValues
	s.declared = true
	for _, b := range m.Boots {
		why, ok := j.proof(c.Target, b.Boot)
		switch {
		case j.spoiltBoot(c, metric, b.Boot):
			s.spoilt = append(s.spoilt, b.Boot)
		case ok:
			proven = append(proven, b)
		default:
			unproven = append(unproven, b)
			s.unproven = why
			r := j.state.Model.Boot(c.Target, b.Boot)
			s.declared = s.declared && r != nil && r.Result != nil && r.Result.Declared != ""
		}
	}
	s.boots = proven
	switch {
	case len(proven) > 0:
		s.left, s.unproven, s.declared = len(unproven), "", false
	default:
		s.boots = unproven
	}
	s.declared = s.declared && len(s.boots) > 0
	s.apart = s.unproven != "" && j.state.Plan.Design.Order == ""
	for _, b := range s.boots {
		s.strata = append(s.strata, j.strata[b.Session])
	}
	if len(s.boots) == 0 {
		j.whyNone(&s, m)
	}
	j.count(&s, metric)
	return s
}

// count counts what did not come to a value.
func (j *judging) count(s *side, metric string) {
	n := j.tally[[2]string{s.cell.Target, s.cell.Kernel}]
	s.blocks, s.bootsFailed = n.all, n.failed
	for _, t := range j.state.Model.TrialsOf(s.cell) {
		f := t.Final()
		if t.Slot.Warmup() || slices.Contains([]results.Outcome{results.Skipped, results.NotApplicable, results.Interrupted, results.BootFailed}, f.Outcome) {
			continue // not measured, for reasons that are told elsewhere
		}
		s.trials++
		why := string(f.Outcome) + ": " + f.Reason
		if f.Outcome == results.OK {
			if _, why = f.Value(metric); why == "" {
				continue
			}
		}
		if s.lost++; s.lost == 1 {
			s.lostWhy = why
		}
	}
}

// tallied are the blocks of a kernel on a target, and those whose boot failed.
type tallied struct{ all, failed int }

func tally(m *results.Model) map[[2]string]tallied {
	out := map[[2]string]tallied{}
	for _, b := range m.FinalBoots() {
		k := [2]string{b.Lane, b.Result.Kernel}
		n := out[k]
		n.all++
		if b.Result.Outcome == results.BootFailed {
			n.failed++
		}
		out[k] = n
	}
	return out
}

// proof reports whether a boot was proven, and why not.
func (j *judging) proof(target string, number int) (string, bool) {
	b := j.state.Model.Boot(target, number)
	switch {
	case b == nil || b.Result == nil:
		return "no record of the boot is on file", false
	case b.Result.Record.Proven:
		return "", true
	case b.Result.Record.Unproven != "":
		return b.Result.Record.Unproven, false
	}
	return "no reason recorded", false
}

func (j *judging) spoiltBoot(c results.Cell, metric string, boot int) bool {
	return slices.ContainsFunc(j.hardBoots[c.Target], func(f *results.Found) bool {
		return f.Boot == boot && f.About(c, "") && (f.Metric == "" || f.Metric == metric)
	})
}

// whyNone says why a side has no value at all.
func (j *judging) whyNone(s *side, m results.Measured) {
	if s.boot = j.neverBooted(s.cell.Target, s.cell.Kernel); s.boot != nil {
		s.none = "it did not boot"
		return
	}
	if p, ok := j.planned[s.cell]; ok && p.NA != "" {
		s.none = p.NA
		return
	}
	if len(s.spoilt) > 0 {
		s.invalid = "a hard finding is about each boot that has values"
		s.none = s.invalid
		return
	}
	trials, invalid, first := 0, 0, ""
	for _, t := range j.state.Model.TrialsOf(s.cell) {
		if t.Slot.Warmup() {
			continue
		}
		trials++
		if f := t.Final(); f.Outcome == results.Invalid {
			invalid++
			if first == "" {
				first = f.Reason
			}
		} else if s.none == "" && f.Outcome != results.OK && f.Reason != "" {
			s.none = string(f.Outcome) + ": " + f.Reason
		}
	}
	switch {
	case trials > 0 && invalid == trials:
		s.invalid = fmt.Sprintf("every trial is invalid (%d): %s", trials, first)
		s.none = s.invalid
	case len(m.Lacks) > 0:
		s.none = m.Lacks[0].Reason
	case trials == 0:
		s.none = "nothing was measured"
	case s.none == "":
		s.none = "no trial gave a value"
	}
}

// neverBooted is the newest failed boot of a kernel that has no good one.
func (j *judging) neverBooted(target, kernel string) *results.Boot {
	var failed *results.Boot
	for _, b := range j.state.Model.Boots {
		if b.Lane != target || b.Result == nil || b.Result.Kernel != kernel {
			continue
		}
		switch b.Result.Outcome {
		case results.OK:
			return nil
		case results.BootFailed:
			failed = b.Result
		}
	}
	return failed
}

// who names the kernel of the side, and the run where that tells the sides apart.
func (s *side) who() string {
	if s.name == s.cell.Kernel {
		return s.name
	}
	return s.cell.Kernel + " in " + s.name
}

// samples are the boot values of two sides, made in one way for both: geometric
// means, or arithmetic ones where any value of either is 0 or negative.
func samples(a, b *side) (stats.Sample, stats.Sample) {
	var all [][]float64
	for _, s := range []*side{a, b} {
		for _, x := range s.boots {
			all = append(all, x.Values)
		}
	}
	sum := stats.Summarise(all, 0)
	v, n := sum.BootValues, len(a.boots)
	x, y := a.sample(v[:n:n]), b.sample(v[n:])
	x.NoRatio = sum.Min.OK() && sum.Min.Value <= 0
	y.NoRatio = x.NoRatio
	return x, y
}

func (s *side) sample(values []float64) stats.Sample {
	x := stats.Sample{Values: values, Session: s.strata, Resolution: s.step}
	for _, b := range s.boots {
		if !s.apart {
			x.Order = append(x.Order, b.Boot)
		}
	}
	return x
}

// middle is the geometric mean of boot values, or their mean where one is 0 or
// negative.
func middle(s *side, x stats.Sample) stats.Number {
	if len(x.Values) == 0 {
		return stats.Missing("%s", s.none)
	}
	boots := make([][]float64, len(x.Values))
	for i, v := range x.Values {
		boots[i] = []float64{v}
	}
	sum := stats.Summarise(boots, 0)
	if sum.GeoMean.OK() && !x.NoRatio {
		return sum.GeoMean
	}
	return sum.Mean
}

// lastLine is the last line of a console that says something.
func lastLine(lines []string) string {
	for _, l := range slices.Backward(lines) {
		if l = strings.TrimSpace(l); l != "" {
			return l
		}
	}
	return ""
}
