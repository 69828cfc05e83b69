package web

import (
	"net/http"
	"slices"
	"strings"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

const longestText = 250 // bytes, of what the journal gets

// actionLink leads to the question whether somebody is sure.
type actionLink struct {
	Label, Address string
	Grave          bool // it cannot be taken back
}

// confirmPage asks whether somebody is sure; or tells what came of it.
type confirmPage struct {
	head
	Run, Lane, Kernel, Action string
	What, Means               string
	Key                       string
	Back                      string
	Grave                     bool
	Said                      string // it was done
	Failed                    string // it was not
}

// offered are the actions that the page has. To quit at once is for whoever sits
// at the controller.
func offered() []control.Action {
	return slices.DeleteFunc(control.Actions(), func(a control.Action) bool { return a == control.StopNow })
}

// words for an action: what the button says beside its lane, what it means, and
// whether it cannot be taken back.
func words(a control.Action, kernel string) (label, means string, grave bool) {
	switch a {
	case control.Pause:
		return "Pause", "No further boot or trial begins in this lane until it goes on. What runs now ends as it would.", false
	case control.GoOn:
		return "Go on", "Its pause ends.", false
	case control.SkipTrial:
		return "Skip the trial", "The trial that runs, or else the next one, ends as skipped.", true
	case control.SkipKernel:
		if kernel == "" {
			kernel = "the kernel that runs"
		}
		return "Skip " + kernel, "The boot ends, and what is left of this kernel in this lane is left out.", true
	case control.Quarantine:
		return "Quarantine", "The target is given up: what is left of its lane is skipped. Other lanes go on.", true
	case control.Stop:
		return "Stop the run", "Every lane ends in good order, as with Ctrl-C once. kernsweep resume goes on later.", true
	}
	return string(a), "", true
}

func link(run string, a control.Action, lane, kernel string) actionLink {
	label, _, grave := words(a, kernel)
	address := runAddress(run) + "/control?action=" + escapeQuery(string(a))
	if lane != "" {
		address += "&lane=" + escapeQuery(lane)
	}
	if kernel != "" {
		address += "&kernel=" + escapeQuery(kernel)
	}
	return actionLink{label, address, grave}
}

func runActions(run string) []actionLink { return []actionLink{link(run, control.Stop, "", "")} }

func laneActions(run string, l live.LaneView) []actionLink {
	var out []actionLink
	for _, a := range offered() {
		kernel := ""
		if a == control.SkipKernel {
			kernel = l.Kernel
		}
		if a.OfLane() && (a != control.GoOn || l.State == live.Paused) && (a != control.Pause || l.State != live.Paused) {
			out = append(out, link(run, a, l.Name, kernel))
		}
	}
	return out
}

// confirm shows what an action means, and a form that asks for it.
func (s *Server) confirm(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	q := r.URL.Query()
	req := control.Request{Action: control.Action(q.Get("action")), Lane: q.Get("lane"), Kernel: q.Get("kernel")}
	if err := s.permitted(r, run, &req); err != nil {
		s.problem(w, r, http.StatusBadRequest, err.Error())
		return
	}
	p := s.confirmPage(r, run, req)
	p.Key = s.formKey(w, r)
	s.page(w, r, http.StatusOK, "control.tmpl", p)
}

func (s *Server) confirmPage(r *http.Request, run *results.Run, req control.Request) confirmPage {
	what, means, grave := words(req.Action, req.Kernel)
	if req.Lane != "" {
		what += ", lane " + req.Lane
	}
	p := confirmPage{head: s.head(r, what+"?"), Run: run.Name(), Lane: req.Lane, Kernel: req.Kernel, Action: string(req.Action), What: what,
		Means: means, Grave: grave, Back: runAddress(run.Name())}
	if req.Lane != "" {
		p.Back = laneAddress(run.Name(), req.Lane)
	}
	return p
}

// act asks the controller for what a form of ours was sent for.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	if err := r.ParseForm(); err != nil {
		s.problem(w, r, http.StatusBadRequest, "the form could not be read: "+err.Error())
		return
	}
	if !s.formIsOurs(r) {
		s.problem(w, r, http.StatusForbidden, "this form is too old, or not from this page: go back to run "+run.Name()+" and try again")
		return
	}
	f := r.PostForm
	req := control.Request{Action: control.Action(f.Get("action")), Lane: f.Get("lane"), Kernel: f.Get("kernel"), Why: f.Get("why")}
	if err := s.permitted(r, run, &req); err != nil {
		s.problem(w, r, http.StatusBadRequest, err.Error())
		return
	}
	p := s.confirmPage(r, run, req)
	status := http.StatusOK
	said, err := s.ask(r, run, req)
	if err != nil {
		p.Failed, status, p.Title = err.Error(), http.StatusConflict, "Not done"
	} else {
		p.Said, p.Title = said, "Done"
	}
	s.page(w, r, status, "control.tmpl", p)
}

// permitted refuses what the page has no button for.
func (s *Server) permitted(r *http.Request, run *results.Run, req *control.Request) error {
	req.By = asker(r)
	if !slices.Contains(offered(), req.Action) {
		return &badRequest{"there is no action " + quoted(string(req.Action)) + " here"}
	}
	if req.Lane != "" {
		_, m := s.view(run)
		if _, ok := laneOf(m.view, req.Lane); !ok {
			return &badRequest{"run " + run.Name() + " has no lane " + quoted(req.Lane)}
		}
	}
	req.Why = shortened(strings.Join(strings.Fields(live.SafeText(req.Why)), " "))
	return req.Check()
}

type badRequest struct{ text string }

func (e *badRequest) Error() string { return e.text }

// ask asks the run's controller, and keeps a line about it.
func (s *Server) ask(r *http.Request, run *results.Run, req control.Request) (said string, err error) {
	said, err = s.src.Ask(r.Context(), run, req)
	text := "run " + run.Name() + ": " + string(req.Action)
	if req.Lane != "" {
		text += " of lane " + quoted(req.Lane)
	}
	text += ", asked for by " + req.By + ": "
	if err != nil {
		text += "not done: " + err.Error()
	} else {
		text += said
	}
	s.opt.Log(live.SafeText(text))
	return said, err
}

// asker is who asks, for the journal.
func asker(r *http.Request) string {
	who := "somebody"
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		who = quoted(r.TLS.PeerCertificates[0].Subject.CommonName)
	}
	return shortened(who + " at " + client(r) + ", kernsweep serve")
}

func shortened(s string) string {
	if len(s) <= longestText {
		return s
	}
	return strings.ToValidUTF8(s[:longestText], "") // not half a character
}
