package workloads

import (
	"errors"
	"fmt"
	"io/fs"

	"kernsweep/workloads/vmstat"
	"kernsweep/workloads/wire"
)

// readSpool reads the file "spool" of an attempt. What was read comes with a
// *FailedError when the task failed or its agent died; another error means that
// there is no evidence.
func readSpool(files fs.FS, name string) (*wire.Spool, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the agent's spool is not there: %w", err)
	}
	defer f.Close()
	s, err := wire.Read(f)
	if errors.Is(err, wire.ErrTorn) {
		return s, &FailedError{Reason: fmt.Sprintf("%s: %v (the agent or its machine died: look at the console and dmesg)", name, err)}
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	switch status := s.End["status"]; status {
	case "ok", "stopped":
		return s, nil
	case "timeout":
		return s, &FailedError{Reason: "it ran longer than its deadline and was ended" + because(s.End["reason"])}
	case "failed":
		return s, &FailedError{Reason: s.End["reason"]}
	default:
		return s, fmt.Errorf("%s: its end record has the unknown status %q", name, status)
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// steadyCPUs is the hard check of a workload that is bound by the CPU: the set
// of CPUs stayed, and nothing was swapped.
func steadyCPUs(s *wire.Spool) error {
	if why := vmstat.CPUsChanged(s.Snapshots); why != "" {
		return &InvalidError{Reason: why}
	}
	if pages, ok := vmstat.SwapTraffic(s.Snapshots); ok && pages > 0 {
		return &InvalidError{Reason: vmstat.Swapped(pages)}
	}
	return nil
}

// have makes a value, lack one that is missing.
func have(m Metric, v float64) Value { return Value{Metric: m, Value: v} }

func lack(m Metric, why string) Value { return Value{Metric: m, Missing: why} }
