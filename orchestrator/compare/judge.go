package compare

import (
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// Judge makes the claims about a run from its state.
func Judge(run string, s *results.State, o Options) *Judgement {
	j := &Judgement{Rules: stats.Defaults(), Comparisons: []Comparison{}, Findings: o.Findings}
	for _, c := range s.Plan.Cells {
		if c.Baseline == "" || c.Kernel == c.Baseline {
			continue
		}
		base := c.Cell
		base.Kernel = c.Baseline
		for _, m := range s.Plan.Metrics[c.Workload+"."+c.Scenario] {
			if m.Better == workloads.Informative {
				continue
			}
			j.Comparisons = append(j.Comparisons, Comparison{
				Key:    Key{c.Target, c.Workload, c.Scenario, c.Kernel, c.Baseline},
				Metric: m, Primary: m.Primary,
				Comparison: stats.Compare(sample(s.Model.Values(base, m.Name)), sample(s.Model.Values(c.Cell, m.Name))),
			})
		}
	}
	return j
}

func sample(m results.Measured) stats.Sample {
	s := stats.Sample{Resolution: m.Resolution}
	for _, b := range m.Boots {
		s.Session = append(s.Session, b.Session)
	}
	s.Values = make([]float64, len(m.Boots))
	for i, b := range m.Boots {
		s.Values[i] = stats.Summarise([][]float64{b.Values}, 0).BootValues[0]
	}
	return s
}
