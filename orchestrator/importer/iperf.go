package importer

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
	"kernsweep/workloads/iperf"
)

// readIperf takes every run of iperf in a file as a trial. A run in both
// directions is two trials, in scenarios of their own: their sum is no figure.
func readIperf(m *Import, file int, text string) error {
	kernel, err := m.kernelOf(file)
	if err != nil {
		return err
	}
	pieces, err := splitIperf(text)
	if err != nil {
		return err
	}
	before := len(m.trials)
	for _, p := range pieces {
		r := iperf.Read([]byte(p.text), nil, iperf.Hint{Process: p.process})
		if !counted(r) && len(r.Errors) == 0 {
			if alone := iperf.Read(nil, []byte(p.text), iperf.Hint{}); len(alone.Errors) > 0 {
				r = alone // what iperf said on standard error
			} else if r.Tool == "" || len(m.trials) > before || p.idle {
				continue // banners, prose
			}
		}
		if err := m.iperfTrials(kernel, file, p, r); err != nil {
			return err
		}
	}
	if len(m.trials) == before {
		return atLine{1, fmt.Errorf("no line of iperf's figures in it; it begins with %s", quote(firstLine(text)))}
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, " \t\n"), "\n")
	return line
}

func counted(r *iperf.Report) bool {
	return len(r.Streams)+len(r.Sums)+len(r.Intervals)+len(r.ServerReport) > 0
}

func (m *Import) iperfTrials(kernel string, file int, p piece, r *iperf.Report) error {
	directions := bothWays(r)
	for _, d := range directions {
		scenario := ""
		if len(directions) > 1 {
			if scenario = d; m.o.Scenario != "default" {
				scenario = m.o.Scenario + "." + d
			}
		}
		t := trial{cell: m.place(kernel, scenario), file: int32(file), line: int32(p.line), more: &extra{}}
		total, received, err := iperfTotal(r, d)
		t.more.notes = iperfNotes(r, d)
		switch {
		case len(r.Errors) > 0:
			t.more.outcome, t.more.reason = results.Failed, r.Errors[0]
		case errors.Is(err, iperf.ErrNoFinal):
			t.more.outcome, t.more.reason = results.Failed, noFinal(r)
		case err != nil:
			t.more.outcome, t.more.reason = results.Invalid, err.Error()
		case total.Streams > 1 && withItself(p.text):
			t.more.outcome, t.more.reason = results.Invalid, "both directions on one machine: which stream went which way cannot be told"
		case total.Bytes == 0:
			t.more.outcome, t.more.reason = results.Failed, "0 bytes arrived"
		}
		var values []workloads.Value
		if t.more.outcome == "" {
			values = iperfValues(r, total)
			t.more.notes = append(t.more.notes, counter(r, total, received))
			if zero, all := r.Stalls(); zero > 0 {
				t.more.warnings = append(t.more.warnings, fmt.Sprintf("nothing moved in %d of %d intervals: did the link stall?", zero, all))
			}
		}
		if err := m.add(t, values); err != nil {
			return err
		}
	}
	return nil
}

var ends = regexp.MustCompile(`(?m) local (\S+) port \d+ connected with (\S+) port|^(?:[-+]\d{4}:)?\d{14}[\d.]*,([^,]+),\d+,([^,]+),`)

// withItself says that iperf2 -d or -r ran between two processes of one machine,
// where endpoints do not tell the directions apart.
func withItself(text string) bool {
	if !strings.Contains(text, "Client connecting to") || !strings.Contains(text, "Server listening on") && !csvLine.MatchString(lastLine(text)) {
		return false
	}
	for _, g := range ends.FindAllStringSubmatch(text, -1) {
		if g[1] != g[2] || g[3] != g[4] {
			return false
		}
	}
	return true
}

func lastLine(text string) string {
	text = strings.TrimRight(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// bothWays are the directions of a run that has two, else "" for any.
func bothWays(r *iperf.Report) []string {
	seen := map[string]bool{}
	for _, rows := range [][]iperf.Row{r.Streams, r.Sums} {
		for _, row := range rows {
			if row.Direction != "" {
				seen[row.Direction] = true
			}
		}
	}
	if len(seen) > 1 {
		return []string{iperf.Up, iperf.Down}
	}
	return []string{""}
}

// iperfTotal is what arrived, else, for TCP, what was sent. A sender of
// datagrams does not see losses: its rate never stands for what arrived.
func iperfTotal(r *iperf.Report, direction string) (t iperf.Total, received bool, err error) {
	if r.UDP && direction != iperf.Down {
		if t, err = r.Reported(); !errors.Is(err, iperf.ErrNoFinal) {
			return t, true, err
		}
	}
	t, err = r.Total(iperf.Receiver, direction)
	switch {
	case err == nil && r.UDP && t.UDP == nil && r.Process != iperf.Server && r.Tool != iperf.Iperf3:
		return t, false, iperf.ErrNoFinal
	case !errors.Is(err, iperf.ErrNoFinal):
		return t, true, err
	case r.UDP:
		return t, false, err
	}
	t, err = r.Total(iperf.Sender, direction)
	return t, false, err
}

func noFinal(r *iperf.Report) string {
	if r.UDP {
		if t, err := r.Total(iperf.Sender, ""); err == nil {
			return fmt.Sprintf("no report of the receiver: what arrived is not known (the sender's own %.4g Mbit/s say nothing of it)", t.Rate/1e6)
		}
	}
	if len(r.Intervals) > 0 {
		return "no final line: it was cut off, or killed"
	}
	return "no final line: no figure was printed"
}

func iperfValues(r *iperf.Report, t iperf.Total) []workloads.Value {
	put := func(name, unit string, better workloads.Direction, v, step float64) workloads.Value {
		return workloads.Value{Metric: workloads.Metric{Name: name, Unit: unit, Better: better}, Value: v, Resolution: step}
	}
	out := []workloads.Value{put("throughput", "Mbit/s", workloads.HigherIsBetter, t.Rate/1e6, t.Resolution/1e6)}
	out = append(out, put("seconds", "s", workloads.Informative, t.Seconds, 0))
	if t.UDP != nil {
		out = append(out, put("loss", "%", workloads.LowerIsBetter, t.UDP.LossPercent(), 0),
			put("jitter", "ms", workloads.LowerIsBetter, t.UDP.JitterMS, 0.001))
	}
	if t.Retr != nil {
		out = append(out, put("retransmits", "count", workloads.Informative, float64(*t.Retr), 0))
	}
	return out
}

func iperfNotes(r *iperf.Report, direction string) []string {
	var notes []string
	for _, rows := range [][]iperf.Row{r.Sums, r.ServerReport, r.Streams} {
		for _, row := range rows {
			if row.Line != "" && (direction == "" || row.Direction == direction) && len(notes) < 4 {
				notes = append(notes, results.NotePrinted+row.Line)
			}
		}
	}
	return append(notes, r.Notes...)
}

func counter(r *iperf.Report, t iperf.Total, received bool) string {
	who := r.Process
	if who == "" {
		who = "an end that the file does not name"
	}
	what := "sent"
	if received && r.Process != "" {
		what = "received"
	}
	if r.Process == "" {
		what = "sent or received"
	}
	return fmt.Sprintf("%s, bytes %s, as printed by %s, in %.4g s, %s", r, what, who, t.Seconds, plural.Of(t.Streams, "stream"))
}
