package web

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"kernsweep/orchestrator/live"
)

// cell is a text of a page that changes while a run goes on. The template writes
// it with its ID, and the script puts a new text there.
type cell struct{ ID, Head, Text string }

// laneRow is a lane of the table.
type laneRow struct {
	Lane  live.LaneView
	Cells []cell
}

// runCells is what changes about a whole run.
func runCells(v live.View) []cell {
	out := []cell{
		{"state", "State", string(v.State)},
		{"done", "Trials", fmt.Sprintf("%d of %d", v.Done, v.Trials)},
		{"outcomes", "Outcomes", live.Stand(v.Outcomes, 0)},
		{"elapsed", "Elapsed", live.Text(time.Duration(v.ElapsedS * float64(time.Second)))},
		{"left", "Left", span(v.LeftS, "not known yet")},
	}
	if v.State != live.Executing {
		out = out[:3] // its time has ended, or not begun
	}
	return out
}

// laneRows is what changes about lanes, in their order.
func laneRows(v live.View) []laneRow {
	var rows []laneRow
	for i, l := range v.Lanes {
		id := func(s string) string { return "l" + strconv.Itoa(i) + "-" + s }
		doing := l.Doing
		if l.Kernel != "" && !l.State.Over() {
			doing = l.Kernel + ": " + doing
		}
		row := laneRow{Lane: l, Cells: []cell{
			{id("state"), "State", string(l.State)},
			{id("doing"), "Doing", doing},
			{id("for"), "For", orDash(l.DoingS)},
			{id("left"), "Left", orDash(l.LeftS)},
			{id("boots"), "Boots", fmt.Sprintf("%d of %d", l.Booted, l.Boots)},
			{id("done"), "Trials", fmt.Sprintf("%d of %d", l.Done, l.Trials)},
			{id("outcomes"), "Outcomes", live.Stand(l.Outcomes, 0)},
			{id("last"), "Last event", l.Last},
		}}
		if l.Reason != "" {
			row.Cells[1].Text += ": " + l.Reason
		}
		rows = append(rows, row)
	}
	return rows
}

func orDash(s *float64) string {
	if s == nil {
		return "n/a"
	}
	return span(s, "")
}

// flat are the texts by their IDs, as the script gets them. "shape" changes when
// the page has other rows than before: then it is loaded anew.
func flat(v live.View) map[string]string {
	out := map[string]string{"shape": shape(v), "bar": strconv.Itoa(v.Done)}
	for _, c := range runCells(v) {
		out[c.ID] = live.SafeText(c.Text)
	}
	if v.State != live.Executing {
		out["left"] = "n/a" // as a page still shows it
	}
	for _, r := range laneRows(v) {
		for _, c := range r.Cells {
			out[c.ID] = live.SafeText(c.Text)
		}
	}
	return out
}

func shape(v live.View) string {
	h := fnv.New64a()
	for _, l := range v.Lanes {
		fmt.Fprintf(h, "%q", l.Name)
	}
	fmt.Fprint(h, v.Trials)
	return strconv.FormatUint(h.Sum64(), 36)
}

// only is a view with one lane.
func only(v live.View, lane string) live.View {
	l, _ := laneOf(v, lane)
	v.Lanes = []live.LaneView{l}
	return v
}

// line is an event as the page shows it.
type line struct {
	Seq   int    `json:"seq"`
	ISO   string `json:"iso"`
	Clock string `json:"clock"`
	Lane  string `json:"lane"`
	Text  string `json:"text"`
	Bad   bool   `json:"bad"`
}

func lineOf(e live.Event, now time.Time) line {
	return line{e.Seq, e.At.UTC().Format(time.RFC3339), clock(e.At, now), live.SafeText(e.Lane), live.SafeText(e.Text), e.Bad}
}

// newestFirst are events as the page shows them.
func newestFirst(events []live.Event, now time.Time) []line {
	var out []line
	for i := len(events) - 1; i >= 0; i-- {
		out = append(out, lineOf(events[i], now))
	}
	return out
}

// lastSeq is that of the newest event, 0 when there is none.
func lastSeq(events []live.Event) int {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Seq
}
