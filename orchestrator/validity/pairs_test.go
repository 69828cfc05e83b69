package validity

import (
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

func freq(kv ...string) func(*targets.BootRecord) {
	return func(r *targets.BootRecord) {
		r.CPUFreq = map[string]string{}
		for i := 0; i+1 < len(kv); i += 2 {
			r.CPUFreq[kv[i]] = kv[i+1]
		}
	}
}

// condition changes the boots of two kernels.
type condition struct {
	name     string
	cfs, bfs func(*targets.BootRecord)
	rule     string
	hard     bool
	want     string // in the evidence or the sentence; "": nothing is found
}

// conditions are what would spoil a comparison, what does not, and what is not on
// file.
func conditions() []condition {
	return []condition{
		{"alike", nil, nil, "different frequency settings", true, ""},
		{"governors", nil, freq("governor", "ondemand", "driver", "acpi-cpufreq", "min_freq", "1400000", "max_freq", "1400000"), "different frequency settings", true, "ondemand with bfs, performance with cfs"},
		{"governors not of all CPUs", nil, freq("governor", "ondemand (1 CPUs), performance (1 CPUs)"), "different frequency settings", true, "governors differ"},
		{"limits", nil, freq("governor", "performance", "driver", "acpi-cpufreq", "min_freq", "600000", "max_freq", "1400000"), "different frequency settings", true, "600000 to 1400000 kHz with bfs"},
		{"limits of another driver", nil, freq("governor", "performance", "driver", "intel_pstate", "min_freq", "600000", "max_freq", "1400000"), "different frequency settings", true, ""},
		{"another driver", nil, freq("governor", "performance", "driver", "intel_pstate"), "frequency not known alike", false, "drivers differ"},
		{"boost", freq("boost", "0"), freq("boost", "1"), "different frequency settings", true, "boost differ"},
		{"turbo", freq("no_turbo", "1"), freq("no_turbo", "0"), "different frequency settings", true, "turbo differ"},
		{"SMT", freq("smt", "0"), freq("smt", "1"), "different frequency settings", true, "SMT"},
		{"SMT that an old kernel does not tell", freq(), freq("smt", "1"), "different frequency settings", true, ""},
		{"one tells no governor", nil, freq(), "frequency not known alike", false, "bfs: none"},
		{"neither tells one", freq(), freq(), "frequency not known alike", false, ""},
		{"CPUs", nil, func(r *targets.BootRecord) { r.CPUs = 1 }, "different CPUs", true, "1 CPU with bfs, 2 CPUs with cfs"},
		{"CPUs not known", nil, func(r *targets.BootRecord) { r.CPUs = 0 }, "different CPUs", true, ""},
		{"memory", nil, func(r *targets.BootRecord) { r.MemoryKB = 1 << 19 }, "different memory", false, "512 MiB with bfs, 1024 MiB with cfs"},
		{"a larger kernel image", nil, func(r *targets.BootRecord) { r.MemoryKB -= 20000 }, "different memory", false, ""},
		{"memory not known", nil, func(r *targets.BootRecord) { r.MemoryKB = 0 }, "different memory", false, ""},
		{"series", nil, func(r *targets.BootRecord) { r.Release = "6.12.95+deb12-cloud-amd64" }, "different kernel series", false, "Linux 6.12 and 6.1 are different kernels"},
		{"series of 2.6", func(r *targets.BootRecord) { r.Release = "2.6.30.5" }, func(r *targets.BootRecord) { r.Release = "2.6.31-bfs" }, "different kernel series", false, "2.6.31 and 2.6.30"},
		{"stable release", func(r *targets.BootRecord) { r.Release = "2.6.30.5" }, func(r *targets.BootRecord) { r.Release = "2.6.30.9-bfs" }, "different kernel series", false, ""},
		{"release not known", nil, func(r *targets.BootRecord) { r.Release = "" }, "different kernel series", false, ""},
		{"word size", func(r *targets.BootRecord) { r.Machine = "x86_64" }, func(r *targets.BootRecord) { r.Machine = "i686" }, "different architectures", false, "i686 with bfs, x86_64 with cfs"},
		{"machine not known", func(r *targets.BootRecord) { r.Machine = "x86_64" }, nil, "different architectures", false, ""},
		{"command line", nil, func(r *targets.BootRecord) { r.Cmdline += " mitigations=off nosmt" }, "different command lines", false, "only with bfs: mitigations=off nosmt"},
		{"command line in another order, other places of files", nil, func(r *targets.BootRecord) { r.Cmdline = "initrd=b.img kernsweep.nonce=9 root=/dev/sda1 BOOT_IMAGE=/b" }, "different command lines", false, ""},
		{"command line not known", nil, func(r *targets.BootRecord) { r.Cmdline = "" }, "different command lines", false, ""},
		{"iperf", func(r *targets.BootRecord) {
			r.Tools = map[string]string{"iperf": "iperf version 2.0.4 (7 Apr 2008) pthreads"}
		}, func(r *targets.BootRecord) {
			r.Tools = map[string]string{"iperf": "iperf version 2.1.8 (12 August 2022) pthreads"}
		}, "different tools", false, "2.1.8"},
		{"iperf on one of them only", func(r *targets.BootRecord) { r.Tools = map[string]string{"iperf": "iperf 2"} }, func(r *targets.BootRecord) { r.Tools = map[string]string{"tar": "tar"} }, "different tools", false, "no iperf with bfs"},
		{"a tool that no workload uses", func(r *targets.BootRecord) { r.Tools = map[string]string{"gcc": "gcc 12"} }, func(r *targets.BootRecord) { r.Tools = map[string]string{"gcc": "gcc 13"} }, "different tools", false, ""},
		{"tools not known", nil, func(r *targets.BootRecord) { r.Tools = map[string]string{"iperf": "iperf 2"} }, "different tools", false, ""},
	}
}

func TestConditionsOfPairs(t *testing.T) {
	for _, c := range conditions() {
		t.Run(c.name, func(t *testing.T) {
			r := iperfRig(t, func(k string, rec *targets.BootRecord) {
				f := c.cfs
				if k == "bfs" {
					f = c.bfs
				}
				if f != nil {
					f(rec)
				}
			}, nil, nil)
			got := r.found(c.rule)
			if c.want == "" {
				none(t, got)
				return
			}
			f := one(t, got)
			if f.Hard != c.hard || f.Target != "ap" || f.Kernel != "bfs" || f.Against != "cfs" || !strings.Contains(f.Text+" "+f.Evidence, c.want) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// A boot that is the odd one out does not count; where no word is that of most
// boots, the comparison does not.
func TestGovernorOfSomeBoots(t *testing.T) {
	ondemand := freq("governor", "ondemand", "driver", "acpi-cpufreq", "min_freq", "1400000", "max_freq", "1400000")
	r := iperfRig(t, nil, nil, nil)
	r.boot("ap", "bfs", ondemand)
	if f := one(t, r.found("different frequency settings")); !f.Hard || f.Against != "cfs" || !strings.Contains(f.Evidence, "ondemand, performance with bfs") {
		t.Errorf("%+v", f)
	}
	r.boot("ap", "bfs", nil)
	if f := one(t, r.found("different frequency settings")); !f.Hard || f.Against != "" || f.Kernel != "bfs" || f.Boot != 3 || f.Evidence != "ondemand, where others have performance" {
		t.Errorf("%+v", f)
	}
}

func TestFilesOfPairs(t *testing.T) {
	const gcc12 = "Linux version 6.1.0-50-cloud-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-07-02)\n"
	const cross12 = "Linux version 6.12.95 (debian-kernel@lists.debian.org) (x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP\n"
	const old4 = "Linux version 2.6.30.5 (mb@lab) (gcc version 4.1.2 20061115 (prerelease) (Debian 4.1.1-21)) #3 Sun Sep 6 2009\n"
	const clang = "Linux version 5.10.9-gcc9 (build@lab) (Debian clang version 14.0.6, LLD 14.0.6) #1 SMP\n"
	for _, c := range []struct {
		name, file, rule string
		cfs, bfs         string
		want             string
	}{
		{"clock sources", "probe/clocksource", "different clock source", "tsc\n", "hpet\n", "hpet with bfs, tsc with cfs"},
		{"a clock source that is not yet calibrated", "probe/clocksource", "different clock source", "tsc-early\n", "tsc\n", ""},
		{"clock source not on file", "probe/clocksource", "different clock source", "", "tsc\n", ""},
		{"NUMA nodes", "probe/numa", "different memory", "0-1\n", "0\n", "NUMA"},
		{"no NUMA", "probe/numa", "different memory", "0\n", "0\n", ""},
		{"compilers", "probe/version", "different compilers", gcc12, old4, "gcc 4.1.2 with bfs, gcc 12.2.0 with cfs"},
		{"clang", "probe/version", "different compilers", gcc12, clang, "clang 14.0.6 with bfs"},
		{"the same as a cross compiler", "probe/version", "different compilers", gcc12, cross12, ""},
		{"a version line without one", "probe/version", "different compilers", gcc12, "Linux version 3.0\n", ""},
		{"agents", "iperf.lan.default.01/attempt-1/spool", "different agents", "kernsweep-spool 1\nbegin 1 2\npid=1\nagent=go go1.26 mipsle\n\nstat 1 2\n", "kernsweep-spool 1\nbegin 1 2\npid=1\nagent=shell\n\n", "shell with bfs, go go1.26 mipsle with cfs"},
		{"an output that says agent=", "iperf.lan.default.01/attempt-1/spool", "different agents", "begin\nagent=go\n\n", "begin\n\nagent=shell\n", ""},
		{"no spool", "iperf.lan.default.01/attempt-1/spool", "different agents", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := iperfRig(t, nil, nil, nil)
			for i, text := range []string{c.cfs, c.bfs} {
				if text != "" {
					r.file("ap", i+1, c.file, text)
				}
			}
			got := r.found(c.rule)
			if c.want == "" {
				none(t, got)
				return
			}
			if f := one(t, got); f.Hard || f.Against != "cfs" || !strings.Contains(f.Text+" "+f.Evidence, c.want) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// Trials right after the boot, and those of a machine that nobody reboots.
func TestAges(t *testing.T) {
	ms := metrics(workloads.HigherIsBetter, "throughput")
	for _, c := range []struct {
		name     string
		cfs, bfs float64 // uptime when probed
		wait     time.Duration
		want     bool
	}{
		{"both fresh", 30, 40, time.Minute, false},
		{"one is up for days", 30, 400_000, time.Minute, true},
		{"both are up for days", 300_000, 400_000, time.Minute, false},
		{"ten times, but seconds", 2, 40, 0, false},
		{"not known", 0, 400_000, time.Minute, false},
		{"a clock that was set back", 30, 400_000, -time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.cell("x", "iperf.lan", "default", ms, "cfs", "bfs")
			for _, k := range []string{"cfs", "bfs"} {
				n := r.boot("x", k, func(rec *targets.BootRecord) {
					rec.UptimeS = map[string]float64{"cfs": c.cfs, "bfs": c.bfs}[k]
				})
				r.at = r.at.Add(c.wait)
				r.trial(cellOf("x", k, "iperf.lan", "default"), n, 1, values(ms, 15), nil)
			}
			if got := r.found("different ages"); (len(got) == 1) != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A kernel that never booted is compared with nothing; nor is one with itself.
func TestNoPairNoFinding(t *testing.T) {
	r := newRig(t, false)
	ms := metrics(workloads.HigherIsBetter, "throughput")
	r.cell("x", "iperf.lan", "default", ms, "cfs", "bfs")
	r.boot("x", "cfs", nil)
	r.add(results.Record{Lane: "x", Kind: results.KindBoot, Boot: &results.Boot{Number: 2, Kernel: "bfs", Outcome: results.BootFailed,
		Record: targets.BootRecord{CPUs: 99}}})
	for _, f := range Run(r.run, r.state()) {
		if f.Against != "" {
			t.Errorf("%+v", f)
		}
	}
}
