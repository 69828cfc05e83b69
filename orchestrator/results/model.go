package results

import (
	"slices"
	"strings"
	"time"

	"kernsweep/targets"
)

// Model is the state of a run, derived from its journal's records.
type Model struct {
	Lanes    []*LaneState // in the order they began
	Boots    []*BootState // in the order they were asked for
	Trials   []*Trial     // slots, in the order they were first tried
	Sessions []Session    // controllers that worked on the run
	Notes    []Record     // KindNote records

	lanes  map[string]*LaneState
	boots  map[bootKey]*BootState
	trials map[SlotKey]*Trial
	byCell map[Cell][]*Trial
}

type bootKey struct {
	lane   string
	number int
}

// Session is one controller process at work on the run.
type Session struct {
	Began       time.Time `json:"began"`
	Ended       time.Time `json:"ended,omitzero"` // zero: it is running, or died
	Interrupted bool      `json:"interrupted,omitempty"`
	Why         string    `json:"why,omitempty"` // it began: "resume", "rerun …"; "" = the run's first
	Note        string    `json:"note,omitempty"`

	from, to moment
	notes    int // that were written before it
}

// LaneState is where a lane stands.
type LaneState struct {
	Name        string    `json:"name"`
	Began       time.Time `json:"began,omitzero"`
	Ended       time.Time `json:"ended,omitzero"` // zero: not ended
	Quarantined bool      `json:"quarantined,omitempty"`
	Reason      string    `json:"reason,omitempty"`  // of the quarantine: its first cause
	ByHand      bool      `json:"by_hand,omitempty"` // the quarantine: a person gave the target up
	Paused      time.Time `json:"paused,omitzero"`   // since when somebody has it paused; zero: it is not
	PausedBy    string    `json:"paused_by,omitempty"`
	Taken       string    `json:"taken,omitempty"`  // how another controller got the target in the middle; "": it did not
	Cut         *Cut      `json:"cut,omitempty"`    // what its newest session left out; nil: nothing
	Enough      *Enough   `json:"enough,omitempty"` // boots = "auto" came to its end; nil: it did not

	knobs []KnobChange // set and not restored
}

// Owed are the knobs of the lane's target that are set and not restored, in the
// order they were set.
func (l *LaneState) Owed() []KnobChange { return l.knobs }

// BootState is a boot, judged or not.
type BootState struct {
	Lane   string
	Number int
	Asked  time.Time
	Judged time.Time // zero: not judged
	Phase  targets.Phase
	// Session that asked for it, from 1: an index into Model.Sessions plus 1.
	Session int
	// Result is nil for a boot that was never judged (running, or interrupted).
	Result *Boot

	from, to moment
}

// Load derives the state of a run. Records must be in the order of Seq; those
// that contradict earlier ones do no harm.
func Load(records []Record) *Model {
	m := newModel()
	for i := range records {
		m.add(&records[i])
	}
	m.finish()
	return m
}

func newModel() *Model {
	return &Model{lanes: map[string]*LaneState{}, boots: map[bootKey]*BootState{}, trials: map[SlotKey]*Trial{}, byCell: map[Cell][]*Trial{}}
}

func (m *Model) finish() {
	for _, t := range m.Trials {
		t.finish()
	}
}

// add takes a record over; it keeps nothing of r itself.
func (m *Model) add(r *Record) {
	if r.Lane != "" {
		m.lane(r.Lane)
	}
	switch r.Kind {
	case KindRun:
		m.addSession(r)
	case KindLane:
		m.addLane(r)
	case KindPhase:
		m.addPhase(r)
	case KindBoot:
		m.addBoot(r)
	case KindStarted, KindEnded, KindJudged, KindTask:
		m.addTrial(r)
	case KindKnob:
		m.addKnob(r)
	case KindCut:
		if r.Lane != "" {
			m.lane(r.Lane).Cut = r.Cut
		}
	case KindEnough:
		if r.Lane != "" && r.Enough != nil {
			m.lane(r.Lane).Enough = r.Enough
		}
	case KindNote:
		m.Notes = append(m.Notes, *r)
	}
}

func (m *Model) addSession(r *Record) {
	if strings.HasPrefix(r.Note, NoteBegan) || len(m.Sessions) == 0 {
		_, why, _ := strings.Cut(r.Note, ": ")
		m.Sessions = append(m.Sessions, Session{Began: r.At, Why: why, Note: r.Note, from: moment{r.At, r.UpMS, len(m.Sessions) + 1}, notes: len(m.Notes)})
		return
	}
	s := &m.Sessions[len(m.Sessions)-1]
	s.Ended, s.Note, s.to = r.At, r.Note, m.moment(r)
	s.Interrupted = strings.Contains(r.Note, NoteInterrupted) || r.Outcome == Interrupted
}

func (m *Model) lane(name string) *LaneState {
	l := m.lanes[name]
	if l == nil {
		l = &LaneState{Name: name}
		m.lanes[name] = l
		m.Lanes = append(m.Lanes, l)
	}
	return l
}

func (m *Model) addLane(r *Record) {
	l := m.lane(r.Lane)
	l.Paused, l.PausedBy = time.Time{}, ""
	switch {
	case strings.HasPrefix(r.Note, NotePaused):
		l.Paused, l.PausedBy = r.At, r.Reason
	case strings.HasPrefix(r.Note, NoteBegan): // also a rerun's: judged by the final state
		l.Began, l.Ended, l.Quarantined, l.Reason, l.Taken, l.Cut = r.At, time.Time{}, false, "", "", nil
		l.ByHand = false
	case strings.HasPrefix(r.Note, NoteQuarantined):
		if !l.Quarantined {
			l.Quarantined, l.Reason, l.ByHand = true, r.Reason, strings.HasPrefix(r.Note, NoteGivenUp)
		}
		l.Ended = r.At
	case strings.HasPrefix(r.Note, NoteEnded), strings.HasPrefix(r.Note, NoteInterrupted):
		l.Ended = r.At
		if strings.HasPrefix(r.Note, NoteInterrupted) {
			l.Taken = r.Reason
		}
	}
}

// moment is when a record was written, and in which session.
func (m *Model) moment(r *Record) moment { return moment{r.At, r.UpMS, max(1, len(m.Sessions))} }

func (m *Model) boot(r *Record) *BootState {
	k := bootKey{r.Lane, r.Boot.Number}
	b := m.boots[k]
	if b == nil {
		b = &BootState{Lane: k.lane, Number: k.number, Asked: r.At, Session: max(1, len(m.Sessions)), from: m.moment(r)}
		m.boots[k] = b
		m.Boots = append(m.Boots, b)
	}
	return b
}

func (m *Model) addPhase(r *Record) {
	if r.Boot == nil {
		return // whose phase it is cannot be said
	}
	m.boot(r).Phase = r.Phase
}

func (m *Model) addBoot(r *Record) {
	if r.Boot == nil {
		return
	}
	b := m.boot(r)
	b.Judged, b.Result, b.to = r.At, r.Boot, m.moment(r)
}

// Lane is a lane by its name, nil when the journal has none.
func (m *Model) Lane(name string) *LaneState { return m.lanes[name] }

// Boot is a boot of a lane by its number, nil when the journal has none.
func (m *Model) Boot(lane string, number int) *BootState { return m.boots[bootKey{lane, number}] }

// Slot is the slot's attempts, nil when it was never tried.
func (m *Model) Slot(s Slot) *Trial { return m.trials[m.key(s)] }

// TrialsOf are a cell's slots, in the order they were first tried.
func (m *Model) TrialsOf(c Cell) []*Trial { return m.byCell[c] }

// key fills in the block of a slot that carries none: that of its boot, else a
// number of its own.
func (m *Model) key(s Slot) SlotKey {
	k := s.Key()
	if k.Block == 0 {
		k.Block = -s.Boot
		if b := m.Boot(s.Target, s.Boot); b != nil && b.Result != nil && b.Result.Block != 0 {
			k.Block = b.Result.Block
		}
	}
	return k
}

func (m *Model) addTrial(r *Record) {
	if r.Slot == nil {
		return
	}
	key := m.key(*r.Slot)
	t := m.trials[key]
	if t == nil {
		t = &Trial{Slot: *r.Slot}
		t.Slot.Block = key.Block
		m.trials[key] = t
		m.Trials = append(m.Trials, t)
		m.byCell[key.Cell] = append(m.byCell[key.Cell], t)
	}
	a := t.attempt(r)
	if a.Session == 0 {
		a.Session = max(1, len(m.Sessions))
	}
	switch r.Kind {
	case KindStarted:
		a.Started, a.from = r.At, m.moment(r)
	case KindTask:
		if r.Task != nil {
			a.Tasks = append(a.Tasks, *r.Task)
		}
	case KindEnded:
		a.Ended, a.ended, a.How, a.to = r.At, r.Outcome, r.Note, m.moment(r)
		if r.Outcome != "" && r.Outcome != OK {
			a.Outcome, a.Reason = r.Outcome, r.Reason
		}
	case KindJudged:
		a.judge(r)
	}
	if r.Collect != "" {
		a.Collect = r.Collect
	}
}

func (m *Model) addKnob(r *Record) {
	if r.Knob == nil || r.Lane == "" {
		return
	}
	l := m.lane(r.Lane)
	l.knobs = slices.DeleteFunc(l.knobs, func(k KnobChange) bool { return k.Path == r.Knob.Path })
	if !r.Knob.Restored {
		l.knobs = append(l.knobs, *r.Knob)
	}
}
