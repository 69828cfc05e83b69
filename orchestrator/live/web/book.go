package web

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

const (
	unreadable = "unreadable" // state of a run
	namesShown = 20           // of runs, where one was not found
)

// book remembers how runs stand, until something is written to them.
type book struct {
	status func(run *results.Run) (Status, error)

	mu    sync.Mutex
	pages map[string]bookmark // by directory
}

type bookmark struct {
	seen   stamp
	status Status
}

// stamp changes when a run does.
type stamp struct {
	id    string
	size  int64
	mtime time.Time
	held  bool
}

func stampOf(run *results.Run) stamp {
	_, held := run.HeldBy()
	st := stamp{id: run.Meta.ID, held: held}
	if info, err := os.Stat(filepath.Join(run.Dir(), "journal.jsonl")); err == nil {
		st.size, st.mtime = info.Size(), info.ModTime()
	}
	return st
}

// look is how the run in a directory stands; one that cannot be read says why.
func (b *book) look(dir string) Status {
	run, err := results.Open(dir)
	if err != nil {
		return Status{Run: filepath.Base(dir), State: unreadable, Notes: []string{err.Error()}}
	}
	seen := stampOf(run)
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.pages[dir]; ok && p.seen == seen {
		return p.status
	}
	st, err := b.status(run)
	if err != nil {
		st = Status{Run: run.Name(), Sweep: run.Meta.Sweep, Created: run.Meta.Created, State: unreadable, Notes: []string{err.Error()}}
	}
	b.pages[dir] = bookmark{seen, st}
	return st
}

// keep forgets the runs that are not there any more.
func (b *book) keep(dirs []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pages) <= len(dirs) {
		return
	}
	there := map[string]bool{}
	for _, d := range dirs {
		there[d] = true
	}
	for d := range b.pages {
		if !there[d] {
			delete(b.pages, d)
		}
	}
}

// statuses are the newest runs older than before ("": than none), newest first, and
// the name to ask with for more.
func (s *Server) statuses(before string, most int) (list []Status, more string, err error) {
	names, err := results.List(s.src.Runs)
	if err != nil {
		return nil, "", err
	}
	var dirs []string
	for _, n := range names {
		dirs = append(dirs, filepath.Join(s.src.Runs, n))
	}
	s.book.keep(dirs)
	if i := slices.Index(names, before); i >= 0 {
		dirs = dirs[:i]
	}
	list = []Status{}
	for i := len(dirs) - 1; i >= 0 && len(list) < most; i-- {
		list = append(list, s.book.look(dirs[i]))
		if i > 0 && len(list) == most {
			more = filepath.Base(dirs[i])
		}
	}
	return list, more, nil
}

// findRun opens the run that the address names, or answers that there is none.
func (s *Server) findRun(w http.ResponseWriter, r *http.Request) (*results.Run, bool) {
	name := r.PathValue("run")
	names, err := results.List(s.src.Runs)
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, "the runs cannot be listed: "+err.Error())
		return nil, false
	}
	slices.Reverse(names)
	if name == "latest" && len(names) > 0 && r.Method != http.MethodPost {
		http.Redirect(w, r, strings.Replace(r.URL.EscapedPath(), "/runs/latest", runAddress(names[0]), 1), http.StatusFound)
		return nil, false
	}
	if !slices.Contains(names, name) {
		text := "there is no run " + quoted(name) + "; "
		shown := names[:min(namesShown, len(names))]
		switch {
		case len(names) == 0:
			text += "there are none yet: kernsweep run SWEEP makes one"
		case len(shown) < len(names):
			text += "the newest are: " + strings.Join(shown, ", ")
		default:
			text += "there are: " + strings.Join(shown, ", ")
		}
		s.problemWith(w, r, http.StatusNotFound, text, shown)
		return nil, false
	}
	run, err := results.Open(filepath.Join(s.src.Runs, name))
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, err.Error())
		return nil, false
	}
	return run, true
}

// view is how a run stands now.
func (s *Server) view(run *results.Run) (*followed, moment) {
	f := s.hub.follow(run)
	f.look(lookAgain)
	return f, f.moment()
}

// laneOf is a lane of a view by its name as the view tells it.
func laneOf(v live.View, name string) (live.LaneView, bool) {
	i := slices.IndexFunc(v.Lanes, func(l live.LaneView) bool { return l.Name == name })
	if i < 0 {
		return live.LaneView{}, false
	}
	return v.Lanes[i], true
}
