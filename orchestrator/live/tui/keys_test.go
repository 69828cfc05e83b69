package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
)

// has fails the test when the screen does not show a text.
func (d *driven) has(texts ...string) {
	d.t.Helper()
	s := d.shown()
	for _, want := range texts {
		if !strings.Contains(s, want) {
			d.t.Errorf("%q is not shown:\n%s", want, s)
		}
	}
}

// Every key that changes something asks, and asks for the right thing.
func TestSteering(t *testing.T) {
	const by = "ada, kernsweep watch"
	for _, c := range []struct {
		name  string
		keys  []string
		words string
		want  control.Request
	}{
		{"skip trial", []string{"s"}, "Skip a trial of lane wl500gpv2 (now: crunch.ltm.j3big #2, kernel bfs)?", control.Request{Action: control.SkipTrial, Lane: "wl500gpv2", By: by}},
		{"skip kernel", []string{"S"}, "Skip kernel bfs in lane wl500gpv2?", control.Request{Action: control.SkipKernel, Lane: "wl500gpv2", Kernel: "bfs", By: by}},
		{"pause", []string{"down", "p"}, "Pause lane ar2317", control.Request{Action: control.Pause, Lane: "ar2317", By: by}},
		{"go on", []string{"down", "down", "p"}, "Let lane dualcore go on? 68 of its 80", control.Request{Action: control.GoOn, Lane: "dualcore", By: by}},
		{"quarantine", []string{"Q"}, "Quarantine target wl500gpv2?", control.Request{Action: control.Quarantine, Lane: "wl500gpv2", By: by}},
		{"stop", []string{"x"}, "Stop the run, all 5 lanes?", control.Request{Action: control.Stop, By: by}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			d := drive(t, f, 120, 30)
			d.press(c.keys...)
			d.has(c.words, "y: yes")
			d.press("n")
			d.has("nothing was changed")
			if len(f.asked) > 0 {
				t.Fatalf("asked without a yes: %+v", f.asked)
			}
			d.press(c.keys[len(c.keys)-1], "y")
			if diff := cmp.Diff([]control.Request{c.want}, f.asked); diff != "" {
				t.Error(diff)
			}
			d.has("is paused after what runs")
			f.refuse = errors.New("lane is over")
			d.press(c.keys[len(c.keys)-1], "y")
			d.has("! lane is over")
		})
	}
}

// What cannot be done is said, and not asked.
func TestSteeringThatCannotBe(t *testing.T) {
	f := newFake(t)
	d := drive(t, f, 100, 30)
	d.press("end", "S")
	d.has("! lane x86 has no kernel yet")
	d.press("up", "s")
	d.has("! lane labpi is over (quarantined)")
	f.cannot = "the run is executed by bea on lab2: steer it there"
	d.press("home", "s")
	d.has("! the run is executed by bea on lab2: steer it there")
	f.cannot = ""
	d.press("s")
	f.view.Lanes[0].Doing = "crunch.ltm.j3big #3"
	d.lookAgain()
	d.press("y")
	d.has("! lane wl500gpv2 has gone on meanwhile (crunch.ltm.j3big #3): nothing was changed")
	d.press("x")
	f.view.State = live.Finished
	d.lookAgain()
	d.press("y")
	d.has("! the run is not being executed (ended)")
	if len(f.asked) > 0 {
		t.Errorf("%+v", f.asked)
	}
	f.err = errors.New("run x: its journal cannot be read")
	d.lookAgain()
	d.has("! run x: its journal cannot be read", "wl500gpv2")
}

// A fault in what is drawn, or in what a key does, ends the view in good order.
func TestFaults(t *testing.T) {
	d := drive(t, newFake(t), 80, 24)
	d.mode = showConsole // without one
	if v := d.View(); !v.AltScreen || d.failed == nil {
		t.Errorf("drawing: %v", d.failed)
	}
	if !d.press("j") {
		t.Error("the view does not end")
	}
	d = drive(t, newFake(t), 80, 24)
	d.mode = showConsole
	if !d.press("j") || d.failed == nil {
		t.Errorf("a key: %v", d.failed)
	}
}

func TestLeaving(t *testing.T) {
	d := drive(t, newFake(t), 80, 24)
	if d.press("esc") || !d.press("q") || !d.press("ctrl+c") {
		t.Error("q and Ctrl-C leave, Esc does not")
	}
	d.press("enter")
	if d.press("q") || d.mode != showLanes {
		t.Error("q in a console goes back")
	}
	d.press("l", "?")
	d.has("─ keys ─")
	if d.press("q") || d.mode != showLog {
		t.Error("q in the help goes back to the log")
	}
	if d.press("/", "q"); d.mode != showLog {
		t.Error("q in a search is a letter")
	}
	if d.press("esc"); !d.press("ctrl+c") {
		t.Error("Ctrl-C leaves from anywhere")
	}
	d.press("q", "x")
	if !d.press("ctrl+c") {
		t.Error("Ctrl-C at a question leaves, and changes nothing")
	}
}

// A console is followed, over lines that come in pieces and into the next boot.
func TestConsoleFollows(t *testing.T) {
	f := newFake(t)
	d := drive(t, f, 80, 12)
	d.press("down", "c")
	for i := range 20 {
		f.console(t, "ar2317", 4, fmt.Sprintf("line %d\r\n", i))
	}
	f.console(t, "ar2317", 4, "login: ")
	d.lookAgain()
	d.has("following", "line 19", "login:")
	f.console(t, "ar2317", 4, "root\r\n")
	d.lookAgain()
	d.has("login: root")
	d.press("pgup", "pgup", "pgup", "pgup")
	f.console(t, "ar2317", 4, "later\r\n")
	d.lookAgain()
	d.has("Starting kernel", "End follows")
	d.press("/", "L", "I", "N", "E", " ", "1", "x", "backspace", "enter")
	d.press("end", "/", "l", "i", "n", "e", " ", "7", "enter")
	d.has("search: line 7", "line 7")
	d.press("n")
	d.has("line 7")
	d.press("end")
	f.view.Lanes[1].Boot, f.view.Lanes[1].Kernel = 5, "bfs"
	f.console(t, "ar2317", 5, "U-Boot 1.1\r\n")
	d.lookAgain()
	d.lookAgain()
	d.has("--- boot 5, kernel bfs ---", "U-Boot 1.1")
	d.press("tab")
	d.has("console of dualcore, boot 2")
	d.press("tab", "tab")
	d.has("console of x86: no boot has begun")
}

func TestLogOfAllLanes(t *testing.T) {
	f := newFake(t)
	d := drive(t, f, 100, 24)
	d.press("l", "a")
	d.has("log of all lanes", "22:00:50 !labpi: lane quarantined", "wl500gpv2: lane began")
	f.events = []live.Event{{At: at(59), Lane: "x86", Text: "lane began"}}
	d.lookAgain()
	d.has("x86: lane began")
	for i := range 3 {
		f.events = []live.Event{{At: at(59), Lane: "x86", Text: "trials skipped: given up", Bad: true, Seq: i}}
		d.lookAgain()
	}
	if n := strings.Count(d.shown(), "given up"); n != 1 {
		t.Errorf("one reason is said %d times", n)
	}
	d.press("q", "a", "a")
	if s := d.shown(); strings.Contains(s, "labpi") {
		t.Errorf("the log of one lane has another's:\n%s", s)
	}
}

// A console that never ends does not grow for ever, and whoever reads further up
// is not moved.
func TestPagerKeepsItsSize(t *testing.T) {
	p := pager{follow: true}
	p.draw(40, 10)
	for i := range 3 * maxLines {
		p.add(fmt.Sprintf("line %d", i))
		if i == 2*maxLines {
			p.draw(40, 10)
			p.scroll(-1000)
		}
	}
	if n := len(p.lines); n > maxLines {
		t.Errorf("%d lines are kept", n)
	}
	if s := p.draw(40, 10); len(s) != 10 || s[0] == "" {
		t.Errorf("%q", s)
	}
	var c console
	for range 100 {
		c.take([]byte(strings.Repeat("x", 1000)), nil)
	}
	if len(c.part) > longestPart || len(c.lines) == 0 {
		t.Errorf("a line without an end: %d bytes, %d lines", len(c.part), len(c.lines))
	}
}
