package tui

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
)

// mode is what the body shows.
type mode int

const (
	showLanes mode = iota
	showConsole
	showLog
	showHelp
)

const maxLog = 5000 // events that are kept

// model is the view's state. It is used by the program's goroutine alone; a look
// at the run is made by another, one at a time, and comes back as a looked.
type model struct {
	ctx context.Context
	src Source

	width, height int
	mode          mode
	back          mode // that help goes back to

	view   live.View
	err    error             // of the last look
	last   map[string]string // lane -> last line of its console, of a boot that goes on
	events []live.Event
	latest map[string]string // lane -> text of its newest event
	looks  int               // made so far

	lane     string // the selected one
	first    int    // row that is shown first
	allLanes bool   // the log is that of all lanes

	console *console
	log     pager
	logged  int // of events, in log
	help    pager

	question *question
	asking   bool // an answer is to come
	said     string
	bad      bool  // said is a refusal
	failed   error // a fault of ours
}

// looked is what a look found.
type looked struct {
	view   live.View
	events []live.Event
	last   map[string]string
	err    error

	console *console // whose bytes these are
	bytes   []byte
	failed  error
}

// answered is what the controller said.
type answered struct {
	said string
	err  error
}

type tick struct{}

func newModel(ctx context.Context, s Source) *model {
	return &model{ctx: ctx, src: s, width: 80, height: 24, last: map[string]string{}, latest: map[string]string{}, log: pager{follow: true}}
}

// Init begins to look.
func (m *model) Init() tea.Cmd { return m.look() }

// Update takes what happened in. A fault of ours ends the view in good order: the
// library would leave its reader behind.
func (m *model) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil {
			m.fail(r)
		}
		if m.failed != nil {
			cmd = tea.Quit
		}
	}()
	return m, m.update(msg)
}

// fail keeps the first fault.
func (m *model) fail(r any) {
	if m.failed == nil {
		m.failed = fmt.Errorf("the view failed, and the run goes on without it: %v\n%s", r, debug.Stack())
	}
}

// fault is a panic of a goroutine that is not the program's.
type fault struct{ what any }

// guarded makes a panic of a command a fault.
func guarded(f func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = fault{r}
			}
		}()
		return f()
	}
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case fault:
		m.fail(msg.what)
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.key(msg)
	case tick:
		return m.look()
	case looked:
		m.take(msg)
		every := lookEvery
		if m.console != nil {
			every = consoleEvery
		}
		return tea.Tick(every, func(time.Time) tea.Msg { return tick{} })
	case answered:
		m.asking = false
		m.say(msg.said, false)
		if msg.err != nil {
			m.say(live.Safe(msg.err.Error()), true)
		}
	}
	return nil
}

func (m *model) say(text string, bad bool) { m.said, m.bad = live.Safe(text), bad }

// look reads what is new, apart from the program's goroutine: a file server may
// be slow. The next one begins when this one has come back.
func (m *model) look() tea.Cmd {
	m.looks++
	src, c, lines := m.src, m.console, m.looks%2 == 1
	last := m.last
	return guarded(func() tea.Msg {
		var l looked
		l.view, l.events, l.err = src.Look()
		l.last = last
		if lines {
			l.last = lastLines(src, l.view)
		}
		if l.console = c; c != nil {
			l.bytes, l.failed = c.recording.Next()
		}
		return l
	})
}

// lastLines are what the consoles of lanes that boot said last.
func lastLines(src Source, v live.View) map[string]string {
	last := map[string]string{}
	for _, l := range v.Lanes {
		if v.State == live.Executing && l.Boot > 0 && !l.State.Over() {
			last[l.Name], _ = src.Console(l.Name, l.Boot).LastLine()
		}
	}
	return last
}

func (m *model) take(l looked) {
	m.err = l.err
	if l.err == nil {
		m.view, m.last = l.view, l.last
		m.view.Events = nil
		for _, e := range l.events {
			if m.latest[e.Lane] != e.Text { // a reason that takes a hundred trials is said once
				m.events = append(m.events, e)
			}
			m.latest[e.Lane] = e.Text
		}
	}
	if over := len(m.events) - maxLog; over > 0 {
		m.events = slices.Delete(m.events, 0, over)
		m.logged = max(0, m.logged-over)
	}
	if m.row() < 0 && len(m.view.Lanes) > 0 {
		m.lane = m.view.Lanes[0].Name
	}
	m.fillLog()
	if m.console != nil && m.console == l.console {
		m.console.take(l.bytes, l.failed)
	}
	m.turnConsole()
}

// row is the selected lane's, -1 while there is none.
func (m *model) row() int {
	return slices.IndexFunc(m.view.Lanes, func(l live.LaneView) bool { return l.Name == m.lane })
}

// selected is the selected lane; ok is false while there is none.
func (m *model) selected() (l live.LaneView, ok bool) {
	if r := m.row(); r >= 0 {
		return m.view.Lanes[r], true
	}
	return l, false
}

// over says that nobody executes the run.
func (m *model) over() bool { return m.view.State != live.Executing && m.view.State != live.Starting }

// fillLog puts new events into the log.
func (m *model) fillLog() {
	for ; m.logged < len(m.events); m.logged++ {
		if e := m.events[m.logged]; m.allLanes || e.Lane == "" || e.Lane == m.lane {
			m.log.add(eventLine(e, m.allLanes))
		}
	}
}

// newLog fills the log anew, for another lane.
func (m *model) newLog() {
	m.log, m.logged = pager{follow: true}, 0
	m.fillLog()
}

// eventLine says of which lane an event is where that is not known anyhow.
func eventLine(e live.Event, lanes bool) string {
	mark, lane := " ", ""
	if e.Bad {
		mark = "!"
	}
	if lanes && e.Lane != "" {
		lane = e.Lane + ": "
	}
	return fmt.Sprintf("%s %s%s%s", e.At.Local().Format("15:04:05"), mark, lane, e.Text)
}

// ask sends a request apart from the program's goroutine.
func (m *model) ask(r control.Request) tea.Cmd {
	r.By = m.src.By
	m.asking = true
	m.say("asking the controller …", false)
	ctx, ask := m.ctx, m.src.Ask
	return guarded(func() tea.Msg {
		said, err := ask(ctx, r)
		return answered{said, err}
	})
}
