package glance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets/boot"
)

// night is a lab of n targets that are rebooted by a command, decoded like any.
func night(t *testing.T, n int, more, sweep string) (*config.Lab, *plan.Plan) {
	t.Helper()
	var b strings.Builder
	b.WriteString("kernel \"a\" {}\nkernel \"b\" {}\nworkload \"exec\" \"w\" {\n command = [\"true\"]\n metrics = { t = \"time:elapsed\" }\n duration = \"1m\"\n}\n")
	var names []string
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		if i%7 == 3 {
			name = fmt.Sprintf("target_with_a_rather_long_name_that_goes_on_%d", i)
		}
		names = append(names, "target."+name)
		fmt.Fprintf(&b, "target %q {\n host = \"192.0.2.%d\"\n boot \"command\" { command = [\"true\"] }\n%s}\n", name, i+1, more)
	}
	fmt.Fprintf(&b, "sweep \"night\" {\n kernels = [kernel.a, kernel.b]\n%s matrix {\n targets = [%s]\n workloads = [workload.exec.w]\n }\n}\n", sweep, strings.Join(names, ", "))
	file := filepath.Join(t.TempDir(), "lab.hcl")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	lab, diags := config.Load(file, nil, func(string) (string, bool) { return "", false })
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	p, err := plan.Expand(lab, lab.Sweep("night"), 1, plan.Filter{}, plan.History{})
	if err != nil {
		t.Fatal(err)
	}
	return lab, p
}

func text(t *testing.T, g Glance) string {
	t.Helper()
	var b strings.Builder
	if err := g.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// One to thirty lanes fit on a screen: 80 characters wide but for commands that are
// to be pasted, a line for each lane, and few more.
func TestOneScreen(t *testing.T) {
	for _, n := range []int{1, 2, 12, 30} {
		lab, p := night(t, n, "", "")
		now := time.Date(2026, 12, 1, 18, 0, 0, 0, time.UTC)
		f := plan.ForecastUntil(lab, p, plan.History{}, plan.Deadline{At: now.Add(8 * time.Minute)}, now)
		got := text(t, Of(Facts{Lab: lab, Plan: p, Forecast: f, Runs: t.TempDir(), Now: now, Again: "kernsweep run night", Prefix: "kernsweep"}))
		lines := strings.Split(strings.TrimRight(got, "\n"), "\n")
		if len(lines) > n+26 {
			t.Errorf("%d lanes take %d lines:\n%s", n, len(lines), got)
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > width && !strings.HasPrefix(l, "    -> kernsweep ") {
				t.Errorf("too wide: %q", l)
			}
		}
		for _, want := range []string{"all in all about", "over at 18:", "things to look at", "never rehearsed", "\n    -> kernsweep target doctor t0", "not every block fits before 18:08"} {
			if !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%d lanes: no %q in\n%s", n, want, got)
			}
		}
	}
}

// What stands against the night, each with what to do.
func TestThings(t *testing.T) {
	const good = " known_good = kernel.a\n"
	const line = " console \"tcp\" { address = \"labpi:2001\" }\n"
	const plug = " power \"tasmota\" { address = \"plug1\" }\n"
	now := time.Date(2026, 12, 1, 18, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		more, sweep string
		change      func(*Facts)
		back        string // by what the target comes back
		want        []string
	}{
		"well":            {good + line + plug, "", func(f *Facts) { rehearse(t, f, "t0", "192.0.2.1:0", now.Add(-time.Hour), true) }, "power", nil},
		"no known_good":   {line + plug, "", nil, "nobody", []string{"no known_good kernel: after a failed boot nobody brings it back", "known_good = kernel.NAME in the target", "never rehearsed"}},
		"no power":        {good + line, "", nil, "SysRq", []string{"unless SysRq on its console still works", "a power block in the target"}},
		"nothing at all":  {good, "", nil, "nobody", []string{"no power driver: after a hang nobody brings it back", "no console: a hang"}},
		"another address": {good + line + plug, "", func(f *Facts) { rehearse(t, f, "t0", "192.0.2.99:22", now, true) }, "power", []string{"rehearsed at another address only"}},
		"a rehearsal that failed": {good + line + plug, "", func(f *Facts) { rehearse(t, f, "t0", "192.0.2.1:0", now.Add(-3*time.Hour), false) }, "power",
			[]string{`its rehearsal 3h00m ago failed at "boot"`, "kernsweep target doctor t0"}},
		"a rehearsal of long ago": {good + line + plug, " rehearsed = \"24h\"\n", func(f *Facts) { rehearse(t, f, "t0", "192.0.2.1:0", now.Add(-72*time.Hour), true) }, "power",
			[]string{"rehearsed 3 days ago"}},
		"in use": {good + line + plug, "", func(f *Facts) {
			f.Leases = []leases.Record{{What: "target t0", Owner: "ada", PID: 7, Host: "lab1", Run: "20261201-x", State: leases.Held, Since: now, Until: now}}
		}, "power", []string{"in use by ada (process 7 on lab1, run 20261201-x), since", "kernsweep run night --wait"}},
		"in use under another name": {good + line + plug, "", func(f *Facts) {
			f.Leases = []leases.Record{{Key: "target:192.0.2.1:22", What: "target other", Owner: "ada", State: leases.Held}}
		}, "power", []string{"in use by ada"}},
		"a receiver without its secret": {good + line + plug, " notify \"webhook\" \"chat\" {\n url_env = \"KERNSWEEP_NO_SUCH\"\n template = \"slack\"\n }\n", nil, "power",
			[]string{"KERNSWEEP_NO_SUCH is not set", "kernsweep notify test night"}},
	} {
		t.Run(name, func(t *testing.T) {
			lab, p := night(t, 1, c.more, c.sweep)
			f := Facts{Lab: lab, Plan: p, Runs: t.TempDir(), Now: now, Again: "kernsweep run night", Prefix: "kernsweep"}
			if c.change != nil {
				c.change(&f)
			}
			g := Of(f)
			got := strings.Join(strings.Fields(text(t, g)), " ")
			if g.Lanes[0].Recovery != c.back {
				t.Errorf("back by %q, want %q", g.Lanes[0].Recovery, c.back)
			}
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("no %q in\n%s", w, got)
				}
			}
			if c.want == nil && len(g.Things) > 0 || c.want == nil && !strings.Contains(got, "nothing stands against it") {
				t.Errorf("%+v\n%s", g.Things, got)
			}
			for _, thing := range g.Things {
				if thing.Do == "" {
					t.Errorf("nothing to do: %+v", thing)
				}
			}
		})
	}
}

// A method that starts nothing is in nobody's way where one boot is all that is
// asked for.
func TestOneBootOfWhatRuns(t *testing.T) {
	lab, p := night(t, 1, "", "")
	lab.Targets[0].Boot, lab.Targets[0].BootKind = new(boot.None), "none"
	for boots, said := range map[int]bool{1: false, 2: true} {
		p.Lanes[0].Boots = p.Lanes[0].Boots[:2][:boots]
		got := text(t, Of(Facts{Lab: lab, Plan: p, Runs: t.TempDir(), Now: time.Now(), Again: "kernsweep run night", Prefix: "kernsweep"}))
		if strings.Contains(got, "starts nothing") != said {
			t.Errorf("%d boots:\n%s", boots, got)
		}
	}
}

// A lease of ours is nobody else's, and one that nobody renews is none.
func TestLeasesOfNobodyElse(t *testing.T) {
	lab, p := night(t, 1, "", "")
	f := Facts{Lab: lab, Plan: p, Runs: t.TempDir(), Leases: []leases.Record{{What: "target t0", PID: 1, State: leases.Held}, {What: "target t0", State: leases.Gone}},
		Mine: func(r leases.Record) bool { return r.PID == 1 }}
	if g := Of(f); g.Lanes[0].Held != "" {
		t.Errorf("%+v", g.Lanes[0])
	}
}

// The room is what earlier runs took, else a rule that is said.
func TestDisk(t *testing.T) {
	lab, p := night(t, 1, "", "")
	f := Facts{Lab: lab, Plan: p, Runs: t.TempDir()}
	boots, trials := int64(len(p.Lanes[0].Boots)), int64(p.Trials())
	if d := Of(f).Disk; d.Need != boots*bootBytes+trials*trialBytes || !strings.Contains(d.From, "a rule") || d.Free <= 0 || d.Short() {
		t.Errorf("%+v", d)
	}
	run, err := results.Create(f.Runs, "night", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(run.Dir(), "t0", "boot-001", "exec.w.default.01", "attempt-1")
	if err := os.MkdirAll(at, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "stdout"), make([]byte, 8<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	if d := Of(f).Disk; d.From != "earlier runs" || d.Need < 8<<20*trials || d.Need > 9<<20*trials {
		t.Errorf("%+v, %d trials", d, trials)
	}
	if d := (Disk{Need: 1 << 30, Free: 1 << 30}); !d.Short() {
		t.Error("no reserve is kept")
	}
	if d := (Disk{Need: 1 << 30, Free: -1}); d.Short() {
		t.Error("what is not known is not short")
	}
	if Free(filepath.Join(f.Runs, "not", "yet")) != Free(f.Runs) && Free(f.Runs) <= 0 {
		t.Error("a folder that is not there yet has the room of the one it will be in")
	}
}

func rehearse(t *testing.T, f *Facts, target, address string, when time.Time, ok bool) {
	t.Helper()
	if strings.HasSuffix(address, ":0") {
		address = orchestrator.AddressOf(f.Lab.Target(target))
	}
	r := orchestrator.Rehearsal{Target: target, Address: address, When: when, Steps: []orchestrator.RehearsalStep{{Name: "boot", OK: ok}}}
	if err := r.Save(f.Runs); err != nil {
		t.Fatal(err)
	}
}

// Names and reasons from outside drive no terminal.
func TestHostileNames(t *testing.T) {
	g := Glance{Lanes: []Lane{{Target: "a\x1b[2Jb"}}, Things: []Thing{{Targets: []string{"x\x1b]0;t\x07"}, What: "\x1b[31mred", Do: "kernsweep \x1b[1m"}}, na: []string{"\x1b[5m"}, warning: []string{"\u202e"}, Notify: []string{"\x1b"}}
	if got := text(t, g); strings.ContainsAny(got, "\x1b\x07\u202e") {
		t.Errorf("%q", got)
	}
}
