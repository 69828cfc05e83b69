package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// wire is a TCP relay that can be cut without a word, like a switch that lost
// its power: packets are neither passed on nor refused.
type wire struct {
	l    net.Listener
	mu   sync.Mutex
	dead chan struct{}
	all  []net.Conn
	work sync.WaitGroup
}

func newWire(t *testing.T, to string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, dead: make(chan struct{})}
	w.work.Go(func() { w.serve(to) })
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		for _, c := range w.all {
			c.Close()
		}
		w.mu.Unlock()
		w.work.Wait()
	})
	return w
}

func (w *wire) serve(to string) {
	for {
		a, err := w.l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", to)
		if err != nil {
			a.Close()
			continue
		}
		w.mu.Lock()
		w.all = append(w.all, a, b)
		w.mu.Unlock()
		w.work.Go(func() { w.pass(a, b) })
		w.work.Go(func() { w.pass(b, a) })
	}
}

func (w *wire) pass(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-w.dead:
			_, _ = io.Copy(io.Discard, from) // until the test ends
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

func (w *wire) cut() { close(w.dead) }

// lead makes the night's first machine be reached through a wire.
func (n *night) lead(t *testing.T) *wire {
	t.Helper()
	m := n.lab.Machines[0]
	w := newWire(t, fmt.Sprintf("127.0.0.1:%d", m.SSH.Port))
	n.change(t, fmt.Sprintf("= %d\n", m.SSH.Port), fmt.Sprintf("= %d\n", w.l.Addr().(*net.TCPAddr).Port))
	return w
}

// change edits the configuration.
func (n *night) change(t *testing.T, old, now string) {
	t.Helper()
	b, err := os.ReadFile(n.file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("the configuration has no %q:\n%s", old, b)
	}
	if err := os.WriteFile(n.file, []byte(strings.ReplaceAll(string(b), old, now)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// homeless takes the known-good kernel away: then nothing may last.
func (n *night) homeless(t *testing.T) { n.change(t, "  known_good = kernel.good\n", "") }

// until waits for something while the controller works.
func (c *process) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-c.done:
			if !ok() {
				t.Fatalf("it ended, and %s:\n%s", what, c.err.String())
			}
		case <-end:
			_ = c.cmd.Process.Kill()
			t.Fatalf("%s after a minute:\n%s", what, c.err.String())
		}
	}
}

// TestLeaving: whatever the targets do, an interrupted run is over within 30 s.
func TestLeaving(t *testing.T) {
	program := build(t)
	ignore := "trap '' TERM HUP INT; touch %s; sleep 1000 & sleep 1000; sleep 1000"
	const boot = "  boot \"command\" {\n"
	command := regexp.MustCompile(`    command = \["[^"]*"\]\n    cmdline`)
	for name, c := range map[string]struct {
		prepare func(t *testing.T, n *night, mark string) func() // what happens before the signal
		args    []string
	}{
		"a workload that ignores signals": {prepare: func(t *testing.T, n *night, mark string) func() {
			n.change(t, `["payload", "long", "0.15"]`, fmt.Sprintf("[\"sh\", \"-c\", %q]", fmt.Sprintf(ignore, mark)))
			n.change(t, `duration = "1s"`, `duration = "60s"`)
			return func() {}
		}},
		"a dead link": {prepare: func(t *testing.T, n *night, mark string) func() {
			n.change(t, `["payload", "long", "0.15"]`, fmt.Sprintf("[\"sh\", \"-c\", %q]", fmt.Sprintf(ignore, mark)))
			n.change(t, `duration = "1s"`, `duration = "60s"`)
			n.homeless(t)
			return n.lead(t).cut
		}},
		"a boot that hangs": {prepare: func(t *testing.T, n *night, mark string) func() {
			n.homeless(t)
			b, _ := os.ReadFile(n.file) // change fails where it cannot be read
			n.change(t, command.FindString(string(b)), fmt.Sprintf("    command = [\"sh\", \"-c\", %q]\n    cmdline", fmt.Sprintf(ignore, mark)))
			return func() {}
		}},
		"a power driver that hangs": {prepare: func(t *testing.T, n *night, mark string) func() {
			n.homeless(t)
			hang := fmt.Sprintf("[\"sh\", \"-c\", %q]", fmt.Sprintf(ignore, mark))
			n.change(t, boot, fmt.Sprintf("  power \"command\" {\n    on = %s\n    off = %s\n    deadline = \"5m\"\n  }\n", hang, hang)+boot)
			b, _ := os.ReadFile(n.file)
			n.change(t, command.FindString(string(b)), "    command = [\"false\"]\n    cmdline")
			n.lab.Machines[0].Gone()
			return func() {}
		}},
		"a target that is silent in the preflight": {prepare: func(t *testing.T, n *night, mark string) func() {
			n.homeless(t)
			n.lead(t).cut()
			if err := os.WriteFile(mark, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			return func() {}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, p := newNight(t, program, 1, 2, 1), newPlace(t)
			mark := filepath.Join(t.TempDir(), "mark")
			before := c.prepare(t, n, mark)
			run := n.start(t, p, "run", "night")
			run.until(t, "nothing hangs yet", func() bool {
				_, err := os.Stat(mark)
				return err == nil || strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000")
			})
			run.until(t, "there is no run", func() bool { return p.records() > 0 || strings.Contains(run.err.String(), "boots") })
			before()
			asked := run.signal(t, syscall.SIGINT)
			status := run.wait(t)
			took := time.Since(asked)
			t.Logf("%s: over %s after Ctrl-C", name, took.Round(10*time.Millisecond))
			if status != exitInterrupted || took > orderlyLimit {
				t.Errorf("status %d after %s:\n%s", status, took, run.err.String())
			}
			if n := strings.Count(run.err.String(), "Ctrl-C again quits"); n != 1 {
				t.Errorf("the first signal is announced %d times:\n%s", n, run.err.String())
			}
			if r := p.run(t); r != nil {
				state, err := r.State()
				if err != nil {
					t.Fatal(err)
				}
				if s := state.Model.Sessions; len(s) == 1 && !s[0].Interrupted {
					t.Errorf("the journal does not say that it was interrupted: %+v", s)
				}
			}
			if left := untilNone(t.Context(), leftLimit, func() []string { return processesOf(p.leases) }); len(left) > 0 {
				t.Errorf("left on the controller: %v", left)
			}
		})
	}
}

// Only bringing a target home may last, and says so; the second signal ends it.
func TestLeavingGoesHomeUntilToldOtherwise(t *testing.T) {
	n, p := newNight(t, build(t), 1, 2, 1), newPlace(t)
	n.change(t, `["payload", "long", "0.15"]`, `["sleep", "1000"]`)
	n.change(t, `duration = "1s"`, `duration = "60s"`)
	w := n.lead(t)
	run := n.start(t, p, "run", "night")
	run.until(t, "the workload does not begin", func() bool {
		return strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000")
	})
	w.cut()
	run.signal(t, syscall.SIGTERM)
	run.until(t, "nothing is said of the way home", func() bool {
		r := p.run(t)
		s, err := r.State()
		if err != nil {
			t.Fatal(err)
		}
		for _, note := range s.Model.Notes {
			if strings.Contains(note.Note, "bringing sim1 back to its known-good kernel good, at most") {
				return true
			}
		}
		return false
	})
	asked := run.signal(t, syscall.SIGINT)
	status := run.wait(t)
	if took := time.Since(asked); status != exitInterrupted || took > time.Second {
		t.Errorf("status %d, %s after the second signal:\n%s", status, took, run.err.String())
	}
	if said := run.err.String(); !strings.Contains(said, "asked to end (SIGTERM)") || !strings.Contains(said, " resume "+p.run(t).Name()) {
		t.Errorf("it says:\n%s", said)
	}
}
