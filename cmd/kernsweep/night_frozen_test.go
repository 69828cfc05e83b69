package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// frozen stops a controller for longer than its leases last: another one takes
// its targets over, and the first, when it wakes among the other's trials,
// disturbs none of them.
func frozen(t *testing.T, n *night, p place) {
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 45)
	c.signal(t, syscall.SIGSTOP)
	frozenAt := p.records()
	other := place{runs: filepath.Join(filepath.Dir(p.runs), "other"), leases: p.leases}
	refused := n.start(t, other, "run", "night")
	if status := refused.wait(t); status == 0 || !strings.Contains(refused.err.String(), "held by") {
		t.Errorf("targets of a living lease: status %d:\n%s", status, refused.err.String())
	}
	second := n.start(t, other, "run", "night", "--wait")
	second.awaitRecords(t, other, 45)
	if p.records() != frozenAt {
		t.Error("the frozen controller wrote to its journal")
	}
	c.signal(t, syscall.SIGCONT)
	if status := second.wait(t); status != 0 {
		t.Errorf("the second controller ends with status %d:\n%s", status, second.err.String())
	}
	status := c.wait(t)
	t.Logf("the first ends with status %d:\n%s", status, c.err.String())
	n.resumed(t, p)
	n.counts(t, other).check(t, "of the second controller")
}
