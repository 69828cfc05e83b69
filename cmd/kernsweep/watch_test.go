package main

import (
	"encoding/json"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
)

// watch shows a run of another process as it goes on, and ends with it.
func TestWatch(t *testing.T) {
	n, p := newNight(t, build(t), 1, 1, 1), newPlace(t)
	n.longer(t)
	if c := n.start(t, p, "watch"); c.wait(t) != exitUsage {
		t.Errorf("no run to watch: %s", c.err.String())
	}
	c := n.start(t, p, "run", "night", "--detach")
	if status := c.wait(t); status != 0 {
		t.Fatalf("status %d:\n%s", status, c.err.String())
	}
	plain, raw := n.start(t, p, "watch"), n.start(t, p, "watch", "latest", "--json")
	await(t, "the workload does not begin", func() bool {
		return strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000")
	})
	if c := n.start(t, p, "stop", "latest"); c.wait(t) != 0 {
		t.Errorf("stop: %s", c.err.String())
	}
	if status := plain.wait(t); status != 0 || !strings.Contains(plain.out.String(), "sim1: lane interrupted") || !strings.Contains(plain.err.String(), "interrupted") {
		t.Errorf("watch: status %d:\n%s%s", status, plain.out.String(), plain.err.String())
	}
	if status := raw.wait(t); status != 0 {
		t.Errorf("watch --json: status %d:\n%s", status, raw.err.String())
	}
	last := 0
	for line := range strings.Lines(raw.out.String()) {
		var rec results.Record
		if err := json.Unmarshal([]byte(line), &rec); err != nil || rec.Seq <= last {
			t.Errorf("after record %d: %v: %s", last, err, line)
		}
		last = rec.Seq
	}
	if last == 0 {
		t.Error("watch --json shows no record")
	}
	n.nothingHeld(t, p)
}

// The watching of a run whose controller dies ends, and says what to do.
func TestWatchOfADeadRun(t *testing.T) {
	n, p := newNight(t, build(t), 1, 1, 1), newPlace(t)
	n.longer(t)
	c := n.start(t, p, "run", "night")
	await(t, "the run does not begin", func() bool { return p.records() > 3 })
	w := n.start(t, p, "watch")
	c.kill()
	if status := w.wait(t); status != exitInfra || !strings.Contains(w.err.String(), "resume ") {
		t.Errorf("status %d:\n%s%s", status, w.out.String(), w.err.String())
	}
	n.change(t, `["sleep", "1000"]`, `["payload", "long", "0.15"]`)
	if c := n.start(t, p, "resume", "latest"); c.wait(t) == exitUsage {
		t.Errorf("resume: %s", c.err.String())
	}
	n.nothingHeld(t, p)
}
