package validity

import (
	"fmt"
	"strings"
	"testing"

	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

const second = int64(1e9)

// snapshot of a machine with two CPUs, in ticks of each.
func snapshot(at int64, running int, user, system, irq, idle, steal uint64) wire.Snapshot {
	line := func(name string, n uint64) string {
		return fmt.Sprintf("%s %d 0 %d %d 0 %d 0 %d\n", name, n*user, n*system, n*idle, n*irq, n*steal)
	}
	return wire.Snapshot{MonoNS: at, VMStat: []byte("pswpin 5\npswpout 5\n"),
		Stat: []byte(line("cpu", 2) + line("cpu0", 1) + line("cpu1", 1) + fmt.Sprintf("ctxt 9\nprocs_running %d\n", running))}
}

// soundSpool is of 10 s in which two tasks used both CPUs.
func soundSpool() *wire.Spool {
	const cpu = cpuDir + "cpu0/"
	files := func(throttles, slow, fast string) map[string]string {
		return map[string]string{
			cpu + "thermal_throttle/core_throttle_count": throttles, cpu + "thermal_throttle/package_throttle_count": "7",
			cpu + "cpufreq/scaling_governor": "performance", cpu + "cpufreq/scaling_min_freq": "600000", cpu + "cpufreq/scaling_max_freq": "1400000",
			cpu + "cpufreq/stats/time_in_state": "600000 " + slow + "\n1400000 " + fast,
		}
	}
	task := func(name string) wire.Task {
		return wire.Task{Name: name, StartNS: 100 * second, EndNS: 110 * second, UserUS: 9_900_000, SystemUS: 50_000}
	}
	return &wire.Spool{
		Begin: map[string]string{"wall": "1700000000000000000", "agent": "go"}, BeginNS: 100 * second,
		End: map[string]string{"wall": "1700000010000200000", "cpu_us": "20000"}, EndNS: 110 * second,
		Snapshots: []wire.Snapshot{snapshot(100*second, 1, 0, 0, 0, 0, 0), snapshot(110*second, 1, 990, 5, 0, 5, 0)},
		States:    []wire.State{{MonoNS: 100 * second, Files: files("3", "50", "100")}, {MonoNS: 110 * second, Files: files("3", "50", "1100")}},
		Tasks:     []wire.Task{task("a"), task("b")},
	}
}

// sound is the evidence of a trial that nothing is to be said against.
func sound() *Evidence {
	peer := soundSpool()
	peer.Snapshots[1] = snapshot(110*second, 1, 100, 100, 100, 700, 0)
	peer.Tasks = []wire.Task{{Name: "iperf", StartNS: 100 * second, EndNS: 110 * second, UserUS: 1_000_000, SystemUS: 2_000_000}}
	return &Evidence{
		Witness: Witness{Workload: "crunch", Elapsed: &Elapsed{Target: 12, Least: 11.8, Most: 12.3}, Log: &LogWitness{TaintBefore: "512", TaintAfter: "512"}},
		Boot:    targets.BootRecord{CPUFreq: map[string]string{"governor": "performance", "driver": "acpi-cpufreq"}},
		Spool:   soundSpool(), Peer: peer,
		Parsed: &workloads.Parsed{Values: []workloads.Value{{Metric: workloads.Metric{Name: "elapsed", Unit: "s", Primary: true}, Value: 10, Resolution: 0.01}}},
	}
}

// A trialCase is a change to sound evidence, and what the rule then says: a part of its sentence,
// or of why it could not be checked.
type trialCase struct {
	what    string
	do      func(*Evidence)
	against string
	missing string
}

func noSpoolAtAll(e *Evidence) { e.Spool = nil }

func logs(line string) func(*Evidence) {
	return func(e *Evidence) { e.Lines = []string{"[  141.000000] usb 1-1: new device", line} }
}

func silent(e *Evidence) { e.Log = nil }

func state(i int, file, text string) func(*Evidence) {
	return func(e *Evidence) { e.Spool.States[i].Files[cpuDir+"cpu0/"+file] = text }
}

// changes are by rule. Every rule has one that it speaks against and, where it
// needs evidence that can be missing, one without it.
func changes() map[string][]trialCase {
	all := map[string][]trialCase{
		"another boot": {
			{"rebooted", func(e *Evidence) { e.Moved = &targets.RebootedError{What: "boot_id", Was: "a", Is: "b"} }, `boot_id changed from "a" to "b"`, ""},
			{"another scheduler", func(e *Evidence) { e.Moved = &targets.RebootedError{What: "the scheduler", Was: "cfs", Is: "x"} }, "", ""},
			{"the link was lost", func(e *Evidence) { e.Moved = fmt.Errorf("eof") }, "", ""}},
		"another scheduler": {
			{"switched", func(e *Evidence) {
				e.Moved = &targets.RebootedError{What: "the scheduler", Was: "cfs", Is: "sched_ext lavd"}
			}, `the scheduler changed from "cfs"`, ""},
			{"uptime fell", func(e *Evidence) { e.Moved = &targets.RebootedError{What: "uptime", Was: "9", Is: "1"} }, "", ""}},
		"knob changed": {
			{"by a daemon", func(e *Evidence) { e.Knobs = []string{"/proc/sys/x was set to 5 and is 6 at the end"} }, "/proc/sys/x was set to 5 and is 6", ""}},
		"CPUs changed": {
			{"one went away", func(e *Evidence) { e.Spool.Snapshots[1].Stat = []byte("cpu 1 2 3 4\ncpu0 1 2 3 4\n") }, "cpu0 cpu1 became cpu0", ""},
			{"one file was not read", func(e *Evidence) { e.Spool.Snapshots[1].Stat = nil }, "", ""},
			{"no spool", noSpoolAtAll, "", noSpool}},
		"impossible figures": {
			{"cut off", func(e *Evidence) { e.Err = &workloads.InvalidError{Reason: "the transfer lasted 4 s, not 10 s"} }, "lasted 4 s", ""},
			{"failed", func(e *Evidence) { e.Err = &workloads.FailedError{Reason: "exited with status 1"} }, "", ""}},
		"swapped": {
			{"out", func(e *Evidence) { e.Spool.Snapshots[1].VMStat = []byte("pswpin 5\npswpout 9\n") }, "4 pages were swapped", ""},
			{"a network trial", func(e *Evidence) {
				e.Workload, e.Spool.Snapshots[1].VMStat = "iperf", []byte("pswpin 5\npswpout 9\n")
			}, "", ""},
			{"not told", func(e *Evidence) { e.Spool.Snapshots[0].VMStat = nil }, "", "does not tell what it swaps"},
			{"no spool", noSpoolAtAll, "", noSpool}},
		"taint changed": {
			{"changed", func(e *Evidence) { e.Log.TaintAfter = "640" }, "from 512 to 640", ""},
			{"not told", func(e *Evidence) { e.Log.TaintAfter = "" }, "", "does not tell its taint"},
			{"not read", silent, "", "was not read"}},
		"kernel complained": {
			{"WARNING", logs("[  141.700312] WARNING: CPU: 0 PID: 88 at net/core/dev.c:1 x+0x1/0x2"), "the kernel complained: [  141.700312] WARNING: CPU: 0", ""},
			{"only a word", logs("[  150.000000] random: WARNING is only a word here, as is BUG in this sentence"), "", ""},
			{"not read", silent, "", "was not read"},
			{"may not be read", func(e *Evidence) { e.Log.Missing = "dmesg exited 1: not permitted" }, "", "not permitted"}},
	}
	for name, line := range map[string]string{
		targets.LogFlash: "jffs2: error: (512) jffs2_get_inode_nodes: wrong CRC", targets.LogIO: "blk_update_request: I/O error, dev sda, sector 12",
		targets.LogHung: "INFO: task cc1:99 blocked for more than 120 seconds.", targets.LogRCU: "rcu: INFO: rcu_sched self-detected stall on CPU",
		targets.LogLockup: "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [x:1]", targets.LogOops: "Oops: 0002 [#1] SMP",
		targets.LogOOM: "Out of memory: Killed process 3 (cc1)", targets.LogHardware: "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: be00",
		targets.LogClock:         "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is too large:",
		"throttled (kernel log)": "CPU2: Core temperature above threshold, cpu clock throttled (total events = 1)",
	} {
		all[name] = []trialCase{{"new", logs("[  141.700312] " + line), "the kernel complained: [  141.700312] " + line[:9], ""},
			{"of another kind", logs("[  141.700312] WARNING: x"), "", ""}, {"not read", silent, "", "was not read"}}
	}
	for _, more := range []map[string][]trialCase{clockChanges(), cpuChanges(), loadChanges()} {
		for name, c := range more {
			all[name] = c
		}
	}
	return all
}

func TestEachRuleOfATrial(t *testing.T) {
	all := changes()
	for _, r := range trialRules() {
		spoke := false
		if a := r.check(sound()); a != (answer{}) {
			t.Errorf("%s: says %+v of a sound trial", r.Name, a)
		}
		for _, c := range all[r.Name] {
			e := sound()
			c.do(e)
			a := r.check(e)
			if c.against == "" && a.text != "" || !strings.Contains(a.text, c.against) || c.missing == "" && a.missing != "" || !strings.Contains(a.missing, c.missing) {
				t.Errorf("%s, %s: %+v, want %q or unchecked %q", r.Name, c.what, a, c.against, c.missing)
			}
			spoke = spoke || c.against != ""
		}
		if !spoke {
			t.Errorf("%s: no test has it speak", r.Name)
		}
		delete(all, r.Name)
		if a := r.check(&Evidence{}); a.text != "" {
			t.Errorf("%s: without any evidence it says %q", r.Name, a.text)
		}
		if r.Name == "" || r.Threshold == "" || !strings.HasSuffix(r.Why, ".") {
			t.Errorf("a row is incomplete: %+v", r.Rule)
		}
	}
	for name := range all {
		t.Errorf("there is no rule %q", name)
	}
}

func TestTrialSaysASentenceOnceAndNamesWhatWasNotChecked(t *testing.T) {
	if f, u := Trial(sound()); f != nil || u != nil {
		t.Errorf("a sound trial: %v, unchecked %v", f, u)
	}
	e := sound()
	e.Spool.Snapshots[1].VMStat = []byte("pswpin 5\npswpout 9\n")
	e.Err = &workloads.InvalidError{Reason: "4 pages were swapped during the run: the figures measure the swap device"}
	e.Log.TaintAfter = "1"
	e.Log.Missing = "dmesg exited 1"
	f, u := Trial(e)
	if len(f) != 2 || !f[0].Hard || f[1].Hard || f[1].Rule != "taint changed" || f[0].Threshold == "" || Hard(f) != &f[0] || Hard(f[1:]) != nil {
		t.Errorf("%+v", f)
	}
	if len(u) != 1 || !strings.HasPrefix(u[0], "flash errors, I/O errors, ") || !strings.HasSuffix(u[0], "kernel complained: dmesg exited 1") {
		t.Errorf("unchecked: %q", u)
	}
}

func TestRulesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Name] {
			t.Errorf("two rules are called %q", r.Name)
		}
		seen[r.Name] = true
	}
}
