package validity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

// WitnessFile in an attempt's folder is what only the controller knew of it.
const WitnessFile = "witness.json"

// NewLinesFile in an attempt's folder has what the kernel said meanwhile.
const NewLinesFile = "dmesg-new.txt"

// Witness is what the controller saw of a trial, and no file of the target tells.
type Witness struct {
	Workload string `json:"workload"` // its type: "crunch"
	// Elapsed are the seconds between a look before the trial and one after it, by
	// the target's clock, and the least and the most that passed meanwhile for the
	// controller; nil: not known, as after a resume.
	Elapsed *Elapsed `json:"elapsed,omitempty"`
	// Emulated: the target is a process of a machine with work of its own, so that
	// its seconds, and how busy its peer is, prove nothing.
	Emulated bool `json:"emulated,omitempty"`
	// Log is nil when the kernel's log was not read after the trial. Its new lines
	// are in NewLinesFile.
	Log *LogWitness `json:"kernel_log,omitempty"`
	// Knobs that were not what the trial had set when it was over, a sentence each.
	Knobs []string `json:"knobs,omitempty"`
}

// Elapsed is a length by the clocks of both sides, in seconds.
type Elapsed struct {
	Target float64 `json:"target_s"`
	Least  float64 `json:"least_s"`
	Most   float64 `json:"most_s"`
}

// LogWitness is what two looks at a kernel's log told, but for its lines.
type LogWitness struct {
	TaintBefore string   `json:"taint_before,omitempty"`
	TaintAfter  string   `json:"taint_after,omitempty"`
	Missing     string   `json:"missing,omitempty"` // why its lines are not known
	Notes       []string `json:"notes,omitempty"`
}

// Evidence is what the rules about a trial judge by. What is not on file is nil,
// and the rules that need it say nothing.
type Evidence struct {
	Witness
	Boot   targets.BootRecord
	Spool  *wire.Spool // of the target
	Peer   *wire.Spool // of the other end
	Lines  []string    // new in the kernel's log
	Parsed *workloads.Parsed
	// Err is what the workload's reader said, Moved what the look at the boot after
	// the trial found. nil: nothing, or not known; they are on no file.
	Err, Moved error
}

// Read gathers the evidence from an attempt's folder. Files that are not there are
// missing evidence; one that cannot be read is an error beside what could.
func Read(files fs.FS, boot targets.BootRecord) (*Evidence, error) {
	e := &Evidence{Boot: boot}
	var errs []error
	for _, f := range []struct {
		name string
		take func([]byte) error
	}{
		{"spool", func(b []byte) error { return takeSpool(&e.Spool, b) }},
		{"peer-spool", func(b []byte) error { return takeSpool(&e.Peer, b) }},
		{WitnessFile, func(b []byte) error { return json.Unmarshal(b, &e.Witness) }},
		{NewLinesFile, func(b []byte) error { e.Lines = lines(b); return nil }},
		{"trial.json", func(b []byte) error {
			var rec results.Record
			err := json.Unmarshal(b, &rec)
			e.Parsed = rec.Parsed
			return err
		}},
	} {
		b, err := fs.ReadFile(files, f.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = f.take(b)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
		}
	}
	return e, errors.Join(errs...)
}

// takeSpool reads a spool; one that is torn has what it has.
func takeSpool(to **wire.Spool, b []byte) error {
	s, err := wire.Read(bytes.NewReader(b))
	if errors.Is(err, wire.ErrTorn) {
		err = nil
	}
	*to = s
	return err
}

func lines(b []byte) []string {
	var out []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// snapshots of the target, nil without a spool.
func (e *Evidence) snapshots() []wire.Snapshot {
	if e.Spool == nil {
		return nil
	}
	return e.Spool.Snapshots
}

// states are what two looks told, before the task and after it; why says why there
// are not two.
func (e *Evidence) states() (before, after map[string]string, why string) {
	if e.Spool == nil {
		return nil, nil, noSpool
	}
	n := len(e.Spool.States)
	if n < 2 {
		return nil, nil, "the agent left no two states: it is of an earlier version, or died"
	}
	return e.Spool.States[0].Files, e.Spool.States[n-1].Files, ""
}

const noSpool = "no spool is on file"

// number reads a decimal number of the agent's.
func number(s string) (float64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return float64(n), err == nil && n >= 0
}
