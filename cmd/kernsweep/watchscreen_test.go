package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
)

// paneWait bounds what a terminal is to show.
const paneWait = 30 * time.Second

// pane is a shell in a real terminal: a tmux server of its own, with one window.
type pane struct {
	t          *testing.T
	tmux, sock string
}

// newPane starts a shell of the night's place in a terminal of w by h.
func (n *night) newPane(t *testing.T, p place, w, h int) *pane {
	t.Helper()
	dir, err := os.MkdirTemp("", "tmux") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	c := &pane{t: t, tmux: targetstest.Tool(t, "tmux"), sock: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_ = exec.Command(c.tmux, "-S", c.sock, "kill-server").Run() // it may be gone
		_ = os.RemoveAll(dir)
	})
	bash := targetstest.Tool(t, "bash")
	c.do("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h), "-e", "PS1=% ",
		"-e", "HISTFILE=", bash, "--norc", "--noprofile")
	c.await("%")
	// Not in its environment: the shell is none of the run's processes.
	c.line("W='env KERNSWEEP_LEASES=" + p.leases + " " + n.program + " -f " + n.file + " --runs " + p.runs + " watch'")
	return c
}

// do gives tmux a command and returns what it says.
func (c *pane) do(args ...string) string {
	c.t.Helper()
	out, err := exec.Command(c.tmux, append([]string{"-S", c.sock}, args...)...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (c *pane) keys(keys ...string) { c.do(append([]string{"send-keys"}, keys...)...) }

// line types a line to the shell.
func (c *pane) line(text string) {
	c.do("send-keys", "-l", text)
	c.keys("Enter")
}

func (c *pane) shows() string { return c.do("capture-pane", "-p") }

// await waits until all texts are on the screen.
func (c *pane) await(texts ...string) string {
	c.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(paneWait); ; {
		s := c.shows()
		missing := ""
		for _, want := range texts {
			if !strings.Contains(s, want) {
				missing = want
			}
		}
		if missing == "" {
			return s
		}
		select {
		case <-tick.C:
		case <-end:
			c.t.Fatalf("%q is not shown:\n%s", missing, s)
		}
	}
}

// clean checks that the terminal is the shell's again, as it was at first.
func (c *pane) clean(settings string) {
	c.t.Helper()
	if s := strings.TrimSpace(c.do("display", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag}")); s != "0 1 0 0" {
		c.t.Errorf("alternate screen, cursor, mouse, keypad: %s", s)
	}
	if s := c.settings(); s != settings {
		c.t.Errorf("the terminal's settings are\n%s\nand were\n%s", s, settings)
	}
}

// settings are the terminal's, but for its size.
func (c *pane) settings() string {
	c.t.Helper()
	out, err := exec.Command("stty", "-a", "-F", strings.TrimSpace(c.do("display", "-p", "#{pane_tty}"))).CombinedOutput()
	if err != nil {
		c.t.Fatalf("stty: %v: %s", err, out)
	}
	return regexp.MustCompile(`rows \d+; columns \d+`).ReplaceAllString(string(out), "")
}

// The live view in a real terminal: keys, sizes, and a clean terminal after every
// end, while a run of another process goes on.
func TestWatchOnATerminal(t *testing.T) {
	n, p := newNight(t, build(t), 2, 1, 1), newPlace(t)
	n.longer(t)
	if c := n.start(t, p, "run", "night", "--detach"); c.wait(t) != 0 {
		t.Fatal(c.err.String())
	}
	await(t, "the workload does not begin", func() bool {
		return strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000")
	})
	c := n.newPane(t, p, 80, 24)
	settings := c.settings()
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"keys", func() { watchKeys(c) }},
		{"sizes", func() { watchSizes(c) }},
		{"Ctrl-Z", func() { watchSuspended(c) }},
		{"signals", func() { watchSignals(c, p, settings) }},
	} {
		c.line("clear; $W")
		c.await("> sim1", "exec.work", "Enter console")
		part.do()
		if t.Failed() {
			t.Fatalf("%s:\n%s", part.name, c.shows())
		}
		if part.name != "signals" {
			c.keys("q")
			c.await("goes on", "sim2")
			c.line("echo status $?")
			c.await("status 0")
		}
		c.clean(settings)
	}
	watchToItsEnd(c, n, p, settings)
}

func watchKeys(c *pane) {
	c.keys("j")
	c.await("> sim2")
	c.keys("l")
	c.await("log of sim2", "lane began")
	c.keys("a")
	c.await("log of all lanes", "sim1: lane began")
	c.keys("q", "Enter")
	c.await("console of sim2")
	c.keys("Tab")
	c.await("console of sim1")
	c.keys("Escape")
	c.await("> sim1")
	c.keys("?")
	c.await("─ keys ─")
	c.keys("q", "Q")
	c.await("Quarantine target sim1?", "y: yes")
	c.keys("n")
	c.await("nothing was changed")
}

func watchSizes(c *pane) {
	wide := func(w int) bool {
		for line := range strings.Lines(c.shows()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > w {
				return false
			}
		}
		return true
	}
	c.do("resize-window", "-x", "200", "-y", "60")
	c.await("boots", "last", "its newest events")
	c.do("resize-window", "-x", "20", "-y", "5")
	s := c.await("> sim1", "q leave")
	if !wide(20) || strings.Count(s, "\n") > 5 {
		c.t.Errorf("at 20x5:\n%s", s)
	}
	c.do("resize-window", "-x", "80", "-y", "24")
	c.await("blk", "Enter console", "── sim1 ")
	if !wide(80) {
		c.t.Errorf("at 80x24:\n%s", c.shows())
	}
}

func watchSuspended(c *pane) {
	c.keys("C-z")
	c.await("Stopped")
	if s := strings.TrimSpace(c.do("display", "-p", "#{alternate_on} #{cursor_flag}")); s != "0 1" {
		c.t.Errorf("while it is stopped: alternate screen, cursor: %s", s)
	}
	c.line("fg")
	c.await("> sim1", "Enter console")
	c.keys("l")
	c.await("log of sim1")
	c.keys("q")
	c.await("> sim1")
}

// watchSignals ends the view by signals: the shell has its terminal again.
func watchSignals(c *pane, p place, settings string) {
	c.t.Helper()
	for i, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		if i > 0 {
			c.line("clear; $W")
			c.await("> sim1")
		}
		if err := syscall.Kill(watcherOf(c.t, p), sig); err != nil {
			c.t.Fatal(err)
		}
		c.await("kernsweep: interrupted", "sim2")
		c.line("echo status $?")
		c.await(fmt.Sprintf("status %d", exitInterrupted))
		c.clean(settings)
	}
}

// watcherOf is the process that shows the view.
func watcherOf(t *testing.T, p place) int {
	t.Helper()
	for _, line := range processesOf(p.leases) {
		if number, args, _ := strings.Cut(line, " "); strings.HasSuffix(strings.TrimSpace(args), " watch") && !strings.Contains(args, "bash") {
			pid, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("nobody watches")
	return 0
}

// watchToItsEnd steers the run, and stops it; the view stays, and says so.
func watchToItsEnd(c *pane, n *night, p place, settings string) {
	t := c.t
	t.Helper()
	c.line("clear; echo dumb-$((6*7)); TERM=dumb $W")
	c.await("dumb-42", "sim2", "running")
	if s := strings.TrimSpace(c.do("display", "-p", "#{alternate_on}")); s != "0" {
		t.Error("a dumb terminal gets a view")
	}
	c.keys("C-c")
	c.await("kernsweep: interrupted")
	c.line("clear; $W; echo status $?")
	c.await("> sim1", "exec.work")
	c.keys("p", "y")
	c.await("lane sim1 pauses", "paused: ")
	c.keys("s")
	c.await("Skip a trial of lane sim1", "y: yes")
	c.keys("y")
	await(t, "no trial is skipped", func() bool {
		files, err := filepath.Glob(filepath.Join(p.runs, "*", "journal.jsonl"))
		if err != nil || len(files) != 1 {
			return false
		}
		b, err := os.ReadFile(files[0])
		return err == nil && strings.Contains(string(b), `"outcome":"skipped"`)
	})
	c.await("1H")
	c.keys("x")
	c.await("Stop the run, all 2 lanes?")
	c.keys("y")
	c.await("INTERRUPTED", "q leaves")
	c.keys("x")
	c.await("! the run is not being executed")
	c.keys("q")
	s := c.await("interrupted", "status 0")
	if strings.Contains(s, "goes on") {
		t.Errorf("it is said to go on:\n%s", s)
	}
	c.clean(settings)
	n.nothingHeld(t, p)
}
