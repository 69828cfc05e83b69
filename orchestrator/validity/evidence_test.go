package validity

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads/wire"
)

// attempt is the folder of a trial of 10 s on one CPU, as it is on file.
func attempt() fstest.MapFS {
	var b strings.Builder
	w, err := wire.NewWriter(&b, 0)
	if err != nil {
		panic(err)
	}
	for _, r := range []wire.Record{
		{Type: wire.TypeBegin, MonoNS: 50 * second, Body: []byte("wall=1700000000000000000\nagent=go\n")},
		{Type: wire.TypeState, MonoNS: 50 * second, Body: []byte(cpuDir + "cpu0/cpufreq/scaling_governor=performance\n" + cpuDir + "cpu0/thermal_throttle/core_throttle_count=1\n")},
		{Type: wire.TypeStat, MonoNS: 50 * second, Body: []byte("cpu 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\nprocs_running 1\n")},
		{Type: wire.TypeStat, MonoNS: 60 * second, Body: []byte("cpu 990 0 5 5 0 0 0 0\ncpu0 990 0 5 5 0 0 0 0\nprocs_running 1\n")},
		{Type: wire.TypeState, MonoNS: 60 * second, Body: []byte(cpuDir + "cpu0/cpufreq/scaling_governor=performance\n" + cpuDir + "cpu0/thermal_throttle/core_throttle_count=1\n")},
		{Type: wire.TypeTask, MonoNS: 60 * second, Name: "x", Body: wire.AppendTask(nil, wire.Task{StartNS: 50 * second, EndNS: 60 * second, UserUS: 9_900_000})},
		{Type: wire.TypeEnd, MonoNS: 60 * second, Body: []byte("status=ok\ncpu_us=9000\nwall=1700000010000000000\n")},
	} {
		if err := w.Write(r.Type, r.MonoNS, r.Name, r.Body); err != nil {
			panic(err)
		}
	}
	return fstest.MapFS{
		"spool":      {Data: []byte(b.String())},
		WitnessFile:  {Data: []byte(`{"workload":"crunch","elapsed":{"target_s":10.5,"least_s":10.3,"most_s":10.8},"kernel_log":{"taint_before":"0","taint_after":"0"}}`)},
		"trial.json": {Data: []byte(`{"kind":"judged","outcome":"ok","parsed":{"values":[]}}`)},
	}
}

func judge(t *testing.T, files fstest.MapFS) ([]results.Finding, []string) {
	t.Helper()
	e, err := Read(files, targets.BootRecord{})
	if err != nil {
		t.Fatal(err)
	}
	return Trial(e)
}

func TestARuleCanBeAppliedToAFolder(t *testing.T) {
	f, u := judge(t, attempt())
	if f != nil || len(u) != 2 || !strings.HasPrefix(u[0], "swapped: ") || !strings.HasPrefix(u[1], "frequency not steady: ") {
		t.Errorf("%+v, unchecked %q", f, u)
	}
	files := attempt()
	files[NewLinesFile] = &fstest.MapFile{Data: []byte("[  101.250000] jffs2: error: (88) jffs2_do_read_inode_internal: CRC failed\r\n" +
		"[  101.260000] JFFS2 notice: (88) check_node_data: wrong data CRC in data node at 0x00112c50\n[  101.3] br-lan: port 1\n")}
	f, _ = judge(t, files)
	if len(f) != 1 || !f[0].Hard || f[0].Rule != "flash errors" || !strings.HasPrefix(f[0].Text, "the kernel complained 2 times, first: [  101.250000] jffs2: error: (88)") {
		t.Errorf("%+v", f)
	}
}

// The spool of an agent of an earlier version, and a folder without witness.
func TestOldFoldersAreJudgedByWhatTheyHave(t *testing.T) {
	files := fstest.MapFS{"spool": {Data: []byte(wire.Magic + "begin 5 13\nwall=1000000\n\nend 6 23\nstatus=ok\nwall=1000000\n\n")}}
	f, u := judge(t, files)
	if f != nil || !strings.Contains(strings.Join(u, "\n"), "the agent left no two states: it is of an earlier version, or died") {
		t.Errorf("%+v, unchecked %q", f, u)
	}
	if f, u := judge(t, fstest.MapFS{}); f != nil || len(u) == 0 {
		t.Errorf("an empty folder: %+v, %q", f, u)
	}
	f, _ = judge(t, fstest.MapFS{"spool": {Data: []byte(wire.Magic + "stat 5 3\ncp")}})
	if f != nil {
		t.Errorf("a torn spool: %+v", f)
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	files := attempt()
	files[WitnessFile] = &fstest.MapFile{Data: []byte("{")}
	e, err := Read(files, targets.BootRecord{})
	if err == nil || !strings.Contains(err.Error(), WitnessFile) || e.Spool == nil || e.Parsed == nil {
		t.Errorf("%v, %+v", err, e)
	}
}

// A kernel's log before and after a trial: an old WARNING and words in a sentence
// are nothing, and a ring that overflowed invents nothing.
func TestOldComplaintsNeverCount(t *testing.T) {
	const old = "[    0.000000] Linux version 6.1.0-x #7\n[    4.500000] WARNING: CPU: 0 PID: 3 at fs/x.c:9 y+0x1/0x2\n[   30.000000] eth0: link up\n"
	now := "[    4.500000] WARNING: CPU: 0 PID: 3 at fs/x.c:9 y+0x1/0x2\n[   30.000000] eth0: link up\n" +
		"[  201.000000] probe: WARNING and BUG are words here\n"
	look := func(text string) *Evidence {
		d := targets.KernelLog{Text: []byte(text), Taint: "512"}.Since(targets.KernelLog{Text: []byte(old), Taint: "512"})
		e := sound()
		e.Lines, e.Log = d.New, &LogWitness{TaintBefore: d.TaintBefore, TaintAfter: d.TaintAfter, Notes: d.Notes}
		return e
	}
	e := look(now)
	if f, _ := Trial(e); f != nil || e.Complained() != "" || len(e.Log.Notes) != 1 {
		t.Errorf("%+v, %q, %q", f, e.Complained(), e.Log.Notes)
	}
	e = look(now + "[  202.000000] BUG: scheduling while atomic: nc/71/0x00000002\n[  202.000100] Call Trace:\n[  203.000000] \x1b[31mx\n")
	f, _ := Trial(e)
	if len(f) != 1 || !f[0].Hard || f[0].Rule != "oops" || f[0].Text != "the kernel complained: [  202.000000] BUG: scheduling while atomic: nc/71/0x00000002" {
		t.Errorf("%+v", f)
	}
}

func TestLongAndHostileLinesAreCut(t *testing.T) {
	e := sound()
	e.Lines = []string{"[    1.000000] WARNING: \x1b[2J<script>\xff" + strings.Repeat("é", 1000)}
	f, _ := Trial(e)
	if len(f) != 1 || len([]rune(f[0].Text)) > 220 || strings.Contains(f[0].Text, "\x1b") || !utf8.ValidString(f[0].Text) {
		t.Errorf("%+v", f)
	}
}

func FuzzTrial(f *testing.F) {
	for name, file := range attempt() {
		f.Add(name, file.Data, []byte("[    1.000000] WARNING: x\n"))
	}
	f.Fuzz(func(t *testing.T, name string, data, log []byte) {
		files := attempt()
		if files[name] != nil {
			files[name] = &fstest.MapFile{Data: data}
			files["peer-spool"] = &fstest.MapFile{Data: data}
		}
		files[NewLinesFile] = &fstest.MapFile{Data: log}
		e, err := Read(files, targets.BootRecord{CPUFreq: map[string]string{"governor": string(log)}})
		if e == nil || errors.Is(err, wire.ErrTorn) {
			t.Fatalf("%v", err)
		}
		for _, kind := range []string{"iperf", e.Workload} {
			e.Workload = kind
			found, _ := Trial(e)
			for _, x := range found {
				if x.Rule == "" || x.Text == "" || strings.Contains(x.Text, "NaN") || strings.Contains(x.Text, "Inf") || strings.Contains(x.Evidence, "NaN") {
					t.Errorf("%+v", x)
				}
			}
		}
	})
}
