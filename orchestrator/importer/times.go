package importer

import (
	"fmt"
	"regexp"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
	"kernsweep/workloads/timefmt"
)

var timeEnds = regexp.MustCompile(`^Command (exited with non-zero status|terminated by signal) \d+`)

// readTime takes every output of a time command in a file as a trial.
func readTime(m *Import, file int, text string) error {
	kernel, err := m.kernelOf(file)
	if err != nil {
		return err
	}
	pieces := splitTimes(text)
	if len(pieces) == 0 {
		return atLine{1, fmt.Errorf("no output of a time command in it; it begins with %s", quote(firstLine(text)))}
	}
	for _, p := range pieces {
		times, err := timefmt.Read(p.text)
		if err != nil {
			return atLine{p.line, err}
		}
		t := trial{cell: m.place(kernel, ""), file: int32(file), line: int32(p.line)}
		if why := times.Failed(); why != "" {
			t.more = &extra{outcome: results.Failed, reason: why}
		}
		var values []workloads.Value
		for _, v := range []struct {
			name string
			v    float64
		}{{"elapsed", times.Elapsed}, {"user", times.User}, {"system", times.System}} {
			values = append(values, workloads.Value{Metric: workloads.Metric{Name: v.name, Unit: "s", Better: workloads.LowerIsBetter},
				Value: v.v, Resolution: times.Resolution})
		}
		if err := m.add(t, values); err != nil {
			return err
		}
	}
	return nil
}

// splitTimes cuts a text where a new output of time begins: at a line that says
// what the piece has said already, or that tells how the next command ended.
func splitTimes(text string) []piece {
	var out []piece
	var body strings.Builder
	seen := map[string]bool{}
	from, n := 1, 0
	flush := func(next int) {
		if len(seen) > 0 {
			out = append(out, piece{text: body.String(), line: from})
		}
		body.Reset()
		clear(seen)
		from = next
	}
	for line := range strings.Lines(text) {
		n++
		t := strings.TrimSpace(line)
		says := timefmt.Says(t)
		if len(seen) > 0 && (timeEnds.MatchString(t) || strings.HasPrefix(t, "Command being timed:")) {
			flush(n)
		}
		for _, s := range says {
			if seen[s] {
				flush(n)
				break
			}
		}
		for _, s := range says {
			if len(seen) == 0 {
				from = n
			}
			seen[s] = true
		}
		body.WriteString(line)
	}
	flush(n)
	return out
}
