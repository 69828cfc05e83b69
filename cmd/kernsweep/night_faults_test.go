package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets/targetstest"
)

// Deadlines of an orderly end, and of one at once.
const (
	orderlyLimit = 30 * time.Second
	atOnceLimit  = 5 * time.Second
)

// awaitRecords waits until the journal has n records, while c works.
func (c *process) awaitRecords(t *testing.T, p place, n int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(nightLimit)
	for p.records() < n {
		select {
		case <-tick.C:
		case <-c.done:
			t.Fatalf("it ended before record %d:\n%s", n, c.err.String())
		case <-end:
			t.Fatalf("no %d records within %s:\n%s", n, nightLimit, c.err.String())
		}
	}
}

// signal sends a signal to a controller that is not reaped yet.
func (c *process) signal(t *testing.T, s syscall.Signal) time.Time {
	t.Helper()
	if err := syscall.Kill(c.cmd.Process.Pid, s); err != nil {
		t.Fatal(err)
	}
	return time.Now()
}

// resumed resumes the run of a place to its end and counts.
func (n *night) resumed(t *testing.T, p place) {
	t.Helper()
	c := n.start(t, p, "resume", "latest")
	if status := c.wait(t); status != 0 {
		t.Errorf("resume ends with status %d:\n%s", status, c.err.String())
	}
	n.counts(t, p).check(t, "after resume")
}

// nothingHeld checks what a controller that had the time must have given back.
func (n *night) nothingHeld(t *testing.T, p place) {
	t.Helper()
	var c nightCounts
	n.countHeld(&c, p, p.run(t))
	for _, f := range append(untilNone(t.Context(), leftLimit, n.lab.Left), processesOf(p.leases)...) {
		c.fault(&c.onTargets, "%s", f)
	}
	c.check(t, "before resume")
}

// TestNightFaults: each of them on the built program over a fake lab.
func TestNightFaults(t *testing.T) {
	program := build(t)
	faults := map[string]func(*testing.T, *night, place){
		"interrupt once":           func(t *testing.T, n *night, p place) { orderlyEnd(t, n, p, syscall.SIGINT) },
		"terminate":                func(t *testing.T, n *night, p place) { orderlyEnd(t, n, p, syscall.SIGTERM) },
		"hang up":                  func(t *testing.T, n *night, p place) { orderlyEnd(t, n, p, syscall.SIGHUP) },
		"interrupt twice":          interruptTwice,
		"full disk":                fullDisk,
		"read-only disk":           readOnlyDisk,
		"two resumes":              twoResumes,
		"watchers":                 watchers,
		"image overwritten":        imageOverwritten,
		"configuration deleted":    configurationDeleted,
		"link cut":                 linkCut,
		"kernel panics and a kill": panicsAndKill,
		"target gone":              targetGone,
	}
	if os.Getenv("KERNSWEEP_LONG") != "" {
		faults["frozen for longer than a lease"] = frozen // takes minutes
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault(t, newNight(t, program, 2, 2, 1), newPlace(t))
		})
	}
}

func orderlyEnd(t *testing.T, n *night, p place, s syscall.Signal) {
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 45)
	asked := c.signal(t, s)
	status := c.wait(t)
	if took := time.Since(asked); status != exitInterrupted || took > orderlyLimit {
		t.Errorf("status %d after %s:\n%s", status, took, c.err.String())
	}
	n.nothingHeld(t, p)
	st := n.start(t, p, "status", "latest")
	if st.wait(t); !strings.Contains(st.out.String(), "interrupted") || !strings.Contains(st.out.String(), "resume") {
		t.Errorf("status says:\n%s", st.out.String())
	}
	n.resumed(t, p)
}

func interruptTwice(t *testing.T, n *night, p place) {
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 45)
	c.signal(t, syscall.SIGINT)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	<-tick.C // two presses of one hand
	asked := time.Now()
	_ = syscall.Kill(c.cmd.Process.Pid, syscall.SIGINT) // it may have ended
	c.wait(t)
	if took := time.Since(asked); took > atOnceLimit {
		t.Errorf("it ends %s after the second signal:\n%s", took, c.err.String())
	}
	n.resumed(t, p)
}

// killedRun is a run that was killed in its middle.
func (n *night) killedRun(t *testing.T, p place) {
	t.Helper()
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 45)
	c.kill()
}

func twoResumes(t *testing.T, n *night, p place) {
	n.killedRun(t, p)
	both := []*process{n.start(t, p, "resume", "latest"), n.start(t, p, "resume", "latest")}
	won := 0
	for i, c := range both {
		if status := c.wait(t); status == 0 {
			won++
			continue
		}
		other := fmt.Sprintf("%d", both[1-i].cmd.Process.Pid)
		if said := c.err.String(); !strings.Contains(said, other) {
			t.Errorf("refused without the holder's number %s:\n%s", other, said)
		}
	}
	if won != 1 {
		t.Errorf("%d of two resumes won:\n%s\n%s", won, both[0].err.String(), both[1].err.String())
	}
	n.counts(t, p).check(t, "after two resumes")
}

// watchers: status and report from other processes see whole records only, and
// change nothing.
func watchers(t *testing.T, n *night, p place) {
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 1)
	looks := 0
	for over := false; !over; looks++ {
		select {
		case <-c.done:
			over = true
		default:
		}
		for _, args := range [][]string{{"status", "latest", "--json"}, {"report", "latest", "--format", "json"}, {"report", "latest"}} {
			w := n.start(t, p, args...)
			status := w.wait(t)
			said := w.out.String() + w.err.String()
			if status != 0 || strings.Contains(said, "torn") || strings.Contains(said, "ignored:") {
				t.Fatalf("%v: status %d:\n%s", args, status, said)
			}
			if strings.Contains(args[len(args)-1], "json") && !json.Valid(bytes.TrimSpace(w.out.Bytes())) {
				t.Fatalf("%v prints no JSON:\n%s", args, w.out.String())
			}
		}
	}
	if status := c.wait(t); status != 0 || looks < 3 {
		t.Errorf("status %d after %d looks:\n%s", status, looks, c.err.String())
	}
	n.counts(t, p).check(t, "after a watched run")
}

func imageOverwritten(t *testing.T, n *night, p place) {
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 20)
	if err := os.WriteFile(n.lab.Image(targetstest.SimOther), []byte("tomorrow's build\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.awaitRecords(t, p, 60)
	c.kill()
	n.resumed(t, p)
	booted, err := n.lab.Booted()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range booted {
		if k, text, _ := strings.Cut(b, " "); text != "image of "+k {
			t.Errorf("booted %q", b)
		}
	}
}

func configurationDeleted(t *testing.T, n *night, p place) {
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 20)
	aside := n.file + ".aside"
	if err := os.Rename(n.file, aside); err != nil {
		t.Fatal(err)
	}
	c.awaitRecords(t, p, 60)
	c.kill()
	r := n.start(t, p, "resume", "latest")
	if status := r.wait(t); status != 0 && (status != exitUsage || !strings.Contains(r.err.String(), n.file)) {
		t.Errorf("status %d:\n%s", status, r.err.String())
	}
	if err := os.Rename(aside, n.file); err != nil {
		t.Fatal(err)
	}
	n.resumed(t, p)
}

// linkCut: links that are cut while trials run cost no result.
func linkCut(t *testing.T, n *night, p place) {
	n.lab.Machines[0].CutIn(2)
	n.lab.Machines[1].CutIn(5)
	c := n.start(t, p, "run", "night")
	if status := c.wait(t); status != 0 {
		t.Errorf("status %d:\n%s", status, c.err.String())
	}
	n.counts(t, p).check(t, "after cut links")
}

// panicsAndKill: a kernel that never boots on one machine has the same verdicts
// when the controller is killed among them.
func panicsAndKill(t *testing.T, n *night, p place) {
	all := make([]int, 100)
	for i := range all {
		all[i] = i + 1
	}
	n.lab.Machines[0].Panics(targetstest.SimOther, all...)
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 35)
	c.kill()
	r := n.start(t, p, "resume", "latest")
	if status := r.wait(t); status != exitFailed {
		t.Errorf("status %d:\n%s", status, r.err.String())
	}
	n.panics = n.lab.Machines[0].Name
	n.counts(t, p).check(t, "after panics and a kill")
}

// targetGone: a target that goes for good costs the other nothing, and one
// command repeats what it owes once it is back.
func targetGone(t *testing.T, n *night, p place) {
	gone := n.lab.Machines[0]
	gone.GoneFrom(targetstest.SimOther)
	c := n.start(t, p, "run", "night")
	if status := c.wait(t); status != exitInfra {
		t.Errorf("status %d:\n%s", status, c.err.String())
	}
	state, err := p.run(t).State()
	if err != nil {
		t.Fatal(err)
	}
	unmeasured := 0
	for _, tr := range state.Model.Trials {
		switch o := tr.Outcome(); {
		case tr.Slot.Target != gone.Name && o != results.OK:
			t.Errorf("%s block %d: %s (%s)", tr.Slot.Cell, tr.Slot.Block, o, tr.Final().Reason)
		case o != results.OK && tr.Final().Reason != "":
			unmeasured++
		}
	}
	if unmeasured == 0 || len(state.Model.Trials) != 16 {
		t.Errorf("%d of %d slots have no value, with a cause", unmeasured, len(state.Model.Trials))
	}
	if err := gone.Back(); err != nil {
		t.Fatal(err)
	}
	r := n.start(t, p, "rerun", "latest", "--failed", "--only-failed-cells")
	if status := r.wait(t); status != 0 {
		t.Errorf("rerun ends with status %d:\n%s", status, r.err.String())
	}
	n.counts(t, p).check(t, "after a rerun")
}
