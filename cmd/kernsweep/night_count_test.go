package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets/targetstest"
)

// leftLimit is how long a remote command may take to notice that its controller
// is gone.
const leftLimit = 5 * time.Second

// nightCounts are what is counted after a run, from outside of it.
type nightCounts struct {
	lost       int // planned trials without a final result, or whose evidence is not the target's
	duplicated int // results that count twice
	held       int // leases, locks and owners that stay
	onTargets  int // processes, files, kernels on the targets
	orphans    int // processes on the controller
	trials     int
	repeated   int // executions that no result is made of

	faults []string
}

func (c *nightCounts) add(o nightCounts) {
	c.lost += o.lost
	c.duplicated += o.duplicated
	c.held += o.held
	c.onTargets += o.onTargets
	c.orphans += o.orphans
	c.trials += o.trials
	c.repeated += o.repeated
}

func (c *nightCounts) fault(count *int, format string, args ...any) {
	*count++
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// check fails the test when anything was found.
func (c nightCounts) check(t *testing.T, story string) {
	t.Helper()
	if len(c.faults) > 0 {
		t.Errorf("%s:\n  %s", story, strings.Join(c.faults, "\n  "))
	}
}

// counts compares the run of a place with its plan and with what really ran on
// the targets, and looks for what it left.
func (n *night) counts(t *testing.T, p place) nightCounts {
	t.Helper()
	var c nightCounts
	run := p.run(t)
	if run == nil {
		t.Fatal("there is no run")
	}
	state, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	for _, note := range state.Journal.Notes {
		if !strings.Contains(note, "torn tail") {
			c.fault(&c.lost, "journal: %s", note)
		}
	}
	n.countResults(t, &c, run, state.Model)
	n.countHeld(&c, p, run)
	for _, f := range untilNone(t.Context(), leftLimit, n.lab.Left) {
		c.fault(&c.onTargets, "%s", f)
	}
	for _, f := range untilNone(t.Context(), leftLimit, func() []string { return processesOf(p.leases) }) {
		c.fault(&c.orphans, "on the controller: process %s", f)
	}
	return c
}

// countResults holds every planned trial against what the targets executed.
func (n *night) countResults(t *testing.T, c *nightCounts, run *results.Run, m *results.Model) {
	t.Helper()
	var whole plan.Plan
	if _, err := run.ReadPlan(&whole); err != nil {
		t.Fatal(err)
	}
	ran, err := n.lab.Ran()
	if err != nil {
		t.Fatal(err)
	}
	free := map[string]int{} // token -> index in ran
	for i, e := range ran {
		free[e.Token] = i
	}
	planned := 0
	for _, l := range whole.Lanes {
		for _, b := range l.Boots {
			for _, s := range b.Trials {
				planned++
				tr := m.Slot(s)
				if tr == nil {
					c.fault(&c.lost, "%s block %d: never tried", s.Cell, s.Block)
					continue
				}
				if n.panics == s.Target && s.Kernel == targetstest.SimOther {
					if tr.Outcome() != results.BootFailed {
						c.fault(&c.lost, "%s block %d: %s (%s), and its kernel panics", s.Cell, s.Block, tr.Outcome(), tr.Final().Reason)
					}
					continue
				}
				if tr.Outcome() != results.OK {
					c.fault(&c.lost, "%s block %d: %s (%s)", s.Cell, s.Block, tr.Outcome(), tr.Final().Reason)
					continue
				}
				if old := len(tr.Superseded()); old > 0 {
					c.fault(&c.duplicated, "%s block %d: %d valid attempts", s.Cell, s.Block, old+1)
				}
				token := tokenIn(filepath.Join(run.TrialDir(tr.Valid().Slot, tr.Valid().Number), "stdout"))
				i, ok := free[token]
				delete(free, token)
				boot := m.Boot(s.Target, tr.Valid().Slot.Boot)
				switch {
				case !ok:
					c.fault(&c.duplicated, "%s block %d: its output has the token %q, which is nobody's or another result's", s.Cell, s.Block, token)
				case !ran[i].Ended || ran[i].Machine != s.Target || ran[i].Scenario != s.Scenario:
					c.fault(&c.lost, "%s block %d: its output is of %+v", s.Cell, s.Block, ran[i])
				case boot == nil || boot.Result == nil || boot.Result.Outcome != results.OK || boot.Result.Record.BootID != ran[i].BootID || boot.Result.Kernel != s.Kernel:
					c.fault(&c.lost, "%s block %d: it ran in boot %s, which is not its boot %d", s.Cell, s.Block, ran[i].BootID, tr.Valid().Slot.Boot)
				}
			}
		}
	}
	if len(m.Trials) != planned {
		c.fault(&c.duplicated, "%d slots in the journal, %d planned", len(m.Trials), planned)
	}
	c.trials += planned
	c.repeated += len(free)
}

// tokenIn is what the workload printed last into a file, "" when it did not.
func tokenIn(file string) string {
	b, _ := os.ReadFile(file)
	_, token, _ := strings.Cut(string(b), "token: ")
	return strings.TrimSpace(token)
}

// countHeld looks for what keeps others from the targets or the run.
func (n *night) countHeld(c *nightCounts, p place, run *results.Run) {
	if h, ok := run.HeldBy(); ok {
		c.fault(&c.held, "the run is held by %s", h)
	}
	all, err := leases.List(p.leases)
	if err != nil {
		c.fault(&c.held, "leases: %v", err)
	}
	for _, l := range all {
		if l.State == leases.Held { // that of a process that is gone keeps nobody out
			c.fault(&c.held, "lease of %s, process %d", l.Key, l.PID)
		}
	}
}

// processesOf are the processes whose environment names a run's leases.
func processesOf(leases string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(b), "KERNSWEEP_LEASES="+leases) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline")) // it may have ended
		found = append(found, strings.Split(f, "/")[2]+" "+strings.ReplaceAll(string(line), "\x00", " "))
	}
	return found
}
