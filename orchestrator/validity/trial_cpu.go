package validity

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/workloads/vmstat"
)

// steadySpread is how far the frequency of a CPU may move, as a share of its
// highest.
const steadySpread = 0.03

func cpuRules() []trialRule {
	return []trialRule{
		{Rule{Name: "throttled", Hard: true, Threshold: "no thermal_throttle counter of a CPU grew",
			Why: "A CPU that was slowed down for heat measures the room it stands in."}, throttled},
		{Rule{Name: "swapped", Hard: true, Threshold: "no page is swapped in or out during crunch or kernbench",
			Why: "The figures would measure the swap device."}, swapped},
		{Rule{Name: "governor not fixed", Threshold: "the governor is performance, userspace or a driver's fixed powersave, or lowest and highest frequency are equal",
			Why: "A governor raises the frequency by what it sees of the load, and schedulers show it different loads."}, governorFixed},
		{Rule{Name: "frequency not steady", Threshold: "the frequency of no CPU at work moves by more than 3 %, nor does its limit fall",
			Why: "The governor's name proves nothing: heat and firmware lower the frequency under it."}, frequencySteady},
	}
}

const cpuDir = "/sys/devices/system/cpu/"

// perCPU are the CPUs that have a file in a state: "cpu0" → content.
func perCPU(state map[string]string, file string) map[string]string {
	all := map[string]string{}
	for p, text := range state {
		if cpu, rest, _ := strings.Cut(strings.TrimPrefix(p, cpuDir), "/"); rest == file && strings.HasPrefix(p, cpuDir) {
			all[cpu] = text
		}
	}
	return all
}

// sorted are the keys of m, cpu2 before cpu10.
func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return keys
}

func throttled(e *Evidence) answer {
	before, after, why := e.states()
	if why != "" {
		return unchecked(why)
	}
	told := false
	for _, file := range []string{"thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count"} {
		then, now := perCPU(before, file), perCPU(after, file)
		for _, cpu := range sorted(then) {
			a, err := strconv.ParseUint(then[cpu], 10, 64)
			b, err2 := strconv.ParseUint(now[cpu], 10, 64)
			if err != nil || err2 != nil {
				continue
			}
			told = true
			if b > a {
				return against(fmt.Sprintf("%s was throttled %d times for heat during the trial", cpu, b-a),
					fmt.Sprintf("%s went from %d to %d", path.Base(file), a, b))
			}
		}
	}
	if !told {
		return unchecked("this machine does not count how often it is throttled")
	}
	return answer{}
}

func swapped(e *Evidence) answer {
	if e.Workload != "crunch" && e.Workload != "kernbench" {
		return answer{}
	}
	if e.Spool == nil {
		return unchecked(noSpool)
	}
	pages, ok := vmstat.SwapTraffic(e.snapshots())
	if !ok {
		return unchecked("the kernel does not tell what it swaps")
	}
	if pages > 0 {
		return against(vmstat.Swapped(pages), "")
	}
	return answer{}
}

func governorFixed(e *Evidence) answer {
	before, _, _ := e.states()
	if before == nil && e.Spool != nil && len(e.Spool.States) > 0 {
		before = e.Spool.States[0].Files
	}
	loose := map[string]int{}
	told := 0
	low, high := perCPU(before, "cpufreq/scaling_min_freq"), perCPU(before, "cpufreq/scaling_max_freq")
	for cpu, governor := range perCPU(before, "cpufreq/scaling_governor") {
		told++
		if governor != "" && !e.fixed(governor) && (low[cpu] == "" || low[cpu] != high[cpu]) {
			loose[quote(governor)]++
		}
	}
	if told == 0 { // an agent that did not look: what the probe saw after the boot
		f := e.Boot.CPUFreq
		if f["governor"] == "" {
			return unchecked(noFreq)
		}
		for _, g := range strings.Split(f["governor"], ", ") {
			g, _, _ = strings.Cut(g, " (")
			if !e.fixed(g) && (f["min_freq"] == "" || f["min_freq"] != f["max_freq"] || strings.Contains(f["min_freq"], ",")) {
				loose[quote(g)]++
			}
		}
	}
	if len(loose) == 0 {
		return answer{}
	}
	names := strings.Join(sorted(loose), ", ")
	return against("the CPU's frequency follows the load: its governor is "+names, driver(e))
}

const noFreq = "this kernel has no cpufreq"

func driver(e *Evidence) string {
	if d := e.Boot.CPUFreq["driver"]; d != "" {
		return "cpufreq driver " + quote(d)
	}
	return ""
}

// fixed says that a governor holds one frequency. powersave is the lowest one, but
// with drivers that leave the choice to the CPU it is a name for their own ways
// (kernel Documentation/admin-guide/pm/intel_pstate.rst, amd-pstate.rst).
func (e *Evidence) fixed(governor string) bool {
	switch governor {
	case "performance", "userspace":
		return true
	case "powersave":
		d := e.Boot.CPUFreq["driver"]
		return d != "" && !strings.Contains(d, "pstate")
	}
	return false
}

// moved is how the frequency of one CPU moved, in kHz.
type movedFreq struct {
	cpu       string
	low, high float64
	how       string
}

func frequencySteady(e *Evidence) answer {
	before, after, _ := e.states()
	all := append(sampledFreqs(e), stateFreqs(before, after)...)
	all = e.atWork(all)
	if len(all) == 0 {
		if e.Spool == nil {
			return unchecked(noSpool)
		}
		return unchecked("no frequency of a CPU is on file")
	}
	worst := all[0]
	for _, m := range all[1:] {
		if m.low*worst.high < worst.low*m.high {
			worst = m
		}
	}
	if worst.low >= worst.high*(1-steadySpread) {
		return answer{}
	}
	text := fmt.Sprintf("frequency not steady (throttled?): %s %s %.4g and %.4g MHz, %.0f %%",
		worst.cpu, worst.how, worst.low/1000, worst.high/1000, 100*worst.low/worst.high)
	if governorFixed(e).text != "" {
		text = strings.Replace(text, " (throttled?)", "", 1)
	}
	return against(text, fmt.Sprintf("%d of %s moved", count(all), plural.Of(len(all), "CPU")))
}

// atWork leaves out CPUs that did less than half of what the busiest one did: a
// CPU at rest may sleep at any frequency, and nothing is measured on it. A limit
// that fell counts wherever it did.
func (e *Evidence) atWork(all []movedFreq) []movedFreq {
	times := vmstat.EachCPU(e.snapshots())
	most := 0.0
	for _, t := range times {
		most = max(most, t.Busy())
	}
	return slices.DeleteFunc(all, func(m movedFreq) bool {
		t, told := times[m.cpu]
		return told && m.how != limitMoved && t.Busy() < most/2
	})
}

func count(all []movedFreq) (n int) {
	for _, m := range all {
		if m.low < m.high*(1-steadySpread) {
			n++
		}
	}
	return n
}

// sampledFreqs are those of the samples. The first and the last are of a machine
// at rest, and left out where there are others.
func sampledFreqs(e *Evidence) []movedFreq {
	series := map[string][]float64{}
	for _, s := range e.snapshots() {
		for _, line := range strings.Split(string(s.Freq), "\n") {
			if cpu, text, ok := strings.Cut(line, " "); ok {
				if khz, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32); err == nil && khz > 0 {
					series[cpu] = append(series[cpu], float64(khz))
				}
			}
		}
	}
	var all []movedFreq
	for _, cpu := range sorted(series) {
		x := series[cpu]
		if len(x) >= 4 {
			x = x[1 : len(x)-1]
		}
		if len(x) >= 2 {
			all = append(all, movedFreq{quote(cpu), slices.Min(x), slices.Max(x), "was between"})
		}
	}
	return all
}

const limitMoved = "had its limit moved between"

// stateFreqs are those that the kernel's own account tells, without sampling: the
// frequencies in which a CPU spent at least 1 % of the time between the two looks,
// and the limit that was lowered.
func stateFreqs(before, after map[string]string) []movedFreq {
	var all []movedFreq
	then, now := perCPU(before, "cpufreq/stats/time_in_state"), perCPU(after, "cpufreq/stats/time_in_state")
	for _, cpu := range sorted(then) {
		a, b := timeInState(then[cpu]), timeInState(now[cpu])
		var total float64
		for f := range b {
			total += max(0, b[f]-a[f])
		}
		m := movedFreq{cpu: cpu, how: "spent its time between"}
		for f := range b {
			if share := b[f] - a[f]; total > 0 && share >= 0.01*total {
				if m.low == 0 || f < m.low {
					m.low = f
				}
				m.high = max(m.high, f)
			}
		}
		if m.high > 0 {
			all = append(all, m)
		}
	}
	then, now = perCPU(before, "cpufreq/scaling_max_freq"), perCPU(after, "cpufreq/scaling_max_freq")
	for _, cpu := range sorted(then) {
		a, err := strconv.ParseUint(then[cpu], 10, 32)
		b, err2 := strconv.ParseUint(now[cpu], 10, 32)
		if err == nil && err2 == nil && a > 0 && b > 0 && b < a {
			all = append(all, movedFreq{cpu, float64(b), float64(a), limitMoved})
		}
	}
	return all
}

// timeInState reads lines "kHz ticks".
func timeInState(text string) map[float64]float64 {
	m := map[float64]float64{}
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		khz, err := strconv.ParseUint(f[0], 10, 32)
		ticks, err2 := strconv.ParseUint(f[1], 10, 64)
		if err == nil && err2 == nil && khz > 0 {
			m[float64(khz)] = float64(ticks)
		}
	}
	return m
}
