package web

import (
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

const (
	runsShown   = 25 // on a page
	needsShown  = 10
	liveLooked  = 200 // newest runs among which live ones are looked for
	targetWords = "target "
)

// runsPage is the first page.
type runsPage struct {
	head
	Live    []liveRun
	Needs   []Status
	Further int // that need somebody, on this page
	Runs    []Status
	Older   string // the run to ask with for older ones
	Before  string // not the newest page
	Targets Targets
	Leases  Leases
	Runs0   string // where the runs are, when there are none
}

// liveRun is a run that goes on.
type liveRun struct {
	View  live.View
	Cells []cell
	Lanes []laneRow
}

func (s *Server) showRuns(w http.ResponseWriter, r *http.Request) {
	before := r.URL.Query().Get("before")
	list, older, err := s.statuses(before, runsShown)
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	p := runsPage{head: s.head(r, "Runs"), Runs: list, Older: older, Before: before}
	if before != "" {
		s.page(w, r, http.StatusOK, "runs.tmpl", p)
		return
	}
	for _, st := range list {
		if len(st.Needs) == 0 || st.Live() {
			continue
		}
		if len(p.Needs) < needsShown {
			p.Needs = append(p.Needs, st)
		} else {
			p.Further++
		}
	}
	for _, v := range s.liveViews() {
		p.Live = append(p.Live, liveRun{v, runCells(v), laneRows(v)})
	}
	p.Targets, p.Leases = s.targets(), s.leases()
	if len(list) == 0 {
		p.Runs0 = s.src.Runs
	}
	s.page(w, r, http.StatusOK, "runs.tmpl", p)
}

// liveRuns are the runs that go on, the newest first.
func (s *Server) liveRuns() []*followed {
	list, _, err := s.statuses("", liveLooked)
	if err != nil {
		return nil // the page says so where it lists the runs
	}
	var out []*followed
	for _, st := range list {
		if !st.Live() {
			continue
		}
		run, err := results.Open(filepath.Join(s.src.Runs, st.Run))
		if err != nil {
			continue // removed just now
		}
		if f, m := s.view(run); m.err == nil && !m.over() {
			out = append(out, f)
		}
	}
	return out
}

func (s *Server) liveViews() []live.View {
	var out []live.View
	for _, f := range s.liveRuns() {
		out = append(out, f.moment().view)
	}
	return out
}

// targetsPage shows what there is and who uses it.
type targetsPage struct {
	head
	Targets Targets
	Leases  Leases
}

func (s *Server) showTargets(w http.ResponseWriter, r *http.Request) {
	s.page(w, r, http.StatusOK, "targets.tmpl", targetsPage{head: s.head(r, "Targets and leases"), Targets: s.targets(), Leases: s.leases()})
}

func (s *Server) leases() Leases {
	list, err := s.src.Leases()
	if err != nil {
		return Leases{Leases: []Lease{}, Note: "the leases cannot be read: " + err.Error()}
	}
	if list == nil {
		list = []Lease{}
	}
	return Leases{Leases: list}
}

// targets are those of the configuration, and those that runs have lanes for.
func (s *Server) targets() Targets {
	list, err := s.src.Targets()
	out := Targets{Targets: slices.Clone(list)}
	if err != nil {
		out.Note = err.Error()
	}
	if out.Targets == nil {
		out.Targets = []Target{}
	}
	for i := range out.Targets {
		out.Targets[i].State, out.Targets[i].Known = "free", true
	}
	for _, l := range s.leases().Leases {
		if name, ok := strings.CutPrefix(l.What, targetWords); ok {
			t := out.named(name)
			t.State, t.By, t.Run = "leased", l.By, l.Run
			if l.State != "held" {
				t.State = "lease in doubt"
				t.By += " (" + l.State + ")"
			}
		}
	}
	for _, v := range s.liveViews() {
		for _, l := range v.Lanes {
			if l.State.Over() {
				continue
			}
			t := out.named(l.Name)
			t.State, t.Run, t.Doing = string(l.State), v.Run, strings.TrimPrefix(l.Kernel+": "+l.Doing, ": ")
		}
	}
	return out
}

// named is a target of the list; one that the configuration does not have is added.
func (t *Targets) named(name string) *Target {
	i := slices.IndexFunc(t.Targets, func(x Target) bool { return x.Name == name })
	if i < 0 {
		i = len(t.Targets)
		t.Targets = append(t.Targets, Target{Name: name})
	}
	return &t.Targets[i]
}

// errNoFile is one that is not there, or not to be shown.
var errNoFile = errors.New("there is no such file in this run")
