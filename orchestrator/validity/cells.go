package validity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
)

// Thresholds of the rules about cells.
const (
	fewSwitches = 10.0 // a second, on each busy CPU
	muchIdle    = 5.0  // percent of the CPU time
	nearLink    = 0.9  // of the speed of a network interface
)

func cellRules() []runRule {
	return []runRule{
		{Rule{Name: "scheduler cannot matter", Threshold: "at least 10 context switches a second on each busy CPU",
			Why: "Who is hardly ever asked which task runs next cannot make one kernel faster than another."}, fewSwitchesFound},
		{Rule{Name: "nothing to choose", Threshold: "more runnable tasks than CPUs",
			Why: "With a CPU for every task a scheduler has no choice to make, only a place to find."}, nothingToChoose},
		{Rule{Name: "CPU not the bottleneck", Threshold: "less than 5 % of the CPU time idle or waiting",
			Why: "A CPU that has time left limits nothing, and neither does what shares it out."}, idleFound},
		{Rule{Name: "link is full", Threshold: "less than 90 % of the network interface's speed",
			Why: "A full link gives every kernel the same figure."}, linkFull},
		{Rule{Name: "one boot only", Threshold: "the trials of a cell are spread over the planned boots",
			Why: "Trials inside one boot say nothing about the next boot."}, oneBoot},
		{Rule{Name: "activity of another target", Threshold: "the activity on file is of the target that the claim is about",
			Why: "How busy one machine was says nothing about another one."}, foreignActivity},
	}
}

// switches are the context switches a second on each busy CPU: at least one
// counts as busy.
func (c *cellView) switches() (rate, busy float64, n int) {
	cpus := float64(max(1, c.side.cpus()))
	busy, _ = c.middle(func(a *results.Attempt) (float64, bool) {
		if !has(a, "us", "sy") {
			return 0, false
		}
		return a.Summary.User + a.Summary.System, true
	})
	rate, n = c.middle(func(a *results.Attempt) (float64, bool) {
		if !has(a, "cs", "us", "sy") {
			return 0, false
		}
		return a.Summary.Switches / max(1, cpus*(a.Summary.User+a.Summary.System)/100), true
	})
	return rate, busy, n
}

func fewSwitchesFound(v *view) []results.Found {
	var out []results.Found
	for i := range v.cells {
		c := &v.cells[i]
		rate, busy, n := c.switches()
		if n == 0 || !(rate < fewSwitches) {
			continue
		}
		evidence := fmt.Sprintf("%.3g context switches a second with %.0f %% of the CPU time busy (median of %d trials)", rate, busy, n)
		base := v.find(c, c.Baseline, c.Scenario)
		if c.Baseline != "" && base != nil && base != c {
			if other, _, m := base.switches(); m > 0 && other < fewSwitches {
				f := c.about(fmt.Sprintf("%.3g and %.3g context switches a second: a throughput difference here is not attributable to scheduling decisions", rate, other))
				f.Against, f.Evidence = c.Baseline, evidence
				out = append(out, f)
				continue
			}
		}
		if v.inLowPair(c) {
			continue // said with its pairs
		}
		text := "%.3g context switches a second: a throughput difference would not be attributable to scheduling decisions"
		if c.claimed && !c.imported { // the other kernel's are more
			text = "%.3g context switches a second: the scheduler of this kernel decided next to nothing here"
		}
		f := c.about(fmt.Sprintf(text, rate))
		f.Evidence = evidence
		out = append(out, f)
	}
	return out
}

// inLowPair reports whether the cell is the baseline of another one that has as
// few context switches.
func (v *view) inLowPair(c *cellView) bool {
	for i := range v.cells {
		o := &v.cells[i]
		if o.Target == c.Target && o.Workload == c.Workload && o.Scenario == c.Scenario && o.Baseline == c.Kernel && o.Kernel != c.Kernel {
			if rate, _, n := o.switches(); n > 0 && rate < fewSwitches {
				return true
			}
		}
	}
	return false
}

// idle is the median share of the CPU time that was idle or waiting, in percent.
func (c *cellView) idle() (float64, int) {
	return c.middle(func(a *results.Attempt) (float64, bool) {
		if !has(a, "id") {
			return 0, false
		}
		x := a.Summary.Idle
		if has(a, "wa") {
			x += a.Summary.Wait
		}
		return x, true
	})
}

// idleFound is about workloads that claim to be bound by the target's CPU.
func idleFound(v *view) []results.Found {
	var out []results.Found
	for i := range v.cells {
		c := &v.cells[i]
		idle, n := c.idle()
		if n == 0 || !c.claimed {
			continue
		}
		text := c.idleText(&idle)
		if text == "" || !(idle >= muchIdle) {
			continue
		}
		f := c.about(text)
		f.Evidence = fmt.Sprintf("%.1f %% of the time idle or waiting (median of %d trials)", idle, n)
		out = append(out, f)
	}
	return out
}

// idleText is the sentence about a cell's idle share, "" for one of which nothing
// can be said. CPUs that had no task to run are taken off the share.
func (c *cellView) idleText(idle *float64) string {
	cpus := c.side.cpus()
	jobs := c.runnable()
	switch c.kind {
	case kindIperf:
		text := "the target's CPU had time left: it was not the bottleneck, and neither was its scheduler"
		if cpus == 0 {
			return text + " (unless it has several CPUs, and one of them was full)"
		}
		// A stream keeps one CPU busy at most: of several, one may have been full.
		if cpus > 1 && (100-*idle)/100*float64(cpus) >= 1-muchIdle/100 {
			return ""
		}
		return text
	case kindCrunch:
		if jobs > 1 && cpus > 1 {
			return "" // the last of several tasks leaves CPUs idle, whatever the scheduler does
		}
	case kindKernbench:
	default:
		return ""
	}
	if jobs == 0 || cpus == 0 {
		return ""
	}
	*idle -= 100 * max(0, 1-float64(jobs)/float64(cpus))
	return "the work was not bound by the CPU: CPUs that could have gone on with it were idle or waiting"
}

func nothingToChoose(v *view) []results.Found {
	var out []results.Found
	said := map[[3]string]bool{}
	for i := range v.cells {
		c := &v.cells[i]
		jobs := c.runnable()
		cpus := c.side.cpus()
		if !c.claimed || len(c.trials) == 0 || jobs == 0 || jobs > 1 && jobs >= cpus {
			continue
		}
		if k := [3]string{c.Target, c.Workload, c.Scenario}; said[k] {
			continue
		} else {
			said[k] = true
		}
		f := c.about("one task at a time: a scheduler has nothing to choose here, and a difference comes from something else")
		if jobs > 1 {
			f = c.about(fmt.Sprintf("%d tasks on %d CPUs: a scheduler has no task to choose here, only the CPU that each of them gets", jobs, cpus))
		}
		f.Kernel = ""
		if cpus > 0 {
			f.Evidence = fmt.Sprintf("%d runnable, %s", jobs, plural.Of(cpus, "CPU"))
		}
		out = append(out, f)
	}
	return out
}

func linkFull(v *view) []results.Found {
	var out []results.Found
	speeds := map[*side]map[string]float64{}
	for i := range v.cells {
		c := &v.cells[i]
		if c.kind != kindIperf || len(c.trials) == 0 || len(c.side.boots) == 0 {
			continue
		}
		rate, ok := c.value("throughput")
		if !ok {
			continue
		}
		if speeds[c.side] == nil {
			speeds[c.side] = v.linkSpeeds(c.side)
		}
		for _, name := range slices.Sorted(maps.Keys(speeds[c.side])) {
			speed := speeds[c.side][name]
			if rate < nearLink*speed || rate > 1.02*speed {
				continue // a rate above the speed went another way
			}
			f := c.about(fmt.Sprintf("the link is full: %.4g of %.4g Mbit/s, so that a faster kernel could not show", rate, speed))
			f.Evidence = fmt.Sprintf("%.4g of %.4g Mbit/s of interface %s", rate, speed, name)
			out = append(out, f)
			break
		}
	}
	return out
}

// linkSpeeds are the speeds of the target's interfaces in Mbit/s, as its first
// boot with that kernel told them.
func (v *view) linkSpeeds(s *side) map[string]float64 {
	speeds := map[string]float64{}
	text, _ := v.files.boot(s.boots[0], "probe/net")
	for line := range strings.Lines(string(text)) {
		path, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		var mbit float64
		if _, err := fmt.Sscanf(value, "%g", &mbit); err != nil || !(mbit > 0) || math.IsInf(mbit, 0) {
			continue // -1: the driver does not know
		}
		if f := strings.Split(path, "/"); len(f) > 1 {
			speeds[f[len(f)-2]] = mbit
		}
	}
	return speeds
}

func oneBoot(v *view) []results.Found {
	var out []results.Found
	for i := range v.cells {
		c := &v.cells[i]
		lane := v.state.Model.Lane(c.Target)
		if c.Boots < 2 || c.boots != 1 || len(c.trials) < 2 || lane == nil || lane.Ended.IsZero() {
			continue // a lane that is at work is not done
		}
		f := c.about(fmt.Sprintf("all %d trials ran in one boot, though %d boots were planned: their spread is that inside a boot", len(c.trials), c.Boots))
		f.Evidence = fmt.Sprintf("boot %d", c.trials[0].Slot.Boot)
		out = append(out, f)
	}
	return out
}

// foreignActivity is about imported logs: vmstat that is of one target only.
func foreignActivity(v *view) []results.Found {
	if !v.imported {
		return nil
	}
	with, without := []string{}, []string{}
	seen := map[string]bool{}
	for i := range v.cells {
		c := &v.cells[i]
		if _, n := c.idle(); n > 0 && !seen[c.Target] {
			seen[c.Target] = true
			with = append(with, c.Target)
		}
	}
	for i := range v.cells {
		if c := &v.cells[i]; !seen[c.Target] && len(c.trials) > 0 {
			seen[c.Target] = true
			without = append(without, c.Target)
		}
	}
	var out []results.Found
	for _, t := range without {
		if len(with) == 0 {
			break
		}
		out = append(out, results.Found{Target: t, Finding: results.Finding{
			Text:     fmt.Sprintf("the vmstat on file is of %s and says nothing about %s: how busy this target was is not known", short(with, 3), t),
			Evidence: "no activity of this target was imported"}})
	}
	return out
}
