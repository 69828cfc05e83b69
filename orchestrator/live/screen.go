package live

import (
	"fmt"
	"io"
	"sort"
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
	stop    chan struct{}
	done    chan struct{}
}

// NewScreen draws on w until Close. width gives the terminal's width in columns.
func NewScreen(w io.Writer, t *Tracker, width func() int, now func() time.Time) *Screen {
	s := &Screen{w: w, width: width, now: now, tracker: t, stop: make(chan struct{}), done: make(chan struct{})}
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
		above = rec.At.Local().Format("15:04:05") + " " + Line(rec)
	}
	s.draw(above)
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
		b.WriteString(above + "\n")
	}
	lines := s.lines()
	for _, l := range lines {
		b.WriteString(ansi.Truncate(l, width, "…") + "\n")
	}
	s.drawn = len(lines)
	_, _ = io.WriteString(s.w, b.String())
}

func (s *Screen) lines() []string {
	t := s.tracker
	var out []string
	for _, n := range t.order {
		l := t.lanes[n]
		out = append(out, Safe(fmt.Sprintf("%-14s %3d/%d trials  %-16s %-28s %s", n, l.trials, l.Trials, l.kernel, l.doing, counts(l.outcomes))))
	}
	now := s.now()
	last := "elapsed " + now.Sub(t.began).Round(time.Second).String()
	if left, ok := t.Left(now); ok {
		last += ", about " + left.Round(time.Second).String() + " left"
	}
	return append(out, last+"; Ctrl-C stops cleanly")
}

func counts(m map[results.Outcome]int) string {
	var s []string
	for o, n := range m {
		s = append(s, fmt.Sprintf("%s %d", o, n))
	}
	sort.Strings(s)
	return strings.Join(s, ", ")
}
