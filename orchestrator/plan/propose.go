package plan

import (
	"fmt"
	"io"
	"slices"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets"
)

// Proposal is how often to boot and to repeat for one workload to show what the
// sweep wants to see: that of its cells which asks for most.
type Proposal struct {
	Run      string `json:"run"` // whose figures it rests on
	Target   string `json:"target"`
	Workload string `json:"workload"`
	Scenario string `json:"scenario"`
	Metric   string `json:"metric"`
	// Between boots, and Within them: coefficients of variation, as shares.
	Between   stats.Number `json:"between"`
	Within    stats.Number `json:"within"`
	Repeat    int          `json:"repeat"`
	Boots     int          `json:"boots"`
	HalfWidth stats.Number `json:"half_width"` // to be expected then, as a share
	Reached   bool         `json:"reached"`    // it is what the sweep wants
}

// Propose makes a proposal for each workload of p of which a run has two boots of
// a kernel and two trials in one of them. Workloads in had are left alone.
func (p *Plan) Propose(lab *config.Lab, run string, s *results.State, h History, had []Proposal) []Proposal {
	rules := stats.Defaults()
	rules.HalfWidth = p.Design.Narrow()
	rules.MaxBoots = max(rules.MaxBoots, p.Design.MaxBoots)
	var out []Proposal
	for _, l := range p.Lanes {
		cost := l.cost(lab, h)
		for _, c := range l.cells(nil) {
			sc := scenarioOf(lab, c)
			if sc == nil || slices.ContainsFunc(had, func(x Proposal) bool { return x.Workload == c.Workload }) {
				continue
			}
			for _, m := range sc.Run.Metrics() {
				if !p.Design.Decides(c.Workload, c.Scenario, m) {
					continue
				}
				got := stats.Pilot(l.raw(s, c, m.Name), cost, rules)
				if got.Boots == 0 {
					continue
				}
				out = worst(out, Proposal{Run: run, Target: c.Target, Workload: c.Workload, Scenario: c.Scenario, Metric: m.Name,
					Between: got.Between, Within: got.Within, Repeat: got.Repeat, Boots: got.Boots, HalfWidth: got.HalfWidth, Reached: got.Reached})
			}
		}
	}
	return out
}

// worst keeps the proposal of each workload that asks for most.
func worst(list []Proposal, x Proposal) []Proposal {
	i := slices.IndexFunc(list, func(o Proposal) bool { return o.Workload == x.Workload })
	if i < 0 {
		return append(list, x)
	}
	o := &list[i]
	if x.Boots > o.Boots || x.Boots == o.Boots && (x.HalfWidth.Value > o.HalfWidth.Value || x.HalfWidth.Value == o.HalfWidth.Value && x.Repeat > o.Repeat) {
		*o = x
	}
	return list
}

// raw are the trials of a cell's workload with every kernel of the lane.
func (l *Lane) raw(s *results.State, c results.Cell, metric string) [][][]float64 {
	var out [][][]float64
	for _, other := range l.cells(nil) {
		if other.Workload != c.Workload || other.Scenario != c.Scenario {
			continue
		}
		var boots [][]float64
		for _, b := range s.Model.Values(other, metric).Boots {
			if b.Reported == nil { // an average hides how trials differ
				boots = append(boots, b.Values)
			}
		}
		out = append(out, boots)
	}
	return out
}

// cost is what a boot costs without the trials that count, and what one trial of
// all its cells does: they are repeated alike.
func (l *Lane) cost(lab *config.Lab, h History) stats.Cost {
	t := lab.Target(l.Target)
	if t == nil || len(l.Boots) == 0 {
		return stats.Cost{}
	}
	tr := targets.TraitsOf(t.Boot)
	boot, trial := bootTime(t, h)+t.Settle, time.Duration(0)
	for _, s := range l.Boots[0].Trials {
		d := trialTime(lab, s.Cell, tr, h)
		if s.Warmup() {
			boot += d
		} else if s.Repeat == 1 {
			trial += d
		}
	}
	return stats.Cost{Boot: boot.Seconds(), Trial: trial.Seconds()}
}

// WriteProposals prints what proposals say of the plan; pilot is how long a pilot
// would take, for when there are none.
func (p *Plan) WriteProposals(w io.Writer, list []Proposal, pilot string) error {
	wanted := percent(p.Design.Narrow())
	if len(list) == 0 {
		_, err := fmt.Fprintf(w, "\nNo run of %s tells yet how its figures vary between boots and within them: kernsweep run %s --pilot does (%s; --target and --kernel narrow it)\n", p.Sweep, p.Sweep, pilot)
		return err
	}
	fmt.Fprintf(w, "\nRepeat and boots for ±%s, now %d and %s\n", wanted, p.Repeat, p.times())
	repeat, boots := 1, bootsFor(max(1, p.Family), stats.Defaults())
	for _, x := range list {
		fmt.Fprintf(w, "  %s\n", x.text(wanted))
		repeat, boots = max(repeat, x.Repeat), max(boots, x.Boots)
	}
	for _, name := range p.unproposed(list) {
		fmt.Fprintf(w, "  %s: nothing to go by: no run has its primary metric from 2 boots of a kernel, and twice in one of them\n", name)
	}
	_, err := fmt.Fprintf(w, "  for all of it: repeat = %d, boots = %d (%s of each kernel is the least for %s)\n", repeat, boots,
		count(bootsFor(max(1, p.Family), stats.Defaults()), "boot"), count(max(1, p.Family), "primary comparison"))
	return err
}

// unproposed are the workloads of the plan that no proposal is for.
func (p *Plan) unproposed(list []Proposal) []string {
	var out []string
	for _, l := range p.Lanes {
		for _, c := range l.cells(nil) {
			had := slices.ContainsFunc(list, func(x Proposal) bool { return x.Workload == c.Workload })
			if !had && !slices.Contains(out, c.Workload) {
				out = append(out, c.Workload)
			}
		}
	}
	return out
}

func (x *Proposal) text(wanted string) string {
	s := fmt.Sprintf("%s.%s %s on %s, from %s: ", x.Workload, x.Scenario, x.Metric, x.Target, x.Run)
	s += fmt.Sprintf("between boots %s, within %s: ", share(x.Between), share(x.Within))
	if x.Reached {
		return s + fmt.Sprintf("repeat = %d, boots = %d would give ±%s", x.Repeat, x.Boots, share(x.HalfWidth))
	}
	return s + fmt.Sprintf("not even boots = %d with repeat = %d would give ±%s, but ±%s", x.Boots, x.Repeat, wanted, share(x.HalfWidth))
}

func share(n stats.Number) string {
	if !n.OK() {
		return "n/a (" + n.Missing + ")"
	}
	return fmt.Sprintf("%.2g %%", 100*n.Value)
}

// times is how often each kernel boots.
func (p *Plan) times() string {
	if p.Design.Auto && p.Design.MinBoots < p.Design.MaxBoots {
		return fmt.Sprintf("%d to %d", p.Design.MinBoots, p.Design.MaxBoots)
	}
	return fmt.Sprint(p.Blocks)
}

// often is times, in words.
func (p *Plan) often() string {
	if n := p.times(); n != "1" {
		return n + " times"
	}
	return "once"
}
