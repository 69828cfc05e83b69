package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Exec runs any command and takes its metrics from the output or from what the
// kernel counted. It fails when the command fails, runs too long, or prints
// nothing that a metric's source matches.
//
// A source is one of
//
//	regexp:PATTERN  the first group of the first match; ^ and $ mean lines
//	json:PATH       a number in JSON output; names joined by dots. A name may
//	                hold dots itself: the longest name that exists is tried
//	                first. Elements of an array are numbered from 0.
//	rusage:NAME     elapsed, user, system (s), nvcsw, nivcsw, maxrss (KiB), of
//	                the command and its children that it waited for
//	time:NAME       elapsed, user, system as a time command printed them
type Exec struct {
	Command  []string          `hcl:"command,optional" doc:"program and arguments, handed over as they are"`
	Script   string            `hcl:"script,optional" doc:"text for sh -c, instead of command"`
	Env      map[string]string `hcl:"env,optional" doc:"added to the environment; LC_ALL=C is set unless given"`
	Stream   string            `hcl:"stream,optional" doc:"where regexp, json and time look: \"stdout\" (default) or \"stderr\""`
	Sources  map[string]string `hcl:"metrics" doc:"name -> source: \"regexp:^Time: (\\\\S+)\", \"json:int.wakeup_latency_pct99.0\", \"rusage:user\", \"time:elapsed\""`
	Units    map[string]string `hcl:"units,optional" doc:"name -> unit, as in \"us\", \"1/s\" (rusage and time have theirs)"`
	Better   map[string]string `hcl:"better,optional" doc:"name -> \"lower\", \"higher\" or \"info\" (default: lower for times, else info)"`
	Primary  string            `hcl:"primary,optional" doc:"the metric that a verdict is about (default: the only one)"`
	Duration time.Duration     `hcl:"duration,optional" doc:"how long the command is expected to run (default 30s), for estimates and the deadline"`
}

// Metric sources.
const (
	sourceRegexp = "regexp"
	sourceJSON   = "json"
	sourceRusage = "rusage"
	sourceTime   = "time"
)

// execUnit is the unit and direction of a source that has its own.
func execUnit(kind, arg string) (unit string, better Direction) {
	switch {
	case kind == sourceRusage && oneOf(arg, "nvcsw nivcsw"):
		return "count", Informative
	case kind == sourceRusage && arg == "maxrss":
		return "KiB", Informative
	case kind == sourceRusage, kind == sourceTime:
		return "s", LowerIsBetter
	}
	return "", Informative
}

// Check implements Workload.
func (w *Exec) Check() error {
	switch {
	case len(w.Command) == 0 && w.Script == "":
		return errors.New("neither command nor script is given")
	case len(w.Command) > 0 && w.Script != "":
		return errors.New("both command and script are given: take one away")
	case len(w.Command) > 0 && w.Command[0] == "":
		return errors.New("command begins with an empty word")
	case w.Stream != "" && !oneOf(w.Stream, "stdout stderr"):
		return fmt.Errorf("stream = %q: must be one of: stdout, stderr", w.Stream)
	case len(w.Sources) == 0:
		return errors.New("metrics is empty: name at least one, as in { elapsed = \"rusage:elapsed\" }")
	case w.Duration < 0:
		return fmt.Errorf("duration = %q: must not be negative", w.Duration)
	}
	for name, value := range w.Env {
		if name == "" || strings.ContainsAny(name, "= \x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("env: %q is no name of a variable", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Sources)) {
		if err := checkSource(w.Sources[name]); err != nil {
			return fmt.Errorf("metrics: %s = %q: %w", name, w.Sources[name], err)
		}
	}
	return w.checkNames()
}

// checkNames holds units, better and primary against the metrics.
func (w *Exec) checkNames() error {
	for _, t := range []struct {
		what  string
		table map[string]string
	}{{"units", w.Units}, {"better", w.Better}} {
		for _, name := range slices.Sorted(maps.Keys(t.table)) {
			if _, ok := w.Sources[name]; !ok {
				return fmt.Errorf("%s names %q, which is not in metrics", t.what, name)
			}
		}
	}
	for name, b := range w.Better {
		if !oneOf(b, "lower higher info") {
			return fmt.Errorf("better: %s = %q: must be one of: lower, higher, info", name, b)
		}
	}
	if w.Primary == "" && len(w.Sources) > 1 {
		return errors.New("primary is missing: say which of the metrics a verdict is about")
	}
	if _, ok := w.Sources[w.Primary]; w.Primary != "" && !ok {
		return fmt.Errorf("primary = %q is not in metrics", w.Primary)
	}
	for _, m := range w.Metrics() {
		if m.Primary && m.Better == Informative && w.Better[m.Name] == "" {
			return fmt.Errorf("better says nothing of %q, the primary metric: is lower or higher better?", m.Name)
		}
	}
	return nil
}

func checkSource(source string) error {
	kind, arg, ok := strings.Cut(source, ":")
	if !ok || arg == "" {
		return errors.New("must be regexp:PATTERN, json:PATH, rusage:NAME or time:NAME")
	}
	switch kind {
	case sourceRegexp:
		p, err := regexp.Compile("(?m)" + arg)
		if err != nil {
			return err
		}
		if p.NumSubexp() == 0 {
			return errors.New("the pattern has no group: put the number in parentheses")
		}
	case sourceJSON:
	case sourceRusage:
		if !oneOf(arg, "elapsed user system nvcsw nivcsw maxrss") {
			return errors.New("rusage knows elapsed, user, system, nvcsw, nivcsw, maxrss")
		}
	case sourceTime:
		if !oneOf(arg, "elapsed user system") {
			return errors.New("time knows elapsed, user, system")
		}
	default:
		return errors.New("must be regexp:PATTERN, json:PATH, rusage:NAME or time:NAME")
	}
	return nil
}

// Needs implements Workload: the shell agent will do.
func (w *Exec) Needs() Needs { return Needs{} }

// Metrics implements Workload; the primary metric comes first.
func (w *Exec) Metrics() []Metric {
	var out []Metric
	for _, name := range slices.Sorted(maps.Keys(w.Sources)) {
		kind, arg, _ := strings.Cut(w.Sources[name], ":")
		m := Metric{Name: name, Primary: name == w.Primary || len(w.Sources) == 1}
		m.Unit, m.Better = execUnit(kind, arg)
		if u, ok := w.Units[name]; ok {
			m.Unit = u
		}
		if b, ok := w.Better[name]; ok {
			m.Better = Direction(b)
		}
		if m.Primary {
			out = slices.Insert(out, 0, m)
		} else {
			out = append(out, m)
		}
	}
	return out
}

// Estimate implements Workload.
func (w *Exec) Estimate() time.Duration {
	if w.Duration > 0 {
		return w.Duration
	}
	return 30 * time.Second
}

// Run implements Workload.
func (w *Exec) Run(ctx context.Context, env *Env) error {
	argv := w.Command
	if w.Script != "" {
		argv = []string{"sh", "-c", w.Script}
	}
	vars := []string{"LC_ALL=C"}
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		vars = append(vars, name+"="+w.Env[name])
	}
	err := env.Target.Agent.Run(ctx, Task{
		Argv: append([]string{"exec", "--"}, argv...), Env: vars,
		Deadline: env.Deadline, Sample: env.Sample, Dir: env.Dir, Ended: env.Ended,
	})
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return nil
}
