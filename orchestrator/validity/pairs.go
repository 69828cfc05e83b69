package validity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
)

// Thresholds of the rules about pairs of kernels.
const (
	otherMemory = 0.05 // of the larger one; kernels of other sizes leave other totals
	olderTimes  = 10.0 // times the other kernel's uptime …
	olderBy     = 600  // … and seconds more
)

// pairRules are about the conditions that two kernels were measured under. Each
// compares all boots of one with all boots of the other.
func pairRules() []runRule {
	return []runRule{
		{Rule{Name: "different frequency settings", Hard: true, Threshold: "governor, limits, boost and SMT are the same in all boots of both kernels",
			Why: "A clock that runs faster makes any kernel faster."}, frequencies},
		{Rule{Name: "frequency not known alike", Threshold: "both kernels tell governor and driver, and the driver is the same",
			Why: "Another driver may run the CPU at another frequency under the same words."}, drivers},
		{Rule{Name: "different CPUs", Hard: true, Threshold: "as many CPUs online under both kernels",
			Why: "A scheduler with more CPUs has more to give."}, onlineCPUs},
		{Rule{Name: "different memory", Threshold: "memory within 5 %, as many NUMA nodes",
			Why: "Less memory means smaller caches of files, or swapping."}, memories},
		{Rule{Name: "different clock source", Threshold: "the same clock source in all boots",
			Why: "A slow clock source makes every reading of the time dear, and scheduling reads it often."}, clockSources},
		{Rule{Name: "different ages", Threshold: "less than 10 times, or less than 10 minutes apart, in uptime when trials begin",
			Why: "A machine that has been up for long has other caches and other memory than one that has just booted."}, ages},
		{Rule{Name: "different kernel series", Threshold: "both kernels are of one series, such as 6.1 or 2.6.30",
			Why: "Between two series thousands of changes lie, of which the scheduler is one."}, series},
		{Rule{Name: "different architectures", Threshold: "kernels for the same machine, as uname -m tells it",
			Why: "A 32-bit kernel runs other code than a 64-bit one, in other amounts of memory."}, architectures},
		{Rule{Name: "different command lines", Threshold: "the same parameters, the boot's own nonce left out",
			Why: "A parameter such as mitigations=off costs more than most schedulers save."}, commandLines},
		{Rule{Name: "different compilers", Threshold: "the same compiler and version",
			Why: "Another compiler lays out and optimizes all of the kernel anew."}, compilers},
		{Rule{Name: "different agents", Threshold: "the same agent in all boots of both kernels",
			Why: "The agent is what measures: two of them are two instruments."}, agents},
		{Rule{Name: "different tools", Threshold: "the same versions of the measuring tools",
			Why: "Versions of iperf and make differ in what they do and print."}, tools},
	}
}

// differ is a finding for each pair whose sides give different words in of. What
// a side does not tell differs from nothing.
func (v *view) differ(of func(*results.BootState) string, text string) []results.Found {
	var out []results.Found
	words := map[*side][]string{}
	get := func(s *side) []string {
		if _, ok := words[s]; !ok {
			words[s] = s.among(of)
		}
		return words[s]
	}
	for _, p := range v.pairs {
		a, b := get(p.kernel), get(p.base)
		if len(a) == 0 || len(b) == 0 || alike(a, b) {
			continue
		}
		f := p.about(text)
		f.Evidence = fmt.Sprintf("%s with %s, %s with %s", short(a, 3), p.kernel.kernel, short(b, 3), p.base.kernel)
		out = append(out, f)
	}
	return out
}

// alike reports whether both sides gave the same words; several of them on each
// side count as a difference, since no boot of one is like all of the other.
func alike(a, b []string) bool {
	return len(a) == 1 && len(b) == 1 && a[0] == b[0]
}

func setting(name string) func(*results.BootState) string {
	return func(b *results.BootState) string { return b.Result.Record.CPUFreq[name] }
}

// frequencies refuses comparisons whose boots ran under other settings.
func frequencies(v *view) []results.Found {
	out := v.refuse(setting("governor"), "the frequency governors differ")
	out = append(out, v.refuse(setting("boost"), "the settings of frequency boost differ")...)
	out = append(out, v.refuse(setting("no_turbo"), "the settings of turbo differ")...)
	out = append(out, v.refuse(setting("smt"), "SMT is on with one and off with the other")...)
	// Drivers count limits in their own ways: only those of one driver compare.
	limits := func(b *results.BootState) string {
		r := b.Result.Record.CPUFreq
		if r["min_freq"] == "" && r["max_freq"] == "" {
			return ""
		}
		return fmt.Sprintf("%s to %s kHz", cmp.Or(r["min_freq"], "?"), cmp.Or(r["max_freq"], "?"))
	}
	for _, f := range v.refuse(limits, "the frequency limits differ") {
		if f.Against != "" {
			a, b := v.side(f.Target, f.Kernel).among(setting("driver")), v.side(f.Target, f.Against).among(setting("driver"))
			if len(a)+len(b) > 0 && !alike(a, b) {
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

// refuse finds what no comparison may be made under. Where most boots of both
// kernels agree, only the odd ones are found, which then do not count.
func (v *view) refuse(of func(*results.BootState) string, what string) []results.Found {
	var out []results.Found
	said := map[*results.BootState]bool{}
	for _, p := range v.pairs {
		a, b := p.kernel.among(of), p.base.among(of)
		if len(a) == 0 || len(b) == 0 || alike(a, b) {
			continue
		}
		odd := append(p.kernel.odd(of, a[0]), p.base.odd(of, a[0])...)
		if a[0] != b[0] || 2*len(p.kernel.odd(of, a[0])) >= len(p.kernel.boots) || 2*len(p.base.odd(of, a[0])) >= len(p.base.boots) {
			f := p.about(what + ": comparison refused")
			f.Evidence = fmt.Sprintf("%s with %s, %s with %s", short(a, 3), p.kernel.kernel, short(b, 3), p.base.kernel)
			out = append(out, f)
			continue
		}
		for _, o := range odd {
			if said[o] {
				continue
			}
			said[o] = true
			out = append(out, results.Found{Target: o.Lane, Kernel: o.Result.Kernel, Boot: o.Number, Finding: results.Finding{
				Text:     what + " between this boot and most others: it does not count",
				Evidence: fmt.Sprintf("%s, where others have %s", of(o), a[0])}})
		}
	}
	return out
}

// odd are the boots that give another word.
func (s *side) odd(of func(*results.BootState) string, word string) []*results.BootState {
	var out []*results.BootState
	for _, b := range s.boots {
		if w := of(b); w != "" && w != word {
			out = append(out, b)
		}
	}
	return out
}

// side is a kernel of a target; it is there for every pair.
func (v *view) side(target, kernel string) *side {
	i := slices.IndexFunc(v.sides, func(s *side) bool { return s.target == target && s.kernel == kernel })
	return v.sides[i]
}

func drivers(v *view) []results.Found {
	out := v.differ(setting("driver"), "the frequency drivers differ: the CPU may run at another frequency under each")
	for _, p := range v.pairs {
		for _, x := range [][2]*side{{p.kernel, p.base}, {p.base, p.kernel}} {
			if len(x[0].among(setting("governor"))) > 0 && len(x[1].among(setting("governor"))) == 0 {
				f := p.about("only one of the kernels tells how the CPU's frequency is governed: the other may run at another frequency")
				f.Evidence = fmt.Sprintf("%s: governor %s, %s: none", x[0].kernel, short(x[0].among(setting("governor")), 3), x[1].kernel)
				out = append(out, f)
			}
		}
	}
	return out
}

func onlineCPUs(v *view) []results.Found {
	return v.refuse(func(b *results.BootState) string {
		if b.Result.Record.CPUs == 0 {
			return ""
		}
		return plural.Of(b.Result.Record.CPUs, "CPU")
	}, "the numbers of CPUs differ")
}

func memories(v *view) []results.Found {
	var out []results.Found
	for _, p := range v.pairs {
		lowA, highA := p.kernel.memory()
		lowB, highB := p.base.memory()
		if lowA == 0 || lowB == 0 || float64(max(highA, highB)-min(lowA, lowB)) <= otherMemory*float64(max(highA, highB)) {
			continue
		}
		f := p.about("the kernels see another amount of memory")
		f.Evidence = fmt.Sprintf("%d MiB with %s, %d MiB with %s", lowA>>10, p.kernel.kernel, lowB>>10, p.base.kernel)
		out = append(out, f)
	}
	nodes := func(b *results.BootState) string {
		text, _ := v.files.boot(b, "probe/numa")
		return strings.TrimSpace(string(text))
	}
	return append(out, v.differ(nodes, "the NUMA nodes that are online differ")...)
}

// memory is the least and the most that any boot saw, in kB.
func (s *side) memory() (low, high int64) {
	for _, b := range s.boots {
		if m := b.Result.Record.MemoryKB; m > 0 {
			high = max(high, m)
			if low == 0 || m < low {
				low = m
			}
		}
	}
	return low, high
}

func clockSources(v *view) []results.Found {
	return v.differ(func(b *results.BootState) string {
		text, _ := v.files.boot(b, "probe/clocksource")
		// tsc-early is tsc, before the kernel has calibrated it (arch/x86/kernel/tsc.c).
		return strings.TrimSuffix(strings.TrimSpace(string(text)), "-early")
	}, "the clock sources differ: reading the time, which scheduling does often, costs another amount")
}

// ages compares how long the target had been up when trials began, cell by cell.
func ages(v *view) []results.Found {
	var out []results.Found
	said := map[pair]bool{}
	for i := range v.cells {
		c := &v.cells[i]
		base := v.find(c, c.Baseline, c.Scenario)
		if base == nil || base == c || said[pair{c.side, base.side}] {
			continue
		}
		a, n := c.middle(v.age)
		b, m := base.middle(v.age)
		if n == 0 || m == 0 || math.Abs(a-b) < olderBy || max(a, b) < olderTimes*min(a, b) {
			continue
		}
		said[pair{c.side, base.side}] = true
		f := pair{c.side, base.side}.about("trials of one kernel began long after its boot, those of the other soon after: caches and memory are not alike")
		f.Evidence = fmt.Sprintf("uptime %s with %s, %s with %s (medians, %s %s)", seconds(a), c.Kernel, seconds(b), c.Baseline, c.Workload, c.Scenario)
		out = append(out, f)
	}
	return out
}

// age is the uptime of the target when a trial began, in seconds.
func (v *view) age(a *results.Attempt) (float64, bool) {
	b := v.state.Model.Boot(a.Slot.Target, a.Slot.Boot)
	if b == nil || b.Result == nil || b.Result.Record.UptimeS <= 0 || b.Judged.IsZero() || a.Started.Before(b.Judged) {
		return 0, false
	}
	return b.Result.Record.UptimeS + a.Started.Sub(b.Judged).Seconds(), true
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}
