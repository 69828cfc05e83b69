package targets

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func fixtureLog(t *testing.T, name string) KernelLog {
	t.Helper()
	b, err := os.ReadFile("testdata/dmesg/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return KernelLog{Text: b, Taint: "512"}
}

// An old warning is not the trial's, a new BUG is, a word in a sentence is not.
func TestKernelLogDelta(t *testing.T) {
	d := fixtureLog(t, "dmesg_after.txt").Since(fixtureLog(t, "dmesg_before.txt"))
	if len(d.Signs) != 1 || d.Signs[0].Kind != LogOops || !strings.Contains(d.Signs[0].Line, "141.700312] BUG: scheduling while atomic") || len(d.New) != 3 {
		t.Errorf("%+v", d)
	}
	if d.TaintBefore != d.TaintAfter || len(d.Notes) != 1 {
		t.Errorf("%+v", d)
	}
}

func TestKernelLogDeltaEdges(t *testing.T) {
	log := func(s string) KernelLog { return KernelLog{Text: []byte(s)} }
	for _, c := range []struct {
		name, before, after string
		fresh               int
	}{
		{"same", "[ 1.000000] a\n", "[ 1.000000] a\n", 0},
		{"same time, another line", "[ 1.000000] a\n", "[ 1.000000] a\n[ 1.000000] b\n", 1},
		{"nothing before", "", "[ 1.000000] a\n", 1},
		{"all overwritten", "[ 1.000000] a\n", "[ 9.000000] b\n[ 9.100000] c\n", 2},
		{"no times", "a\nb\n", "a\nb\nc\n", 1},
		{"no times, overwritten", "a\nb\n", "x\ny\n", 2},
		{"continuation", "[ 1.000000] a\n", "[ 1.000000] a\n more of a\n[ 2.000000] b\n more of b\n", 2},
	} {
		if d := log(c.after).Since(log(c.before)); len(d.New) != c.fresh {
			t.Errorf("%s: %q", c.name, d.New)
		}
	}
	if d := (KernelLog{Missing: "not permitted"}).Since(log("a")); len(d.Notes) != 1 || d.Signs != nil {
		t.Errorf("%+v", d)
	}
}

func TestReadKernelLog(t *testing.T) {
	l, err := ReadKernelLog(t.Context(), shellConn{[]string{"sh"}})
	if err != nil || l.Taint == "" || (l.Text == nil) != (l.Missing != "") || l.Uptime <= 0 {
		t.Errorf("%v %+v", err, l)
	}
	later, err := ReadKernelLog(t.Context(), shellConn{[]string{"sh"}})
	there, least, most, ok := later.Elapsed(l)
	if err != nil || !ok || there < least-0.02 || there > most+0.02 {
		t.Errorf("%v: %g s there, %g to %g s here, %v", err, there, least, most, ok)
	}
	if _, _, _, ok := later.Elapsed(KernelLog{}); ok {
		t.Error("a look that never was tells the time")
	}
}

// A reboot is a boot_id that changed; a wall clock that jumps is none.
func TestRecheck(t *testing.T) {
	rec := BootRecord{BootID: idOld, UptimeS: 100, Scheduler: Scheduler{Name: "eevdf"}}
	ext := BootRecord{BootID: idOld, UptimeS: 100, Scheduler: Scheduler{Name: "sched_ext", Detail: "lavd"}}
	for _, c := range []struct {
		name, out string
		rec       BootRecord
		what      string
	}{
		{"same", idOld + "\nuptime 160.1\n", rec, ""},
		{"rebooted", idNew + "\nuptime 31\n", rec, "boot_id"},
		{"uptime fell", idOld + "\nuptime 31\n", rec, "uptime"},
		{"no uptime", idOld + "\n", rec, ""},
		{"sched_ext loaded", idOld + "\nuptime 160\nstate enabled\nroot/ops lavd\n", rec, "the scheduler"},
		{"sched_ext idle", idOld + "\nuptime 160\nstate disabled\n", rec, ""},
		{"sched_ext same", idOld + "\nuptime 160\nstate enabled\nroot/ops lavd\n", ext, ""},
		{"sched_ext ejected", idOld + "\nuptime 160\nstate disabled\n", ext, "the scheduler"},
		{"sched_ext replaced", idOld + "\nuptime 160\nstate enabled\nroot/ops rusty\n", ext, "the sched_ext scheduler"},
		{"bore switched on", idOld + "\nuptime 160\nbore 1\n", rec, "the scheduler"},
	} {
		m := newMachine()
		m.recheck = c.out
		err := Recheck(t.Context(), &fakeConn{m: m, id: idOld}, c.rec)
		var re *RebootedError
		if errors.As(err, &re) != (c.what != "") || re != nil && re.What != c.what {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	m := newMachine()
	m.recheck = "sh: can't fork\n"
	if err := Recheck(t.Context(), &fakeConn{m: m, id: idOld}, rec); err == nil {
		t.Error("an answer without a boot_id was accepted")
	}
}
