package tui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC // what a golden screen shows
	goleak.VerifyTestMain(m)
}

func at(s int) time.Time { return time.Date(2026, 11, 30, 22, 0, s, 0, time.UTC) }

func secs(s float64) *float64 { return &s }

// fakeRun is a run that a test makes up.
type fakeRun struct {
	view   live.View
	events []live.Event
	err    error
	run    *results.Run
	asked  []control.Request
	refuse error
	cannot string
}

func (f *fakeRun) source() Source {
	return Source{
		Look: func() (live.View, []live.Event, error) {
			e := f.events
			f.events = nil
			return f.view, e, f.err
		},
		Console: func(lane string, boot int) *live.Recording { return live.Console(f.run, lane, boot) },
		Ask: func(_ context.Context, r control.Request) (string, error) {
			f.asked = append(f.asked, r)
			return "lane " + r.Lane + " is paused after what runs", f.refuse
		},
		Cannot: func() string { return f.cannot },
		By:     "ada, kernsweep watch", Report: "kernsweep report RUN", Resume: "kernsweep resume RUN",
	}
}

// newFake is a run of which one lane is in every state.
func newFake(t *testing.T) *fakeRun {
	t.Helper()
	run, err := results.Create(t.TempDir(), "overnight", results.RunMeta{}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeRun{run: run}
	f.view = live.View{Run: "20261130T220000Z-overnight-7f3a", Sweep: "overnight", State: live.Executing, Began: at(0),
		ElapsedS: 11523, LeftS: secs(15780), Trials: 400, Done: 120,
		Outcomes: map[results.Outcome]int{results.OK: 112, results.Failed: 3, results.Skipped: 5}}
	f.view.Lanes = []live.LaneView{
		{Name: "wl500gpv2", State: live.Running, Kernel: "bfs", Boot: 7, Block: 3, Boots: 10, Booted: 6, Doing: "crunch.ltm.j3big #2", DoingS: secs(80), LeftS: secs(15780),
			Trials: 120, Done: 37, Outcomes: map[results.Outcome]int{results.OK: 35, results.Failed: 2}, Last: "bfs crunch.ltm.j3 #1: ok, makespan 8.245 s"},
		{Name: "ar2317", State: live.Running, Kernel: "cfs", Boot: 4, Block: 2, Boots: 10, Booted: 3, Phase: "kernel", Doing: "boot kernel", DoingS: secs(9), LeftS: secs(360000),
			Trials: 120, Done: 30, Outcomes: map[results.Outcome]int{results.OK: 30}, Last: "boot 004 cfs: asked"},
		{Name: "dualcore", State: live.Paused, Reason: "ada, kernsweep watch", Kernel: "eevdf", Boot: 2, Block: 1, Boots: 8, Booted: 2, Doing: "between trials", DoingS: secs(3700),
			Trials: 80, Done: 12, Outcomes: map[results.Outcome]int{results.OK: 12}, Last: "lane paused: ada, kernsweep watch"},
		{Name: "labpi", State: live.Quarantined, Reason: "ssh to labpi: no route to host", Kernel: "cfs", Boot: 1, Block: 1, Boots: 8, Booted: 1, Doing: "quarantined",
			Trials: 80, Done: 41, Outcomes: map[results.Outcome]int{results.OK: 35, results.Failed: 1, results.Skipped: 5}, Last: "lane quarantined: ssh to labpi: no route to host"},
		{Name: "x86", State: live.Waiting, Boots: 8, Doing: "waiting", Trials: 80, Outcomes: map[results.Outcome]int{}},
	}
	f.events = []live.Event{
		{At: at(0), Text: "run began"}, {At: at(1), Lane: "wl500gpv2", Text: "lane began"}, {At: at(2), Lane: "wl500gpv2", Text: "boot 001 bfs: asked"},
		{At: at(50), Lane: "labpi", Text: "lane quarantined: ssh to labpi: no route to host", Bad: true},
		{At: at(58), Lane: "wl500gpv2", Text: "bfs iperf.to_target #1: failed: exit status 1", Bad: true},
		{At: at(59), Lane: "wl500gpv2", Text: "bfs crunch.ltm.j3 #1: ok, makespan 8.245 s"},
	}
	f.console(t, "ar2317", 4, "Starting kernel ...\r\n\r\n[    0.000000] Linux version 2.6.30.5\r\n[    1.204724] sda: sda1 sda2\r\n")
	return f
}

func (f *fakeRun) console(t *testing.T, lane string, boot int, text string) {
	t.Helper()
	dir := f.run.BootDir(lane, boot)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := os.OpenFile(filepath.Join(dir, "console.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = o.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = o.Close()
}

// driven is a model without its program: commands run at once.
type driven struct {
	t *testing.T
	*model
}

func drive(t *testing.T, f *fakeRun, w, h int) *driven {
	d := &driven{t, newModel(t.Context(), f.source())}
	d.Update(tea.WindowSizeMsg{Width: w, Height: h})
	d.lookAgain()
	return d
}

// lookAgain is what a tick does.
func (d *driven) lookAgain() {
	d.looks &^= 1 // the consoles' last lines are read by every other look
	d.Update(d.look()())
}

// press takes keys as a terminal names them; it says whether the person left.
func (d *driven) press(keys ...string) (left bool) {
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "pgdown": tea.KeyPgDown,
		"pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd, "tab": tea.KeyTab, "backspace": tea.KeyBackspace}
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k, Code: []rune(k)[0]}
		if c, ok := named[k]; ok {
			msg = tea.KeyPressMsg{Code: c}
		}
		if k == "ctrl+c" {
			msg = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		}
		_, cmd := d.Update(msg)
		if cmd == nil {
			continue
		}
		if m := cmd(); m != nil {
			if _, left = m.(tea.QuitMsg); !left {
				d.Update(m)
			}
		}
	}
	return left
}

// shown is what a terminal shows, drawn by an emulator of one.
func (d *driven) shown() string {
	d.t.Helper()
	lines := d.draw()
	e := vt.NewEmulator(d.width, d.height)
	defer e.Close()
	if len(lines) != d.height {
		d.t.Errorf("%d lines on a terminal of %d", len(lines), d.height)
	}
	for i, l := range lines {
		if n := ansi.StringWidthWc(l); n > d.width {
			d.t.Errorf("line %d has %d columns of %d: %q", i, n, d.width, l)
		}
		fmt.Fprintf(e, "\x1b[%d;1H%s", i+1, l)
	}
	var out []string
	for _, l := range strings.Split(e.String(), "\n") {
		out = append(out, strings.TrimRight(l, " "))
	}
	return strings.Join(out, "\n") + "\n"
}

func (d *driven) golden(name string) {
	d.t.Helper()
	got := d.shown()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		d.t.Errorf("%s: %s", name, diff)
	}
}

func TestScreens(t *testing.T) {
	sizes := []struct{ w, h int }{{80, 24}, {200, 60}, {20, 5}, {40, 12}}
	for _, size := range sizes {
		d := drive(t, newFake(t), size.w, size.h)
		name := fmt.Sprintf("%dx%d", size.w, size.h)
		d.golden("lanes-" + name)
		d.press("down", "enter")
		d.lookAgain()
		d.golden("console-" + name)
		d.press("q", "up", "l")
		d.golden("log-" + name)
		d.press("q", "S")
		d.golden("question-" + name)
	}
}

func TestEndedScreen(t *testing.T) {
	f := newFake(t)
	f.view.State, f.view.LeftS, f.view.ElapsedS = live.Finished, nil, 31260
	for i := range f.view.Lanes {
		f.view.Lanes[i].State, f.view.Lanes[i].Doing, f.view.Lanes[i].DoingS, f.view.Lanes[i].LeftS = live.LaneEnded, "ended", nil, nil
	}
	d := drive(t, f, 80, 24)
	d.golden("ended-80x24")
	if d.press("x"); !d.bad || len(f.asked) != 0 || d.question != nil {
		t.Errorf("x after the end: %q", d.said)
	}
}

// More lanes than rows: they scroll, and the selected one is always seen.
func TestManyLanes(t *testing.T) {
	f := newFake(t)
	f.view.Lanes = f.view.Lanes[:0]
	for i := range 30 {
		f.view.Lanes = append(f.view.Lanes, live.LaneView{Name: fmt.Sprintf("lane%02d", i+1), State: live.Running, Doing: "boot kernel", Kernel: "cfs", Trials: 10})
	}
	d := drive(t, f, 80, 24)
	seen := func(lane string) {
		t.Helper()
		if s := d.shown(); !strings.Contains(s, "> "+lane) {
			t.Errorf("%s is not seen:\n%s", lane, s)
		}
	}
	seen("lane01")
	for range 24 {
		d.press("down")
	}
	seen("lane25")
	d.golden("many-80x24")
	for _, k := range []struct{ key, lane string }{{"end", "lane30"}, {"down", "lane30"}, {"pgup", "lane15"}, {"home", "lane01"}, {"up", "lane01"}, {"pgdown", "lane16"}, {"k", "lane15"}, {"j", "lane16"}} {
		d.press(k.key)
		seen(k.lane)
	}
}

// Whatever size a terminal has, and whatever is shown, every line fits.
func TestEverySize(t *testing.T) {
	f := newFake(t)
	f.view.Lanes[0].Last = strings.Repeat("日本語 ", 50)
	d := drive(t, f, 80, 24)
	for _, keys := range [][]string{nil, {"enter"}, {"esc", "l"}, {"esc", "?"}, {"esc", "Q"}, {"n", "a", "/", "x"}} {
		d.press(keys...)
		for w := 1; w < 130; w += 1 + w/4 {
			for h := 1; h < 70; h += 1 + h/3 {
				d.Update(tea.WindowSizeMsg{Width: w, Height: h})
				d.shown()
			}
		}
	}
}

// Hostile texts are inert wherever they are shown, and every column stays where it is.
func TestHostileTexts(t *testing.T) {
	f := newFake(t)
	evil := "\x1b[2J\x1b]0;owned\x07\u202eevil\u2066\u200b\u009b31m"
	odd := "日本語é̂́ مرحبا 👩‍👩‍👧 ﷽"
	l := &f.view.Lanes[1]
	l.Kernel, l.Last, l.Reason = live.Safe(odd), live.Safe(evil+odd), live.Safe(evil)
	f.events = append(f.events, live.Event{At: at(3), Lane: "ar2317", Text: live.Safe(evil + odd)})
	f.console(t, "ar2317", 4, "\x1b[31mred\x1b[0m\r\n"+evil+"\r\n"+odd+"\r\nhalf\rway\b\b\r\n\xff\xfe\x00\r\n\x1bP"+strings.Repeat("q", 300)+"\r\n"+evil)
	d := drive(t, f, 80, 24)
	inert := func() {
		t.Helper()
		for _, line := range d.draw() {
			if s := ansi.Strip(line); strings.ContainsAny(s, "\x1b\x07\u202e\u2066\u200b\u009b\r\n\b\x00") {
				t.Errorf("%q", s)
			}
		}
	}
	d.press("down")
	inert()
	d.golden("hostile-lanes-80x24")
	d.press("enter")
	d.lookAgain()
	inert()
	d.golden("hostile-console-80x24")
	d.press("q", "l")
	inert()
	d.golden("hostile-log-80x24")
	f.refuse = errors.New("no: " + evil)
	d.press("q", "p", "y")
	inert()
	f.err = errors.New(evil)
	d.lookAgain()
	inert()
}

// Colour says nothing that words do not say: without it the screen is the same.
func TestNoColour(t *testing.T) {
	d := drive(t, newFake(t), 80, 24)
	for i, l := range d.draw() {
		plain := ansi.Strip(l)
		if strings.Contains(l, "\x1b[38;") || strings.Contains(l, "\x1b[48;") {
			t.Errorf("line %d has colours beyond the first eight: %q", i, l)
		}
		if l := strings.ReplaceAll(plain, " ", ""); strings.Contains(l, "labpi") && i == 6 && !strings.Contains(l, "quarantined") {
			t.Errorf("only colour says how labpi stands: %q", plain)
		}
	}
}
