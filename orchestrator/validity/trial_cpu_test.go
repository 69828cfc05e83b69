package validity

import (
	"fmt"
	"strings"
	"testing"

	"kernsweep/workloads/wire"
)

func clockChanges() map[string][]trialCase {
	wall := func(end string) func(*Evidence) { return func(e *Evidence) { e.Spool.End["wall"] = end } }
	took := func(there, least, most float64) func(*Evidence) {
		return func(e *Evidence) { e.Elapsed = &Elapsed{there, least, most} }
	}
	return map[string][]trialCase{
		"clock jumped": {
			{"set forward", wall("1700003610000000000"), "jumped forward by 3.6e+03 s", ""},
			{"set back", wall("1700000009900000000"), "jumped back by 0.1 s", ""},
			{"slewed at 500 ppm", wall("1700000010005000000"), "", ""},
			{"54 ms", wall("1700000010054000000"), "", ""},
			{"56 ms", wall("1700000010056000000"), "0.056 s", ""},
			{"a shell's whole seconds", func(e *Evidence) {
				e.Spool.Begin["agent"], e.Spool.End["wall"] = "shell", "1700000011000000000"
			}, "", ""},
			{"a shell's clock set", func(e *Evidence) {
				e.Spool.Begin["agent"], e.Spool.End["wall"] = "shell", "1700000013000000000"
			}, "jumped forward by 3 s", ""},
			{"no time of day", wall(""), "", "did not read the time of day"},
			{"died", func(e *Evidence) { e.Spool.End = nil }, "", "has no end"},
			{"no spool", noSpoolAtAll, "", noSpool}},
		"clock is off": {
			{"fast", took(12.6, 11.8, 12.3), "clock is fast", ""},
			{"slow", took(11.5, 11.8, 12.3), "clock is slow", ""},
			{"within what the looks took", took(11.8, 5, 60), "", ""},
			{"too short to tell", took(2, 1, 1), "", ""},
			{"emulated", func(e *Evidence) { e.Emulated, e.Elapsed = true, &Elapsed{20, 10, 10} }, "", ""},
			{"an uptime that stands still", took(0, 11.8, 12.3), "", "does not follow its clock"},
			{"resumed", func(e *Evidence) { e.Elapsed = nil }, "", "did not see the whole trial"},
			{"no spool", noSpoolAtAll, "", noSpool}},
	}
}

func cpuChanges() map[string][]trialCase {
	governor := func(name string) func(*Evidence) { return state(0, "cpufreq/scaling_governor", name) }
	probed := func(governor, driver string) func(*Evidence) {
		return func(e *Evidence) {
			e.Spool.States = nil
			e.Boot.CPUFreq = map[string]string{"governor": governor, "driver": driver}
		}
	}
	return map[string][]trialCase{
		"throttled": {
			{"twice", state(1, "thermal_throttle/core_throttle_count", "5"), "cpu0 was throttled 2 times", ""},
			{"the package", state(1, "thermal_throttle/package_throttle_count", "8"), "cpu0 was throttled 1 times", ""},
			{"no number", state(1, "thermal_throttle/core_throttle_count", "x"), "", ""},
			{"an agent of an earlier version", func(e *Evidence) { e.Spool.States = nil }, "", "of an earlier version"},
			{"a machine that does not count", func(e *Evidence) { e.Spool.States[0].Files = nil }, "", "does not count"}},
		"governor not fixed": {
			{"ondemand", governor("ondemand"), "its governor is ondemand", ""},
			{"schedutil with one frequency", func(e *Evidence) {
				governor("schedutil")(e)
				state(0, "cpufreq/scaling_min_freq", "1400000")(e)
			}, "", ""},
			{"userspace", governor("userspace"), "", ""},
			{"powersave, fixed", governor("powersave"), "", ""},
			{"powersave of intel_pstate", func(e *Evidence) { governor("powersave")(e); e.Boot.CPUFreq["driver"] = "intel_pstate" }, "its governor is powersave", ""},
			{"the probe saw two", probed("ondemand (1 CPUs), performance (2 CPUs)", "x"), "its governor is ondemand", ""},
			{"the probe saw one", probed("performance", "x"), "", ""},
			{"unknown", probed("", ""), "", noFreq}},
		"frequency not steady": {
			{"time in a low state", state(1, "cpufreq/stats/time_in_state", "600000 450\n1400000 700"),
				"frequency not steady (throttled?): cpu0 spent its time between 600 and 1400 MHz, 43 %", ""},
			{"a moment in a low state", state(1, "cpufreq/stats/time_in_state", "600000 52\n1400000 1100"), "", ""},
			{"the limit fell", state(1, "cpufreq/scaling_max_freq", "900000"), "(throttled?): cpu0 had its limit moved between 900 and 1400 MHz, 64 %", ""},
			{"the governor's own doing", func(e *Evidence) {
				state(0, "cpufreq/scaling_governor", "ondemand")(e)
				state(1, "cpufreq/stats/time_in_state", "600000 450\n1400000 700")(e)
			}, "frequency not steady: cpu0", ""},
			{"not on file", func(e *Evidence) { e.Spool.States = nil }, "", "no frequency of a CPU is on file"},
			{"no spool", noSpoolAtAll, "", noSpool}},
	}
}

// A governor that is called performance holds what heat and firmware let it: of
// three series of samples only the steady one is believed.
func TestFrequencySamples(t *testing.T) {
	for _, c := range []struct {
		what, governor string
		mhz            []int
		want           string
	}{
		{"steady", "performance", []int{1400, 1400, 1400, 1400, 1400, 1400}, ""},
		{"fell in mid-run", "performance", []int{1400, 1400, 1100, 900, 900, 900},
			"frequency not steady (throttled?): cpu0 was between 900 and 1400 MHz, 64 %"},
		{"followed the load", "ondemand", []int{600, 600, 1400, 1400, 900, 1400}, "frequency not steady: cpu0 was between 600 and 1400 MHz, 43 %"},
		{"at rest before and after", "performance", []int{800, 3000, 3000, 2980, 3000, 800}, ""},
		{"before and after only", "performance", []int{1400, 900}, "64 %"},
		{"one", "performance", []int{1400}, ""},
		{"zero is no frequency", "performance", []int{1400, 1400, 0, 0, 1400, 1400}, ""},
	} {
		e := sound()
		e.Spool.States = nil
		e.Boot.CPUFreq = map[string]string{"governor": c.governor}
		e.Spool.Snapshots = nil
		for i, f := range c.mhz {
			e.Spool.Snapshots = append(e.Spool.Snapshots, wire.Snapshot{MonoNS: int64(i), Freq: fmt.Appendf(nil, "cpu0 %d\ncpu1 1400000\nodd\n", f*1000)})
		}
		if a := frequencySteady(e); c.want == "" && a.text != "" || !strings.Contains(a.text, c.want) {
			t.Errorf("%s: %+v", c.what, a)
		}
	}
}
