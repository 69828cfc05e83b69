package live

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kernsweep/orchestrator/results"
)

// Screen redraws one line per lane on a terminal, at most a few times a second,
// and prints what is worth keeping (failures, notes) above them.
type Screen struct {
	w       io.Writer
	width   func() int
	now     func() time.Time
	mu      sync.Mutex
	tracker *Tracker
	drawn   int // lines to go up before the next drawing
	said    reasons
	skipped skips
	stop    chan struct{}
	done    chan struct{}
}

// NewScreen draws on w until Close. width gives the terminal's width in columns.
func NewScreen(w io.Writer, t *Tracker, width func() int, now func() time.Time) *Screen {
	s := &Screen{w: w, width: width, now: now, tracker: t, said: reasons{}, stop: make(chan struct{}), done: make(chan struct{})}
	go s.clock()
	return s
}

// clock redraws once a second, for the time left.
func (s *Screen) clock() {
	defer close(s.done)
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.mu.Lock()
			s.draw("")
			s.mu.Unlock()
		case <-s.stop:
			return
		}
	}
}

// Observe takes a record in and redraws.
func (s *Screen) Observe(rec results.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker.Observe(rec)
	above := ""
	if rec.Kind == results.KindNote || rec.Outcome != "" && rec.Outcome != results.OK {
		above = s.said.shorter(rec, s.skipped.once(rec, Line(rec)))
	}
	if above != "" {
		above = rec.At.Local().Format("15:04:05") + " " + above
	}
	s.draw(above)
}

// reasons are the last ones that lanes gave.
type reasons map[string]string

// shorter is a line without the reason that its lane gave just before: a boot that
// failed takes trials with it, a lost link is a trial's end and the target's failure.
func (r reasons) shorter(rec results.Record, line string) string {
	const short = 20 // bytes: not worth it
	last, now := r[rec.Lane], rec.Reason
	if rec.Boot != nil && rec.Kind == results.KindBoot {
		now = rec.Boot.Reason
	}
	if now != "" {
		r[rec.Lane] = Safe(now)
	}
	if rest, ok := strings.CutSuffix(line, last); ok && len(last) > short {
		return rest + "as above"
	}
	return line
}

// Close stops redrawing and leaves the last state on the terminal.
func (s *Screen) Close() {
	close(s.stop)
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw("")
}

func (s *Screen) draw(above string) {
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", s.drawn)
	}
	width := max(20, s.width()-1)
	if above != "" {
		b.WriteString(Fold(above, width, "  ") + "\n")
	}
	lines := s.lines(width)
	for _, l := range lines {
		b.WriteString(ansi.TruncateWc(l, width, "…") + "\n")
	}
	s.drawn = len(lines)
	_, _ = io.WriteString(s.w, b.String())
}

// mostRows bounds the lanes that are drawn: what does not fit on the lowest usual
// terminal would scroll with every drawing.
const mostRows = 18

func (s *Screen) lines(width int) []string {
	now := s.now()
	v := s.tracker.View(now, true)
	rows := v.Lanes
	if len(rows) > mostRows {
		rows = slices.DeleteFunc(slices.Clone(rows), func(l LaneView) bool { return l.State == Waiting || l.State.Over() })
		rows = rows[:min(len(rows), mostRows)]
	}
	name, kernel := 4, 4
	for _, l := range rows {
		name, kernel = max(name, ansi.StringWidthWc(l.Name)), max(kernel, ansi.StringWidthWc(l.Kernel))
	}
	name, kernel = min(name, width/5), min(kernel, width/6)
	var out []string
	for _, l := range rows {
		doing := l.Doing
		if l.State == Paused {
			doing = "paused: " + doing
		}
		done := fmt.Sprintf("%d/%d trials", l.Done, l.Trials)
		out = append(out, fmt.Sprintf("%s %13s  %s  %s  %s", fixed(l.Name, name), done, fixed(l.Kernel, kernel), fixed(doing, max(16, width/4)), Counted(l.Outcomes)))
	}
	if more := len(v.Lanes) - len(rows); more > 0 {
		out = append(out, fmt.Sprintf("and %d lanes more: %s", more, Counted(v.Outcomes)))
	}
	last := "elapsed " + Text(now.Sub(s.tracker.began))
	if left, ok := s.tracker.Left(now); ok {
		last += ", about " + Text(left) + " left"
	}
	return append(out, last+"; Ctrl-C stops cleanly")
}

// fixed makes text exactly w columns wide.
func fixed(s string, w int) string {
	s = ansi.TruncateWc(s, w, "…")
	return s + strings.Repeat(" ", max(0, w-ansi.StringWidthWc(s)))
}
