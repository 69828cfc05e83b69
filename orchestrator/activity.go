package orchestrator

import (
	"errors"
	"os"
	"path/filepath"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads/vmstat"
	"kernsweep/workloads/wire"
)

// snapshots are the raw counters of the trial on its target, nil without any.
func (t *trial) snapshots() ([]wire.Snapshot, error) {
	f, err := os.Open(filepath.Join(t.dir, "spool"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := wire.Read(f)
	if s == nil {
		return nil, err
	}
	return s.Snapshots, nil // a torn spool has what it has
}

// activity summarises the counters, nil when there is nothing to summarise.
func activity(snaps []wire.Snapshot) *results.Activity {
	rows, warnings := vmstat.Rows(snaps)
	s := vmstat.Summarise(rows)
	if s.Samples == 0 {
		return nil
	}
	return &results.Activity{Samples: s.Samples, Seconds: s.Seconds, Switches: s.Switches, Interrupts: s.Interrupts,
		User: s.User, System: s.System, Idle: s.Idle, Wait: s.Wait, Steal: s.Steal, Missing: s.Missing,
		Warnings: append(warnings, vmstat.Doubts(snaps)...)}
}
