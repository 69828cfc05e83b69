package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

// column is one of the lanes' table.
type column struct {
	title string
	text  func(l live.LaneView) string
	min   int // columns of the terminal
	max   int // 0: as min
	right bool
	rank  int // the highest goes first where there is no room
}

// dispensable is the rank from which on a column goes before names are cut.
const dispensable = 8

// leastCut is how many columns of a cut text are better than none.
const leastCut = 5

// columns are those of the lanes' table, from left to right. The last one gets
// what is left.
func (m *model) columns() []column {
	return []column{
		{title: "lane", text: func(l live.LaneView) string { return l.Name }, min: 4, max: 24},
		{title: "state", text: func(l live.LaneView) string { return string(l.State) }, min: 7, max: 11, rank: 10},
		{title: "at", text: m.at, min: 11, max: 26, rank: 1},
		{title: "kernel", text: func(l live.LaneView) string { return l.Kernel }, min: 6, max: 20, rank: 4},
		{title: "blk", text: func(l live.LaneView) string { return number(l.Block) }, min: 3, right: true, rank: 7},
		{title: "boots", text: func(l live.LaneView) string { return fmt.Sprintf("%d/%d", l.Booted, l.Boots) }, min: 5, max: 7, right: true, rank: 9},
		{title: "in", text: func(l live.LaneView) string { return short(l.DoingS) }, min: 6, right: true, rank: 5},
		{title: "left", text: func(l live.LaneView) string { return short(l.LeftS) }, min: 6, right: true, rank: 3},
		{title: "done", text: func(l live.LaneView) string { return fmt.Sprintf("%d/%d", l.Done, l.Trials) }, min: 5, max: 11, right: true, rank: 2},
		{title: "outcomes", text: func(l live.LaneView) string { return letters(l.Outcomes) }, min: 8, max: 24, rank: 6},
		{title: "last", text: m.lastOf, min: 24, rank: 8},
	}
}

// at is what the lane does, or why it does nothing.
func (m *model) at(l live.LaneView) string {
	switch l.State {
	case live.Running:
		return l.Doing
	case live.Paused: // what had begun goes on
		return "paused: " + l.Doing
	}
	return string(l.State)
}

// lastOf is what a lane's console said last while it boots, else its last event.
func (m *model) lastOf(l live.LaneView) string {
	if s := m.last[l.Name]; s != "" && l.Phase != "" {
		return s
	}
	return l.Last
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// rows is how many lanes are seen at once.
func (m *model) rows() int {
	w, h := max(m.width, 1), max(m.height, 1)
	room := h - len(m.head(w)) - len(m.foot(w)) - 1
	return max(1, min(len(m.view.Lanes), room-len(m.detail(w, room))))
}

// lanesBody is the table of the lanes, what is known of the selected one, and its
// newest events where there is room.
func (m *model) lanesBody(w, h int) []string {
	var out []string
	table := h
	detail := m.detail(w, h-1)
	if h > 4 {
		table = h - 1 - len(detail)
		if over := table - len(m.view.Lanes); over < 0 && len(detail) > 0 && table < 3 {
			table, detail = h-1, nil
		}
	} else {
		detail = nil
	}
	n := max(1, min(len(m.view.Lanes), table))
	row := max(0, m.row())
	m.first = min(max(m.first, row-n+1), row)
	m.first = max(0, min(m.first, len(m.view.Lanes)-n))
	cols, widths := m.fitColumns(w - 2)
	if h > 4 {
		out = append(out, ansi.NewStyle().Bold().Styled("  "+titles(cols, widths)))
	}
	for i := m.first; i < min(len(m.view.Lanes), m.first+n); i++ {
		out = append(out, m.laneLine(m.view.Lanes[i], cols, widths, w))
	}
	if below := len(m.view.Lanes) - m.first - n; (below > 0 || m.first > 0) && len(detail) > 0 {
		detail[0] = rule(fmt.Sprintf("%s (%d lanes above, %d below)", m.lane, m.first, below), w)
	}
	out = append(out, detail...)
	if rest := h - len(out); rest >= 3 && detail != nil {
		out = append(out, rule("its newest events (l: all of them)", w))
		out = append(out, m.newest(w, rest-1)...)
	}
	return out
}

// newest are the last events of the selected lane.
func (m *model) newest(w, h int) []string {
	var out []string
	for i := len(m.events) - 1; i >= 0 && len(out) < h; i-- {
		if e := m.events[i]; e.Lane == "" || e.Lane == m.lane {
			line := ansi.TruncateWc(eventLine(e, false), w, "…")
			if e.Bad {
				line = ansi.NewStyle().ForegroundColor(ansi.Red).Styled(line)
			}
			out = append([]string{line}, out...)
		}
	}
	return out
}

// detail is what is known of the selected lane, in words, as far as h lines go.
func (m *model) detail(w, h int) []string {
	l, ok := m.selected()
	if !ok || h < 8 {
		return nil
	}
	step := string(l.State)
	if l.State == live.Running || l.Doing != string(l.State) {
		step += ", " + l.Doing
	}
	if l.DoingS != nil {
		step += " for " + live.Text(seconds(*l.DoingS))
	}
	if l.Kernel != "" {
		step += fmt.Sprintf("; kernel %s, block %d, boot %d", l.Kernel, l.Block, l.Boot)
	}
	if l.Reason != "" {
		step += "; why: " + l.Reason
	}
	sum := fmt.Sprintf("%d/%d trials, %d/%d boots", l.Done, l.Trials, l.Booted, l.Boots)
	if o := live.Counted(l.Outcomes); o != "" {
		sum += ": " + o
	}
	out := append([]string{rule(l.Name, w)}, upTo(2, wordwrap(step, w))...)
	out = append(out, sum)
	if s := m.last[l.Name]; s != "" {
		out = append(out, "console: "+s)
	}
	if l.Last != "" {
		out = append(out, "last: "+l.Last)
	}
	return out
}

// fitColumns says which columns there is room for, and how wide they are.
func (m *model) fitColumns(room int) ([]column, []int) {
	cols, widths := m.cutColumns(m.columns(), room)
	if cols[min(1, len(cols)-1)].title == "state" { // which need not be said again
		cols[2].text = func(l live.LaneView) string { return l.Doing }
	}
	return cols, widths
}

func (m *model) cutColumns(cols []column, room int) ([]column, []int) {
	for {
		widths, sum := m.widths(cols)
		if sum <= room || len(cols) == 1 {
			if last := len(cols) - 1; cols[last].title == "last" {
				widths[last] += room - sum
			}
			return cols, widths
		}
		worst := 0
		for i, c := range cols {
			if c.rank > cols[worst].rank {
				worst = i
			}
		}
		if cols[worst].rank < dispensable && shrink(cols, widths, sum-room) {
			return cols, widths
		}
		if left := room - widths[0] - 1; len(cols) == 2 && left >= leastCut {
			widths[1] = left
			return cols, widths
		}
		cols = append(cols[:worst:worst], cols[worst+1:]...)
	}
}

// widths are what the columns would like to have, and their sum with the spaces
// between.
func (m *model) widths(cols []column) (widths []int, sum int) {
	widths = make([]int, len(cols))
	for i, c := range cols {
		widths[i] = c.min
		for _, l := range m.view.Lanes {
			if c.max > 0 {
				widths[i] = max(widths[i], min(c.max, ansi.StringWidthWc(c.text(l))))
			}
		}
		sum += widths[i] + 1
	}
	return widths, sum - 1
}

// shrink makes columns of names narrower, the widest first, down to 12; false when that is not enough.
func shrink(cols []column, widths []int, over int) bool {
	const least = 12
	spare := 0
	for i, c := range cols {
		if c.max > least {
			spare += max(0, widths[i]-least)
		}
	}
	if spare < over {
		return false
	}
	for ; over > 0; over-- {
		widest := -1
		for i, c := range cols {
			if c.max > least && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		widths[widest]--
	}
	return true
}

func titles(cols []column, widths []int) string {
	var cells []string
	for i, c := range cols {
		cells = append(cells, cell(c, c.title, widths[i]))
	}
	return strings.Join(cells, " ")
}

func cell(c column, text string, w int) string {
	if n := ansi.StringWidthWc(text); c.right && n < w {
		return strings.Repeat(" ", w-n) + text
	}
	return pad(text, w)
}

func (m *model) laneLine(l live.LaneView, cols []column, widths []int, w int) string {
	var cells []string
	for i, c := range cols {
		cells = append(cells, cell(c, c.text(l), widths[i]))
	}
	line := strings.Join(cells, " ")
	if l.Name == m.lane {
		return ansi.NewStyle().Reverse(true).Styled(pad("> "+line, w))
	}
	return laneStyle(l).Styled(pad("  "+line, w))
}

// laneStyle is more than colour only for eyes: the words say the same.
func laneStyle(l live.LaneView) ansi.Style {
	s := ansi.NewStyle()
	bad := 0
	for o, n := range l.Outcomes {
		if o != results.OK && o != results.NotApplicable && o != results.Skipped && o != results.SkippedByHand {
			bad += n
		}
	}
	switch {
	case l.State == live.Quarantined:
		return s.Bold().ForegroundColor(ansi.Red)
	case l.State == live.Paused || l.State == live.Interrupted:
		return s.ForegroundColor(ansi.Yellow)
	case bad > 0:
		return s.ForegroundColor(ansi.Red)
	case l.State == live.LaneEnded:
		return s.ForegroundColor(ansi.Green)
	case l.State == live.Waiting:
		return s.Faint()
	}
	return s
}

// letters are outcomes in a narrow column: 35ok 2F.
func letters(m map[results.Outcome]int) string {
	letter := map[results.Outcome]string{results.OK: "ok", results.Failed: "F", results.BootFailed: "B", results.Lost: "L",
		results.Invalid: "I", results.Interrupted: "X", results.Skipped: "S", results.SkippedByHand: "H", results.NotApplicable: "-"}
	var s []string
	for _, o := range live.Outcomes() {
		if n := m[o]; n > 0 {
			s = append(s, fmt.Sprintf("%d%s", n, letter[o]))
		}
	}
	return strings.Join(s, " ")
}

// short is a duration of at most six columns, "" when it is not known.
func short(s *float64) string {
	if s == nil {
		return ""
	}
	d := seconds(*s).Round(time.Second)
	h, m, sec := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h >= 100:
		return fmt.Sprintf("%dd%02dh", h/24, h%24)
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm%02ds", m, sec)
	}
	return fmt.Sprintf("%ds", sec)
}
