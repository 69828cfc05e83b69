package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/results"
)

// lane steers and demands an exit status.
func (n *night) lane(t *testing.T, p place, status int, args ...string) string {
	t.Helper()
	c := n.start(t, p, append([]string{"lane"}, args...)...)
	if got := c.wait(t); got != status {
		t.Errorf("lane %v: status %d, want %d:\n%s%s", args, got, status, c.out.String(), c.err.String())
	}
	return c.out.String() + c.err.String()
}

// works waits until a machine runs the workload that does not end.
func (n *night) works(t *testing.T, machine int) {
	t.Helper()
	await(t, "the workload does not begin", func() bool {
		return strings.Contains(strings.Join(n.lab.Machines[machine].Processes(), " "), "1000")
	})
}

// rests waits until it does not.
func (n *night) rests(t *testing.T, machine int) {
	t.Helper()
	await(t, "the workload does not end", func() bool {
		return !strings.Contains(strings.Join(n.lab.Machines[machine].Processes(), " "), "1000")
	})
}

func (p place) model(t *testing.T) *results.Model {
	t.Helper()
	s, err := p.run(t).State()
	if err != nil {
		t.Fatal(err)
	}
	return s.Model
}

// Every action of lane, on a run over two machines.
func TestLane(t *testing.T) {
	n, p := newNight(t, build(t), 2, 1, 2), newPlace(t)
	n.longer(t)
	if said := n.lane(t, p, exitInfra, "sim1", "pause"); !strings.Contains(said, "nothing to steer") {
		t.Error(said)
	}
	c := n.start(t, p, "run", "night")
	n.works(t, 0)
	n.works(t, 1)
	for want, args := range map[string][]string{
		`no lane "sim3": there are sim1, sim2`: {"sim3", "pause"},
		"what can be asked is pause":           {"sim1", "paus"},
		"pause takes no kernel":                {"sim1", "pause", "--kernel", "good"},
		`no kernel "x": it has`:                {"sim1", "skip-kernel", "--kernel", "x"},
		"control characters":                   {"sim1", "pause", "--why", "a\x1b[2J"},
		"no run":                               {"sim1", "pause", "--run", "nope"},
	} {
		if said := n.lane(t, p, exitUsage, args...); !strings.Contains(said, want) {
			t.Errorf("lane %v: %s", args, said)
		}
	}
	// sim1: a trial, then the kernel. sim2 is given up.
	if said := n.lane(t, p, 0, "sim1", "skip-trial", "--why", "it hangs"); !strings.Contains(said, "is being ended") {
		t.Error(said)
	}
	if said := n.lane(t, p, 0, "sim2", "quarantine", "--json"); !json.Valid([]byte(said)) || !strings.Contains(said, "given up") {
		t.Error(said)
	}
	n.rests(t, 1)
	n.works(t, 0)
	n.lane(t, p, 0, "sim1", "skip-kernel")
	n.rests(t, 0)
	n.works(t, 0) // in the other kernel
	n.lane(t, p, 0, "sim1", "pause")
	if said := n.lane(t, p, 0, "sim1", "pause"); !strings.Contains(said, "paused already") {
		t.Error(said)
	}
	m := p.model(t)
	if s := n.start(t, p, "status", "latest"); s.wait(t) != 0 || !strings.Contains(s.out.String(), "paused since ") {
		t.Errorf("status:\n%s", s.out.String())
	}
	if l := m.Lane("sim1"); l.Paused.IsZero() || !strings.HasPrefix(l.PausedBy, "by ") {
		t.Errorf("%+v", l)
	}
	n.lane(t, p, 0, "sim1", "skip-trial")
	n.rests(t, 0)
	n.lane(t, p, 0, "sim1", "go-on")
	n.works(t, 0)
	n.lane(t, p, 0, "sim1", "skip-trial")
	if status := c.wait(t); status != 0 {
		t.Errorf("status %d:\n%s", status, c.err.String())
	}
	if m = p.model(t); len(m.Trials) != 16 || m.ByHand("") != m.Count()[results.Skipped] || m.Count()[results.OK]+m.ByHand("") != 16 ||
		!m.Lane("sim2").ByHand || m.ByHand("sim1") < 3 || m.ByHand("sim1") > 6 {
		t.Errorf("outcomes %v, %d by hand, %d of sim1; %d trials", m.Count(), m.ByHand(""), m.ByHand("sim1"), len(m.Trials))
	}
	s := n.start(t, p, "report", "latest")
	if s.wait(t); strings.Count(s.out.String(), "cause ") > 4 || !strings.Contains(s.out.String(), "no failure; trials were skipped by hand") ||
		!strings.Contains(s.out.String(), "sim2: given up by hand: skipped") || strings.Contains(s.out.String(), "signal 15") {
		t.Errorf("report:\n%s", s.out.String())
	}
	if s = n.start(t, p, "status", "latest"); s.wait(t) != 0 || !strings.Contains(s.out.String(), "skipped by hand") || strings.Contains(s.out.String(), "next: rerun") {
		t.Errorf("status:\n%s", s.out.String())
	}
	n.nothingHeld(t, p)
	if left, err := os.ReadDir(filepath.Join(p.runs, ".control")); err != nil || len(left) != 0 {
		t.Errorf("sockets left: %v, %v", left, err)
	}
	n.change(t, `["sleep", "1000"]`, `["payload", "long", "0.15"]`)
	if c := n.start(t, p, "rerun", "latest", "--failed"); c.wait(t) != 0 || p.model(t).Count()[results.OK] != 16 {
		t.Errorf("rerun: %v\n%s", p.model(t).Count(), c.err.String())
	}
}

// A paused lane whose controller is killed goes on when the run is resumed; a kernel
// that was left out stays so.
func TestPausedThenKilled(t *testing.T) {
	n, p := newNight(t, build(t), 1, 2, 1), newPlace(t)
	n.longer(t)
	c := n.start(t, p, "run", "night")
	n.works(t, 0)
	n.lane(t, p, 0, "sim1", "pause")
	n.lane(t, p, 0, "sim1", "skip-kernel", "--why", "not this one")
	n.rests(t, 0)
	c.kill()
	if said := n.lane(t, p, exitInfra, "sim1", "go-on"); !strings.Contains(said, "nothing to steer") {
		t.Error(said)
	}
	n.change(t, `["sleep", "1000"]`, `["payload", "long", "0.15"]`)
	if c = n.start(t, p, "resume", "latest"); c.wait(t) != 0 {
		t.Errorf("resume:\n%s", c.err.String())
	}
	m := p.model(t)
	if k := m.Count(); k[results.OK]+k[results.Skipped] != 8 || k[results.OK] > 5 || m.ByHand("sim1") != k[results.Skipped] || !m.Lane("sim1").Paused.IsZero() {
		t.Errorf("outcomes %v, %d by hand, %+v", k, m.ByHand("sim1"), m.Lane("sim1"))
	}
	n.nothingHeld(t, p)
}

// A run is stopped over its socket, in good order and at once.
func TestAskedToStop(t *testing.T) {
	program := build(t)
	for _, action := range []control.Action{control.Stop, control.StopNow} {
		t.Run(string(action), func(t *testing.T) {
			n, p := newNight(t, program, 1, 1, 1), newPlace(t)
			n.longer(t)
			c := n.start(t, p, "run", "night")
			n.works(t, 0)
			if said, err := control.Ask(t.Context(), p.run(t), control.Request{Action: action, By: "ada, a test", Why: "enough"}); err != nil || said == "" {
				t.Errorf("%q, %v", said, err)
			}
			if status := c.wait(t); status != exitInterrupted || !strings.Contains(c.err.String(), "it was asked to stop by ada, a test: enough") {
				t.Errorf("status %d:\n%s", status, c.err.String())
			}
			m := p.model(t)
			if action == control.Stop && !strings.Contains(m.Sessions[0].Note, "asked to stop by ada") || m.Sessions[0].Ended.IsZero() != (action == control.StopNow) {
				t.Errorf("%+v", m.Sessions[0])
			}
			n.change(t, `["sleep", "1000"]`, `["payload", "long", "0.15"]`)
			c = n.start(t, p, "resume", "latest")
			if action == control.StopNow { // the trial goes on, and is adopted: a hand reaches it too
				await(t, "the trial is not taken over", func() bool {
					return strings.Contains(fmt.Sprint(p.model(t).Notes), "the target is still in it")
				})
				if said := n.lane(t, p, 0, "sim1", "skip-trial"); !strings.Contains(said, "is being ended") {
					t.Error(said)
				}
				n.rests(t, 0)
			}
			if k := c.wait(t); k != 0 || p.model(t).ByHand("") > 0 != (action == control.StopNow) {
				t.Errorf("resume: status %d, outcomes %v\n%s", k, p.model(t).Count(), c.err.String())
			}
			n.nothingHeld(t, p)
		})
	}
}
