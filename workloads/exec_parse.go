package workloads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kernsweep/workloads/timefmt"
	"kernsweep/workloads/wire"
)

// Parse implements Workload.
func (w *Exec) Parse(files fs.FS) (Parsed, error) {
	var out Parsed
	spool, err := readSpool(files, "spool")
	if err != nil {
		return out, withLastWords(err, spool, files)
	}
	name := w.Stream
	if name == "" {
		name = "stdout"
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		text, out.Notes = nil, append(out.Notes, name+" was not collected")
	}
	cut := ""
	for _, n := range spool.Notes {
		if strings.Contains(n, "truncated") {
			out.Warnings = append(out.Warnings, n)
		}
		if strings.HasPrefix(n, name+" truncated") {
			cut = "; " + n + ", so print what is measured first, or less"
		}
	}
	for _, m := range w.Metrics() {
		v := Value{Metric: m}
		kind, arg, _ := strings.Cut(w.Sources[m.Name], ":")
		var note string
		switch kind {
		case sourceRegexp:
			v.Value, v.Resolution, note, err = byPattern(arg, string(text), name)
		case sourceJSON:
			v.Value, v.Resolution, err = byPath(arg, text, name)
		case sourceRusage:
			v, err = byRusage(v, arg, spool)
		case sourceTime:
			v.Value, v.Resolution, err = byTime(arg, string(text))
		}
		if err != nil {
			return Parsed{Notes: out.Notes, Warnings: out.Warnings}, &FailedError{Reason: m.Name + ": " + err.Error() + cut}
		}
		if note != "" {
			out.Notes = append(out.Notes, m.Name+": "+note)
		}
		out.Values = append(out.Values, v)
	}
	return out, nil
}

// withLastWords says in words how the command failed, and adds the last line
// of standard error: it mostly names the cause.
func withLastWords(err error, s *wire.Spool, files fs.FS) error {
	var f *FailedError
	if !errors.As(err, &f) {
		return err
	}
	reason := f.Reason
	if i := slices.IndexFunc(s.Tasks, func(t wire.Task) bool { return t.Name == "exec" }); i >= 0 && s.End["status"] == "failed" {
		switch t := s.Tasks[i]; {
		case t.Signal != 0:
			reason = fmt.Sprintf("the command was killed by signal %d", t.Signal)
		case t.Exit != 0:
			reason = fmt.Sprintf("the command exited with status %d", t.Exit)
		}
	}
	text, _ := fs.ReadFile(files, "stderr") // without it there are no last words
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		reason = fmt.Sprintf("%s; its last words: %q", reason, last[:min(len(last), 200)])
	}
	return &FailedError{Reason: reason}
}

func byPattern(pattern, text, stream string) (v, resolution float64, note string, err error) {
	p, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return 0, 0, "", err
	}
	all := p.FindAllStringSubmatch(text, 100)
	if len(all) == 0 {
		return 0, 0, "", fmt.Errorf("the pattern matched nothing in %s of %s", lines(text), stream)
	}
	if len(all[0]) < 2 {
		return 0, 0, "", errors.New("the pattern has no group")
	}
	if len(all) > 1 {
		note = fmt.Sprintf("the pattern matched %d times; the first counts", len(all))
	}
	v, resolution, err = number(all[0][1])
	if err != nil {
		err = fmt.Errorf("%w (in %q)", err, strings.TrimSpace(all[0][0]))
	}
	return v, resolution, note, err
}

func lines(text string) string {
	switch n := strings.Count(strings.TrimRight(text, "\n")+"\n", "\n"); {
	case strings.TrimSpace(text) == "":
		return "0 lines"
	case n == 1:
		return "1 line"
	default:
		return strconv.Itoa(n) + " lines"
	}
}

// number reads a decimal number and the step it was printed with.
func number(s string) (v, resolution float64, err error) {
	s = strings.TrimSpace(s)
	v, err = strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, 0, fmt.Errorf("%q is no number", s)
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	_, frac, _ := strings.Cut(mantissa, ".")
	resolution = math.Pow(10, -float64(len(frac)))
	if e, err := strconv.Atoi(exponent); err == nil {
		resolution *= math.Pow(10, float64(e))
	}
	return v, resolution, nil
}

// byPath looks a number up in the first JSON value of text that begins a line.
func byPath(path string, text []byte, stream string) (v, resolution float64, err error) {
	start := bytes.IndexAny(text, "{[")
	for start > 0 && text[start-1] != '\n' {
		next := bytes.IndexAny(text[start+1:], "{[")
		if next < 0 {
			start = -1
			break
		}
		start += 1 + next
	}
	if start < 0 {
		return 0, 0, fmt.Errorf("no JSON in %s of %s", lines(string(text)), stream)
	}
	d := json.NewDecoder(bytes.NewReader(text[start:]))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return 0, 0, fmt.Errorf("the JSON in %s cannot be read: %w", stream, err)
	}
	found, ok := walk(doc, strings.Split(path, "."))
	if !ok {
		return 0, 0, fmt.Errorf("the JSON in %s has no %q", stream, path)
	}
	switch x := found.(type) {
	case json.Number:
		return number(x.String())
	case string:
		return number(x)
	default:
		return 0, 0, fmt.Errorf("%q is no number in the JSON of %s", path, stream)
	}
}

// walk follows a path; names of several parts are tried first, the longest first.
func walk(v any, path []string) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	switch x := v.(type) {
	case map[string]any:
		for n := len(path); n > 0; n-- {
			if inner, ok := x[strings.Join(path[:n], ".")]; ok {
				if found, ok := walk(inner, path[n:]); ok {
					return found, true
				}
			}
		}
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(x) {
			return walk(x[i], path[1:])
		}
	}
	return nil, false
}

// byRusage fills v with what the kernel counted for the command; a figure that
// the agent could not have is missing.
func byRusage(v Value, name string, s *wire.Spool) (Value, error) {
	i := slices.IndexFunc(s.Tasks, func(t wire.Task) bool { return t.Name == "exec" })
	if i < 0 {
		return v, errors.New("the agent recorded no process")
	}
	t := s.Tasks[i]
	fine := 1e-6 // s
	if !strings.HasPrefix(s.Begin["agent"], "go ") {
		fine = 0.01 // the shell agent reads ticks
	}
	f := map[string]struct {
		key        string
		value      float64
		resolution float64
	}{
		"elapsed": {"end_ns", float64(t.EndNS-t.StartNS) / 1e9, fine},
		"user":    {"utime_us", float64(t.UserUS) / 1e6, fine},
		"system":  {"stime_us", float64(t.SystemUS) / 1e6, fine},
		"nvcsw":   {"nvcsw", float64(t.Voluntary), 1},
		"nivcsw":  {"nivcsw", float64(t.Involuntary), 1},
		"maxrss":  {"maxrss_kb", float64(t.MaxRSSKB), 1},
	}[name]
	if slices.Contains(t.Missing, f.key) {
		v.Missing = "the shell agent cannot count it"
		return v, nil
	}
	v.Value, v.Resolution = f.value, f.resolution
	return v, nil
}

func byTime(name, text string) (v, resolution float64, err error) {
	t, err := timefmt.Read(text)
	if err != nil {
		return 0, 0, err
	}
	if why := t.Failed(); why != "" {
		return 0, 0, errors.New(why)
	}
	return map[string]float64{"elapsed": t.Elapsed, "user": t.User, "system": t.System}[name], t.Resolution, nil
}
