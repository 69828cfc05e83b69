package workloads

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"kernsweep/workloads/wire"
)

// Parse reads the six figures of the build from the spool. A failed build comes
// with the last lines of its log.
func (k *Kernbench) Parse(files fs.FS) (Parsed, error) {
	var p Parsed
	s, err := readSpool(files, "spool")
	if s == nil {
		return p, err
	}
	if why, readErr := fs.ReadFile(files, buildLogErr); readErr == nil {
		p.Notes = append(p.Notes, "the build's log was not collected: "+strings.TrimSpace(string(why)))
	}
	var build *wire.Task
	if i := slices.IndexFunc(s.Tasks, func(t wire.Task) bool { return t.Name == "exec" }); i >= 0 {
		build = &s.Tasks[i]
	}
	for _, m := range k.Metrics() {
		p.Values = append(p.Values, kernbenchValue(m, build, s))
	}
	var failed *FailedError
	if errors.As(err, &failed) {
		return p, k.failure(failed, build, files)
	}
	if err == nil && build == nil {
		return p, &FailedError{Reason: "the spool has no record of the build"}
	}
	if err == nil {
		err = steadyCPUs(s)
	}
	p.Warnings = k.doubts(s, build)
	return p, err
}

func (k *Kernbench) failure(f *FailedError, build *wire.Task, files fs.FS) error {
	reason := f.Reason
	switch {
	case build == nil || build.TimedOut:
	case build.Signal != 0:
		reason = fmt.Sprintf("the build was killed by signal %d", build.Signal)
	case build.Exit != 0:
		reason = fmt.Sprintf("the build failed: make exited with status %d", build.Exit)
	}
	log, _ := fs.ReadFile(files, buildLog) // a note says when it was not collected
	return &FailedError{Reason: reason + lastLines(string(log), 10)}
}

func kernbenchValue(m Metric, t *wire.Task, s *wire.Spool) Value {
	if t == nil || t.Exit != 0 || t.Signal != 0 {
		return lack(m, "the build did not end well")
	}
	figure := func(name string) Value {
		v, err := byRusage(Value{Metric: m}, name, s)
		if err != nil {
			return lack(m, err.Error())
		}
		return v
	}
	switch m.Name {
	case "ctx":
		return figure("nivcsw")
	case "sleeps":
		return figure("nvcsw")
	case "percent":
		v, system, elapsed := figure("user"), figure("system"), figure("elapsed")
		switch {
		case v.Missing != "" || system.Missing != "":
			return lack(m, v.Missing+system.Missing)
		case elapsed.Value <= 0:
			return lack(m, "the build took no time")
		}
		v.Value, v.Resolution = 100*(v.Value+system.Value)/elapsed.Value, 0
		return v
	}
	return figure(m.Name)
}

func (k *Kernbench) doubts(s *wire.Spool, build *wire.Task) (w []string) {
	if build != nil && build.Exit == 0 && seconds(*build) < 50*tick {
		w = append(w, fmt.Sprintf("the build took only %.2f s, less than 50 clock ticks: its times are coarse, or nothing was built", seconds(*build)))
	}
	if kb := memTotal(s); k.level() == levelMaximal && k.Jobs == 0 && kb > 0 && kb < 4_000_000 {
		w = append(w, fmt.Sprintf("unlimited jobs with only %d MB of memory: the build may have swapped or been short of memory", kb/1024))
	}
	return w
}

// memTotal is the memory of the target in kB, 0 when it is unknown.
func memTotal(s *wire.Spool) int64 {
	for _, snap := range s.Snapshots {
		for _, line := range strings.Split(string(snap.Mem), "\n") {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
				n, _ := strconv.ParseInt(f[1], 10, 64) // 0 when it is no number
				return n
			}
		}
	}
	return 0
}
