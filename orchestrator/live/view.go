package live

import (
	"maps"
	"strings"
	"time"

	"kernsweep/orchestrator/results"
)

// State of a run, as people are told it.
type State string

// States of a run.
const (
	Starting    State = "starting" // its controller has written nothing yet
	Executing   State = "running"  // a controller is at it
	Finished    State = "ended"    // to its end
	Stopped     State = "interrupted"
	NotBegun    State = "not begun" // it has a plan, and never had a controller
	ControlDied State = "died without a word"
)

// LaneState is how a lane stands.
type LaneState string

// States of a lane; the last three are its end.
const (
	Waiting     LaneState = "waiting"
	Running     LaneState = "running"
	Paused      LaneState = "paused"
	LaneEnded   LaneState = results.NoteEnded
	Interrupted LaneState = results.NoteInterrupted
	Quarantined LaneState = results.NoteQuarantined
)

// Over says that the lane does nothing more in this session.
func (s LaneState) Over() bool { return s == LaneEnded || s == Interrupted || s == Quarantined }

// Event is a record that is worth a line.
type Event struct {
	At   time.Time `json:"at"`
	Lane string    `json:"lane,omitempty"`
	Text string    `json:"text"` // inert: without control characters
	Bad  bool      `json:"bad,omitempty"`
	Seq  int       `json:"seq"` // of the record
}

// View is how a run stands at one moment. Texts are inert.
type View struct {
	Run      string                  `json:"run"`
	Sweep    string                  `json:"sweep"`
	State    State                   `json:"state"`
	Began    time.Time               `json:"began,omitzero"` // its newest session
	ElapsedS float64                 `json:"elapsed_s"`      // since then
	LeftS    *float64                `json:"left_s"`         // estimated; nil: not known
	Trials   int                     `json:"trials"`         // planned, warm-ups included
	Done     int                     `json:"done"`           // of them with an outcome
	Outcomes map[results.Outcome]int `json:"outcomes"`
	Lanes    []LaneView              `json:"lanes"`
	Events   []Event                 `json:"events"` // the newest, oldest first
}

// LaneView is how a lane stands.
type LaneView struct {
	Name     string                  `json:"name"`
	State    LaneState               `json:"state"`
	Reason   string                  `json:"reason,omitempty"` // why it was given up, paused or interrupted
	Kernel   string                  `json:"kernel,omitempty"`
	Boot     int                     `json:"boot,omitempty"`  // number of the newest; 0: none yet
	Block    int                     `json:"block,omitempty"` // that it is at
	Boots    int                     `json:"boots"`           // planned
	Booted   int                     `json:"booted"`          // judged so far
	Phase    string                  `json:"phase,omitempty"` // of a boot that goes on
	Doing    string                  `json:"doing"`
	DoingS   *float64                `json:"doing_s"` // for so long; nil: not known
	LeftS    *float64                `json:"left_s"`  // estimated; nil: not known
	Trials   int                     `json:"trials"`
	Done     int                     `json:"done"`
	Outcomes map[results.Outcome]int `json:"outcomes"`
	Last     string                  `json:"last,omitempty"` // event
}

// event keeps what is worth a line; a reason that repeats itself is kept once.
func (t *Tracker) event(rec results.Record) {
	e, ok := EventOf(rec)
	if !ok {
		return
	}
	if n := len(t.events); n > 0 && t.events[n-1].Lane == e.Lane && t.events[n-1].Text == e.Text {
		return
	}
	if len(t.events) >= 2*maxEvents {
		t.events = append(t.events[:0], t.events[len(t.events)-maxEvents:]...)
	}
	t.events = append(t.events, e)
}

func bad(rec results.Record) bool {
	switch rec.Outcome {
	case "", results.OK, results.NotApplicable:
	default:
		return true
	}
	return rec.Kind == results.KindLane && strings.HasPrefix(rec.Note, results.NoteQuarantined)
}

// View is how the run stands at now, but for who executes it: held says that a
// process does.
func (t *Tracker) View(now time.Time, held bool) View {
	v := View{State: t.state(held), Outcomes: map[results.Outcome]int{}, Began: t.began,
		Events: append([]Event{}, t.events[max(0, len(t.events)-maxEvents):]...)}
	if v.State != Executing && v.State != Starting {
		now = t.newest // what nobody executes ages no more
	}
	v.ElapsedS = max(now.Sub(t.began).Seconds(), 0)
	if left, ok := t.Left(now); ok && v.State == Executing {
		v.LeftS = seconds(left)
	}
	for _, n := range t.order {
		l := t.lanes[n].view(now, now.Sub(t.began), v.State)
		v.Trials, v.Done = v.Trials+l.Trials, v.Done+l.Done
		for o, n := range l.Outcomes {
			v.Outcomes[o] += n
		}
		v.Lanes = append(v.Lanes, l)
	}
	return v
}

func (t *Tracker) state(held bool) State {
	switch {
	case t.note == "" && held:
		return Starting
	case t.note == "":
		return NotBegun
	case strings.Contains(t.note, results.NoteInterrupted):
		return Stopped
	case strings.HasPrefix(t.note, results.NoteEnded):
		return Finished
	case held:
		return Executing
	}
	return ControlDied
}

func (l *laneState) view(now time.Time, elapsed time.Duration, run State) LaneView {
	v := LaneView{Name: Safe(l.Name), State: LaneState(Safe(string(l.state))), Reason: Safe(l.reason), Kernel: Safe(l.kernel), Boot: l.boot, Block: l.block, Boots: l.Boots,
		Booted: l.boots, Phase: Safe(l.phase), Doing: Safe(l.doing), Trials: l.Trials, Done: l.trials, Outcomes: maps.Clone(l.outcomes), Last: l.last}
	if run != Executing {
		return v
	}
	if !l.since.IsZero() && !l.state.Over() {
		v.DoingS = seconds(max(now.Sub(l.since), 0))
	}
	if left, ok := l.left(now, elapsed); ok {
		v.LeftS = seconds(left)
	}
	return v
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
