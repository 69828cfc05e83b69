package report

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// The table of six kernels, three tasks and three scenarios (testdata/floats.txt
// has the numbers that were posted); j3big cannot be had on mainline.
func TestFloatTable(t *testing.T) {
	l := newLab(t, "floats")
	var ms []workloads.Metric
	for _, task := range []string{"LTMM", "LTMB", "LTBM"} {
		ms = append(ms, m(task+".user", "s", workloads.LowerIsBetter), m(task+".wall", "s", workloads.LowerIsBetter))
	}
	kernels := []string{"cfs_v9", "cfs_v7", "cfs_v6", "sd_048", "sd_046", "mainline"}
	release := []string{"2.6.21.1-cfs-v9", "2.6.21.1-cfs-v7", "2.6.21-cfs-v6", "2.6.21-sd-048", "2.6.21-sd-046", "2.6.21.1"}
	l.target(results.PlannedTarget{Name: "dualcore", Arch: "amd64", Boot: "none"})
	l.cells("dualcore", kernels, "crunch.ltm", []string{"j1", "j3", "j3big"}, 1, 3, ms...)
	for i := range l.plan.Cells {
		if c := &l.plan.Cells[i]; c.Kernel == "mainline" && c.Scenario == "j3big" {
			c.NA = "scheduler o1 has no timeslice knob"
		}
	}
	got := floats(t)
	for i, k := range kernels {
		l.kernel(k, strings.Split(k, "_")[0])
		boot := l.booted("dualcore", k, release[i], strings.Split(k, "_")[0], 1)
		for _, sc := range []string{"j1", "j3", "j3big"} {
			for repeat := 1; repeat <= 3; repeat++ {
				p := &workloads.Parsed{}
				for j, task := range []string{"LTMM", "LTMB", "LTBM"} {
					if v, ok := got[strings.Join([]string{task, release[i], sc, strconv.Itoa(repeat)}, " ")]; ok {
						p.Values = append(p.Values, workloads.Value{Metric: ms[2*j], Value: v[0]}, workloads.Value{Metric: ms[2*j+1], Value: v[1]})
					}
				}
				if sc == "j1" && len(p.Values) > 0 {
					p.Values = append(p.Values, workloads.Value{Metric: m("LTMM.involuntary", "count", workloads.Informative), Value: 7})
				}
				if len(p.Values) > 0 {
					l.trial(slot("dualcore", k, "crunch.ltm", sc, 1, boot, repeat), results.OK, "", p, nil)
				}
			}
		}
	}
	l.end("dualcore")
	golden(t, "floats", l.done(), nil, "text")
}

func floats(t *testing.T) map[string][2]float64 {
	t.Helper()
	b, err := os.ReadFile("testdata/floats.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]float64{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		f := strings.Fields(line)
		user, err1 := strconv.ParseFloat(f[4], 64)
		wall, err2 := strconv.ParseFloat(f[5], 64)
		if err1 != nil || err2 != nil {
			t.Fatal(line)
		}
		got[strings.Join(f[:4], " ")] = [2]float64{user, wall}
	}
	return got
}

// Everything that can go wrong in one run, with text a device chose.
func TestBadNight(t *testing.T) {
	l := newLab(t, "night")
	ms := []workloads.Metric{m("seconds", "s", workloads.LowerIsBetter), m("lost", "%", workloads.LowerIsBetter)}
	ms[0].Primary = true
	for _, name := range []string{"a", "b", "c"} {
		l.target(results.PlannedTarget{Name: name, Boot: "ssh-reboot"})
		l.cells(name, []string{"one", "two"}, "exec.build", []string{"default"}, 2, 2, ms...)
	}
	l.kernel("one", "")
	l.kernel("two", "")
	for block := 1; block <= 2; block++ {
		boot := l.booted("a", "one", "6.1.0\x1b[31m", "cfs", block)
		for repeat := 1; repeat <= 2; repeat++ {
			p := parsed(ms, float64(10*block+repeat), 0)
			if repeat == 2 {
				p.Values[1].Missing = "the tool printed no loss"
			}
			p.Warnings = []string{"steal above 1 %", "Bell \a and back\b"}
			l.trial(slot("a", "one", "exec.build", "default", block, boot, repeat), results.OK, "", p, nil)
		}
	}
	boot := l.booted("a", "two", "6.12.0", "eevdf", 1)
	s := slot("a", "two", "exec.build", "default", 1, boot, 1)
	l.trial(s, results.Invalid, "clock jumped by 3 s", nil, nil)
	l.trial(slot("a", "two", "exec.build", "default", 1, boot, 2), results.Failed, "exit status 2", nil, nil)
	l.add(results.Record{Lane: "a", Kind: results.KindStarted, Slot: &results.Slot{Cell: s.Cell, Block: 2, Boot: boot, Repeat: 1}, Attempt: 1})
	l.bootAs("b", results.Boot{Kernel: "one", Block: 1, Outcome: results.Lost, Reason: "connect: no route to host", Record: targets.BootRecord{}})
	l.add(results.Record{Lane: "b", Kind: results.KindLane, Note: results.NoteQuarantined, Reason: "power: plug answered 500 \x9b2J"})
	skipped := slot("b", "one", "exec.build", "default", 1, 1, 1)
	l.add(results.Record{Lane: "b", Kind: results.KindJudged, Slot: &skipped, Outcome: results.Skipped, Reason: "target quarantined"})
	l.add(results.Record{Lane: "b", Kind: results.KindNote, Note: "host key accepted after a boot"})
	l.add(results.Record{Kind: results.KindRun, Note: results.NoteInterrupted})
	l.seq += 2 // two records are lost
	l.lane["a"]++
	boot = l.booted("a", "two", "6.12.0", "eevdf", 2)
	l.trial(slot("a", "two", "exec.build", "default", 2, boot, 2), results.OK, "", parsed(ms, 5, 0), nil)
	golden(t, "night", l.done(), nil, "text", "md", "csv")
}

func TestVMStat(t *testing.T) {
	l := newLab(t, "vm")
	ms := []workloads.Metric{m("seconds", "s", workloads.LowerIsBetter)}
	l.target(results.PlannedTarget{Name: "a"})
	l.cells("a", []string{"one", "two", "three"}, "exec.build", []string{"default"}, 1, 1, ms...)
	act := &results.Activity{Samples: 2, Seconds: 2, Switches: 4.84, Interrupts: 266.8, User: 33.8, System: 66.2, Missing: []string{"st"}}
	for i, k := range []string{"one", "two"} {
		boot := l.booted("a", k, "6.1", "cfs", 1)
		s := slot("a", k, "exec.build", "default", 1, boot, 1)
		l.trial(s, results.OK, "", parsed(ms, 1), []*results.Activity{act, nil}[i])
		if i == 0 {
			l.raw(s, "vmstat.csv", "mono_ns,seconds,r,b,swpd,free,buff,cache,si,so,bi,bo,in,cs,us,sy,id,wa,note\n"+
				"1000000000,1,1,0,0,15892,1684,5868,0,0,0,0,268,6,31,69,0,0,\n2000000000,1,1,0,0,15892,1684,5868,0,0,0,0,266,2,34,66,0,0,\n")
		}
	}
	l.end("a")
	golden(t, "vm", l.done(), nil, "text+vmstat")
}

func TestEmptyRun(t *testing.T) {
	run, err := results.Create(t.TempDir(), "empty", results.RunMeta{Who: "kim", Host: "bench1", Version: "0.1"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "empty", run, nil, "text+vmstat", "md", "csv", "json")
}
