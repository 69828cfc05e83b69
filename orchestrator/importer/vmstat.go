package importer

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
	"kernsweep/workloads/vmstat"
)

var vmstatHead = regexp.MustCompile(`(?m)^.{0,60}\br\s+b\s+swpd\s`)

// readVmstat takes the text of a vmstat as one trial that has nothing but the
// machine's activity: the means of its columns.
func readVmstat(m *Import, file int, text string) error {
	kernel, err := m.kernelOf(file)
	if err != nil {
		return err
	}
	rows, warns, err := vmstat.ReadText(strings.NewReader(text))
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("no sample of vmstat in it: %s", strings.Join(append(warns, "it begins with "+quote(firstLine(text))), "; "))
	}
	if n := len(vmstatHead.FindAllStringIndex(text, -1)); n == len(rows) && n > 1 && m.o.FirstRow != "keep" {
		return fmt.Errorf("each of its %d rows has a header of its own: these are single calls of vmstat, and every row is the average since boot, which is no sample (--first-row keep takes them for samples)", n)
	}
	if m.o.FirstRow == "keep" {
		rows[0].SinceBoot = false
		m.say("vmstat: the first row is taken for a sample like the others (--first-row keep)")
	} else if rows[0].SinceBoot {
		if len(rows) == 1 {
			return fmt.Errorf("its only row is the average since boot, which is no sample: let vmstat run with an interval, or, if it is a sample, say --first-row keep")
		}
		m.say("vmstat: the first row is the average since boot, and left out (--first-row keep takes it for a sample)")
	}
	s := vmstat.Summarise(rows)
	t := trial{cell: m.place(kernel, ""), file: int32(file), line: 1, more: &extra{warnings: warns}}
	t.more.activity = &results.Activity{Samples: s.Samples, Seconds: s.Seconds, Switches: s.Switches, Interrupts: s.Interrupts,
		User: s.User, System: s.System, Idle: s.Idle, Wait: s.Wait, Steal: s.Steal, Missing: s.Missing}
	t.more.notes = append(t.more.notes, fmt.Sprintf("means over %d rows of %d", s.Samples, len(rows)),
		"its memory is taken to be in kB: vmstat does not print what -S made of it")
	return m.add(t, vmstatValues(rows))
}

func vmstatValues(rows []vmstat.Row) []workloads.Value {
	var out []workloads.Value
	for c := vmstat.R; c <= vmstat.Gu; c++ {
		v := workloads.Value{Metric: workloads.Metric{Name: c.String(), Unit: vmstatUnit(c), Better: workloads.Informative}}
		n := 0
		for _, r := range rows {
			if x, ok := r.Get(c); ok && !r.SinceBoot {
				v.Value, n = v.Value+x, n+1
			}
		}
		if n == 0 {
			v.Value, v.Missing = 0, "vmstat printed no such column"
		} else if v.Value /= float64(n); math.IsInf(v.Value, 0) {
			v.Value, v.Missing = 0, "the numbers are too large"
		}
		out = append(out, v)
	}
	return out
}

func vmstatUnit(c vmstat.Column) string {
	switch {
	case c <= vmstat.B:
		return "count"
	case c <= vmstat.Cache:
		return "kB"
	case c <= vmstat.Bo:
		return "kB/s"
	case c <= vmstat.Cs:
		return "1/s"
	}
	return "%"
}
