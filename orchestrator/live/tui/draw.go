package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"kernsweep/orchestrator/live"
)

const (
	longestHead = 3 // lines of it
	longestSaid = 4 // lines of a question or an answer
)

// View draws the screen, all of it: exactly the terminal's lines, none wider than
// it is.
func (m *model) View() (v tea.View) {
	defer func() {
		if r := recover(); r != nil {
			m.fail(r)
			v = tea.View{AltScreen: true, DisableBracketedPasteMode: true}
		}
	}()
	v = tea.NewView(strings.Join(m.draw(), "\n"))
	v.AltScreen = true
	v.DisableBracketedPasteMode = true
	return v
}

func (m *model) draw() []string {
	w, h := max(m.width, 1), max(m.height, 1)
	head, foot := m.head(w), m.foot(w)
	switch tiny := h < len(head)+len(foot)+3; {
	case tiny && m.question != nil: // nothing matters more
		head = nil
		if over := len(foot) - h; over > 0 {
			foot = append(foot[:max(0, len(foot)-over-1)], foot[len(foot)-1])
		}
	case tiny:
		head, foot = head[:min(1, len(head))], foot[max(0, len(foot)-max(1, h/2)):]
	}
	room := max(0, h-len(head)-len(foot))
	lines := append(head, fit(m.body(w, room), room)...)
	lines = append(lines, foot...)
	lines = lines[:min(len(lines), h)]
	for i, l := range lines {
		lines[i] = ansi.TruncateWc(l, w, "…")
	}
	return lines
}

// fit makes it so many lines.
func fit(lines []string, n int) []string {
	lines = lines[:min(len(lines), n)]
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines
}

// head says which run it is, and how it stands.
func (m *model) head(w int) []string {
	v := m.view
	title := fmt.Sprintf(" %s  %s", v.Sweep, upper(v.State))
	if v.Run == "" {
		title = " kernsweep watch"
	}
	if gap := w - ansi.StringWidthWc(title) - ansi.StringWidthWc(v.Run) - 1; gap >= 2 {
		title += strings.Repeat(" ", gap) + v.Run + " "
	} else {
		title += "  " + v.Run
	}
	out := []string{ansi.NewStyle().Reverse(true).Styled(pad(title, w))}
	return append(out, upTo(longestHead-1, wordwrap(m.standing(), w))...)
}

func upper(s live.State) string { return strings.ToUpper(string(s)) }

// standing says in a line or two how far the run is.
func (m *model) standing() string {
	v := m.view
	s := fmt.Sprintf("%d/%d trials", v.Done, v.Trials)
	if o := live.Counted(v.Outcomes); o != "" {
		s += ": " + o
	}
	for _, state := range []live.LaneState{live.Paused, live.Quarantined} {
		if n := count(v.Lanes, state); n > 0 {
			s += fmt.Sprintf(", %d %s", n, lanesAre(n, state))
		}
	}
	elapsed := seconds(v.ElapsedS)
	switch {
	case m.looks < 2 && v.Run == "":
		return "reading the journal …"
	case v.State == live.Finished:
		return fmt.Sprintf("%s %s after %s, q leaves; report: %s. %s", v.State, v.Began.Add(elapsed).Local().Format("15:04"), live.Text(elapsed), m.src.Report, s)
	case m.over():
		return fmt.Sprintf("%s %s, q leaves; to go on: %s. %s", v.State, v.Began.Add(elapsed).Local().Format("15:04"), m.src.Resume, s)
	case v.LeftS != nil:
		left := seconds(*v.LeftS)
		return fmt.Sprintf("elapsed %s, about %s left (%s). %s", live.Text(elapsed), live.Text(left), v.Began.Add(elapsed+left).Local().Format("15:04"), s)
	}
	return fmt.Sprintf("elapsed %s. %s", live.Text(elapsed), s)
}

func lanesAre(n int, s live.LaneState) string {
	if n == 1 {
		return "lane " + string(s)
	}
	return "lanes " + string(s)
}

func count(lanes []live.LaneView, s live.LaneState) int {
	n := 0
	for _, l := range lanes {
		if l.State == s {
			n++
		}
	}
	return n
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// body is what is between head and foot.
func (m *model) body(w, h int) []string {
	p := m.pager()
	if p == nil {
		return m.lanesBody(w, h)
	}
	if h <= 0 {
		return nil
	}
	text := p.draw(w, h-1)
	return append([]string{rule(m.pagerTitle(), w)}, text...)
}

// pagerTitle says what is shown, and where in it one is.
func (m *model) pagerTitle() string {
	l, _ := m.selected()
	p := m.pager()
	where := "following"
	if !p.follow {
		where = fmt.Sprintf("line %d of %d, End follows", p.top+1, len(p.wrapped))
	}
	if p.search != "" && !p.typing {
		where += ", search: " + p.search
	}
	switch {
	case m.mode == showHelp:
		return "keys"
	case m.mode == showLog && m.allLanes:
		return "log of all lanes, " + where
	case m.mode == showLog:
		return fmt.Sprintf("log of %s, %s", l.Name, where)
	case m.console.err != nil:
		return fmt.Sprintf("console of %s: %s", l.Name, live.Safe(m.console.err.Error()))
	case m.console.boot == 0:
		return fmt.Sprintf("console of %s: no boot has begun", l.Name)
	case len(m.console.lines) == 0 && m.console.tail == "":
		return fmt.Sprintf("console of %s, boot %d: nothing yet, or it has no console", l.Name, l.Boot)
	}
	return fmt.Sprintf("console of %s, boot %d, kernel %s, %s", l.Name, l.Boot, l.Kernel, where)
}

// rule is a line across the screen with a title.
func rule(title string, w int) string {
	s := ansi.TruncateWc("── "+title+" ", w, "…")
	return s + strings.Repeat("─", max(0, w-ansi.StringWidthWc(s)))
}

// foot says what was asked or answered, and which keys there are.
func (m *model) foot(w int) []string {
	var out []string
	bold, red := ansi.NewStyle().Bold(), ansi.NewStyle().Bold().ForegroundColor(ansi.Red)
	switch {
	case m.question != nil:
		for _, l := range upTo(longestSaid, wordwrap(m.question.text, w)) {
			out = append(out, bold.Styled(l))
		}
		return append(out, bold.Styled("y: yes  other: no"))
	case m.err != nil:
		out = append(out, styled(red, upTo(2, wordwrap("! "+live.Safe(m.err.Error()), w)))...)
	case m.said != "" && m.bad:
		out = append(out, styled(red, upTo(longestSaid, wordwrap("! "+m.said, w)))...)
	case m.said != "":
		out = append(out, styled(bold, upTo(longestSaid, wordwrap(m.said, w)))...)
	}
	return append(out, ansi.NewStyle().Reverse(true).Styled(pad(m.keysLine(w), w)))
}

func styled(s ansi.Style, lines []string) []string {
	for i, l := range lines {
		lines[i] = s.Styled(l)
	}
	return lines
}

func (m *model) keysLine(w int) string {
	if p := m.pager(); p != nil {
		switch {
		case p.typing:
			return "/" + p.search + "_   Enter finds, Esc gives up"
		case m.mode == showHelp:
			return " q back"
		case m.mode == showLog:
			return " q back  / search  n N next  Tab next lane  a all lanes  End follow"
		}
		return " q back  / search  n N next  Tab next lane  End follow"
	}
	if w < 70 {
		return " q leave  ? keys"
	}
	return " Enter console  l log  s S skip  p pause  Q quarantine  x stop  ? keys  q leave"
}

func upTo(n int, lines []string) []string { return lines[:min(n, len(lines))] }

// wordwrap cuts text at spaces where it can.
func wordwrap(s string, w int) []string { return strings.Split(ansi.WrapWc(s, max(w, 1), " "), "\n") }

// pad makes text exactly w columns wide.
func pad(s string, w int) string {
	s = ansi.TruncateWc(s, w, "…")
	return s + strings.Repeat(" ", max(0, w-ansi.StringWidthWc(s)))
}
