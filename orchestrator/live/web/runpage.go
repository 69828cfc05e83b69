package web

import (
	"net/http"
	"strings"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

const eventsShown = 50 // on a page

// runPage is a run, live or past.
type runPage struct {
	head
	Run       string
	Meta      results.RunMeta
	Status    Status
	View      live.View
	Shape     string
	Live      bool
	Cells     []cell
	Lanes     []laneRow
	Events    []line
	Last      int // seq of the newest event
	Formats   []string
	Actions   []actionLink
	Unwatched string // why its journal cannot be followed
}

func (s *Server) showRun(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	f, m := s.view(run)
	p := runPage{head: s.head(r, "Run "+run.Name()), Run: run.Name(), Meta: run.Meta, Status: s.book.look(run.Dir()), View: m.view, Shape: shape(m.view),
		Live: m.err == nil && !m.over(), Cells: runCells(m.view), Lanes: laneRows(m.view)}
	if m.err != nil {
		p.Unwatched = m.err.Error()
	}
	events := f.after(0, "", eventsShown)
	p.Events, p.Last = newestFirst(events, s.now()), lastSeq(events)
	for _, name := range report.Formats() {
		if name != "html" {
			p.Formats = append(p.Formats, name)
		}
	}
	if p.Live && s.src.Ask != nil {
		p.Actions = runActions(run.Name())
	}
	s.page(w, r, http.StatusOK, "run.tmpl", p)
}

// lanePage is a lane of a run.
type lanePage struct {
	head
	Run     string
	Row     laneRow
	Shape   string
	Live    bool
	Console bool // it may have one
	Boots   []BootSummary
	Hidden  int // earlier boots
	Events  []line
	Last    int
	Actions []actionLink
	Unread  string // why its boots are not known
}

func (s *Server) showLane(w http.ResponseWriter, r *http.Request) {
	run, f, m, l, ok := s.findLane(w, r)
	if !ok {
		return
	}
	name := l.Name
	one := only(m.view, name)
	events := f.after(0, name, eventsShown)
	p := lanePage{head: s.head(r, "Lane "+name+" of run "+run.Name()), Run: run.Name(), Row: laneRows(one)[0], Shape: shape(one),
		Live: m.err == nil && !m.over(), Events: newestFirst(events, s.now()), Last: lastSeq(events)}
	p.Console = p.Live && consoleName(name)
	boots, err := laneBoots(run, name)
	if err != nil {
		p.Unread = err.Error()
	}
	p.Boots, p.Hidden = boots[:min(len(boots), bootsShown)], max(0, len(boots)-bootsShown)
	withTails(run, p.Boots)
	if p.Live && s.src.Ask != nil && !l.State.Over() {
		p.Actions = laneActions(run.Name(), l)
	}
	s.page(w, r, http.StatusOK, "lane.tmpl", p)
}

// findLane is the lane that a request names, or it is answered with what there is.
func (s *Server) findLane(w http.ResponseWriter, r *http.Request) (run *results.Run, f *followed, m moment, l live.LaneView, ok bool) {
	if run, ok = s.findRun(w, r); !ok {
		return
	}
	f, m = s.view(run)
	name := r.PathValue("lane")
	if l, ok = laneOf(m.view, name); !ok {
		s.noLane(w, r, m.view, name)
	}
	return
}

// noLane answers that a run has no such lane.
func (s *Server) noLane(w http.ResponseWriter, r *http.Request, v live.View, name string) {
	var have []string
	for _, l := range v.Lanes {
		have = append(have, l.Name)
	}
	text := "run " + v.Run + " has no lane " + quoted(name)
	if have != nil {
		text += "; it has " + strings.Join(have, ", ")
	}
	s.problem(w, r, http.StatusNotFound, text)
}
