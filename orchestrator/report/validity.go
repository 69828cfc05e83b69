package report

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
)

// ruled is what one rule found, wherever it did.
type ruled struct {
	rule, threshold string
	hard            bool
	found           []results.Found
}

// rules collects the findings of the run and of its trials: hard ones first,
// each rule once.
func rules(d *Document) []*ruled {
	var list []*ruled
	add := func(f results.Found) {
		i := slices.IndexFunc(list, func(r *ruled) bool { return r.rule == f.Rule && r.hard == f.Hard })
		if i < 0 {
			i = len(list)
			list = append(list, &ruled{rule: f.Rule, hard: f.Hard, threshold: f.Threshold})
		}
		list[i].found = append(list[i].found, f)
	}
	for _, f := range d.Judgement.Findings {
		add(f)
	}
	for _, w := range d.Workloads {
		for _, c := range w.Cells {
			for _, f := range c.Findings {
				add(f)
			}
		}
	}
	known := slices.Clone(list)
	for _, c := range d.Judgement.Comparisons { // what was found only when they were compared
		for _, f := range c.Findings {
			if !slices.ContainsFunc(known, func(r *ruled) bool { return r.rule == f.Rule }) {
				add(results.Found{Finding: f, Target: c.Target, Kernel: c.Kernel, Against: c.Baseline, Workload: c.Workload, Scenario: c.Scenario, Metric: c.Metric.Name})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *ruled) int {
		switch {
		case a.hard == b.hard:
			return 0
		case a.hard:
			return -1
		}
		return 1
	})
	return list
}

// mostPlaces is how many places of a rule are listed; json has all.
const mostPlaces = 6

// mostDetail is how many lines of a long list are shown.
const mostDetail = 8

// validityList says why numbers may not be believed: each rule once, where it
// found something, and on what evidence; then what the trials warn of.
func validityList(src *source, width int) section {
	s := section{title: "Validity"}
	for _, r := range rules(src.doc) {
		s.blank()
		kind := "warning"
		if r.hard {
			kind = "INVALID"
		}
		pass := ""
		if r.threshold != "" {
			pass = " (passes: " + r.threshold + ")"
		}
		s.say(width, "  ", "%s  %s%s", kind, r.rule, pass)
		r.places(&s, width)
	}
	warnings(src, &s, width)
	return s
}

// places prints each sentence with where it holds; the same sentence of several
// places once.
func (r *ruled) places(s *section, width int) {
	var texts []string
	for _, f := range r.found {
		texts = addNew(texts, withoutNumbers(f.Text))
	}
	for i, t := range texts {
		if i == mostPlaces {
			s.say(width, "  ", "  and %d more: --format json", len(texts)-i)
			return
		}
		n := 0
		for _, f := range r.found {
			if withoutNumbers(f.Text) != t {
				continue
			}
			if n++; n == 1 {
				s.say(width, "    ", "  %s", f.Text)
			}
			if n <= mostPlaces {
				placeOf(s, &f, width)
			}
		}
		if n > mostPlaces {
			s.say(width, "      ", "    and in %d more places: --format json", n-mostPlaces)
		}
	}
}

func placeOf(s *section, f *results.Found, width int) {
	text := where(f)
	if f.Evidence != "" {
		text += ": " + f.Evidence
	}
	s.say(width, "      ", "    %s", text)
	for i, d := range f.Detail {
		if i == mostDetail {
			s.say(width, "        ", "      and %d more: --format json", len(f.Detail)-i)
			break
		}
		s.say(width, "        ", "      %s", d)
	}
}

// where a finding holds, in words.
func where(f *results.Found) string {
	var parts []string
	if f.Target != "" {
		parts = append(parts, f.Target)
	}
	switch {
	case f.Against != "":
		parts = append(parts, f.Kernel+" against "+f.Against)
	case f.Kernel != "":
		parts = append(parts, f.Kernel)
	}
	w := f.Workload
	if f.Scenario != "" {
		w = strings.TrimSpace(w + " " + f.Scenario)
	}
	for _, p := range []string{w, f.Metric} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if f.Boot > 0 {
		parts = append(parts, fmt.Sprintf("boot %d", f.Boot))
	}
	if f.Trials > 0 {
		parts = append(parts, plural.Of(f.Trials, "trial"))
	}
	if len(parts) == 0 {
		return "everywhere"
	}
	return strings.Join(parts, ", ")
}
