package web

import (
	_ "embed" // openapi.json
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

const (
	runsAnswered   = 100
	eventsAnswered = 1000
)

//go:embed openapi.json
var description []byte

// apiRoutes are the JSON interface. openapi.json is generated from them, by the
// package's tests.
func (s *Server) apiRoutes() []route {
	before := parameter{"before", "string", "name of a run: only older ones"}
	limit := parameter{"limit", "integer", "how many at most"}
	after := parameter{"after", "integer", "only events with a greater seq"}
	return []route{
		{method: "GET", path: "/api/openapi.json", do: s.apiDescription, api: &operation{id: "describe", summary: "This description.", answer: map[string]any{}}},
		{method: "GET", path: "/api/runs", do: s.apiRuns, api: &operation{id: "listRuns", summary: "Runs, the newest first.", query: []parameter{before, limit}, answer: Runs{}}},
		{method: "GET", path: "/api/runs/{run}", do: s.apiRun, api: &operation{id: "getRun", summary: "How a run stands, lane by lane.", answer: RunDocument{}}},
		{method: "GET", path: "/api/runs/{run}/lanes/{lane}", do: s.apiLane, api: &operation{id: "getLane", summary: "A lane: how it stands, its boots, its newest events.", answer: LaneDocument{}}},
		{method: "GET", path: "/api/runs/{run}/report", do: s.apiReport, api: &operation{id: "getReport", summary: "What was measured and what follows from it, as `kernsweep report --format json` prints it.", schema: report.Schema()}},
		{method: "GET", path: "/api/runs/{run}/events", do: s.apiEvents, api: &operation{id: "listEvents", summary: "What happened, in order.", query: []parameter{after, limit}, answer: Events{}}},
		{method: "GET", path: "/api/targets", do: s.apiTargets, api: &operation{id: "listTargets", summary: "Targets, and who uses them.", answer: Targets{}}},
		{method: "GET", path: "/api/leases", do: s.apiLeases, api: &operation{id: "listLeases", summary: "Who uses what on this machine.", answer: Leases{}}},
		{method: "POST", path: "/api/runs/{run}/control", do: s.apiControl, control: true, api: &operation{id: "steerRun",
			summary: "Steer a run; only where the page was started with --allow-control.", body: ControlRequest{}, answer: ControlAnswer{}}},
	}
}

func (s *Server) apiDescription(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description) // who asked has gone
}

// number of a query, or what stands for one that is not given.
func number(r *http.Request, name string, otherwise, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || most > 0 && (n > most || n == 0) {
		return 0, errors.New(name + "=" + quoted(text) + " is no number that fits here")
	}
	return n, nil
}

func (s *Server) apiRuns(w http.ResponseWriter, r *http.Request) {
	limit, err := number(r, "limit", runsAnswered, 10*runsAnswered)
	if err != nil {
		s.problem(w, r, http.StatusBadRequest, err.Error())
		return
	}
	list, more, err := s.statuses(r.URL.Query().Get("before"), limit)
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	out := Runs{Runs: list}
	if more != "" {
		out.More = "/api/runs?before=" + escapeQuery(more) + "&limit=" + strconv.Itoa(limit)
	}
	s.answer(w, out)
}

func (s *Server) apiRun(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	_, m := s.view(run)
	if m.err != nil {
		s.problem(w, r, http.StatusInternalServerError, m.err.Error())
		return
	}
	s.answer(w, RunDocument{s.book.look(run.Dir()), m.view})
}

func (s *Server) apiLane(w http.ResponseWriter, r *http.Request) {
	run, f, _, l, ok := s.findLane(w, r)
	if !ok {
		return
	}
	name := l.Name
	boots, err := laneBoots(run, name)
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	s.answer(w, LaneDocument{run.Name(), l, boots, f.after(0, name, eventsShown)})
}

func (s *Server) apiReport(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	body, err := s.reports.write(run, "json")
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, "the report of run "+run.Name()+" cannot be made: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // who asked has gone
}

func (s *Server) apiEvents(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	after, err := number(r, "after", 0, 0)
	var limit int
	if err == nil {
		limit, err = number(r, "limit", eventsAnswered, eventsAnswered)
	}
	if err != nil {
		s.problem(w, r, http.StatusBadRequest, err.Error())
		return
	}
	out, err := eventsOf(run, after, limit)
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	s.answer(w, out)
}

// eventsOf reads a journal from its start: old events are not kept anywhere else.
func eventsOf(run *results.Run, after, limit int) (Events, error) {
	recs, err := run.Follow().Next()
	if err != nil {
		return Events{}, err
	}
	out := Events{Events: []live.Event{}}
	for _, rec := range recs {
		e, ok := live.EventOf(rec)
		if !ok || rec.Seq <= after {
			continue
		}
		if len(out.Events) == limit {
			out.More = true
			break
		}
		out.Events = append(out.Events, e)
	}
	return out, nil
}

func (s *Server) apiTargets(w http.ResponseWriter, _ *http.Request) { s.answer(w, s.targets()) }

func (s *Server) apiLeases(w http.ResponseWriter, _ *http.Request) { s.answer(w, s.leases()) }

// apiControl takes JSON only: no form of another page can send that.
func (s *Server) apiControl(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(media) != "application/json" {
		s.problem(w, r, http.StatusUnsupportedMediaType, "send Content-Type: application/json")
		return
	}
	var c ControlRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		s.problem(w, r, http.StatusBadRequest, "the request could not be read: "+err.Error())
		return
	}
	req := control.Request{Action: control.Action(c.Action), Lane: c.Lane, Kernel: c.Kernel, Why: c.Why}
	if err := s.permitted(r, run, &req); err != nil {
		s.problem(w, r, http.StatusBadRequest, err.Error())
		return
	}
	said, err := s.ask(r, run, req)
	if err != nil {
		s.problem(w, r, http.StatusConflict, err.Error())
		return
	}
	s.answer(w, ControlAnswer{said})
}

// apiPage shows a person what programs can ask for.
type apiPage struct {
	head
	Routes []apiLine
}

type apiLine struct{ Method, Path, Summary, Query string }

func (s *Server) showAPI(w http.ResponseWriter, r *http.Request) {
	p := apiPage{head: s.head(r, "For programs")}
	for _, rt := range s.apiRoutes() {
		l := apiLine{Method: rt.method, Path: rt.path, Summary: rt.api.summary}
		for _, q := range rt.api.query {
			l.Query += "?" + q.name + "= " + q.about + ". "
		}
		p.Routes = append(p.Routes, l)
	}
	s.page(w, r, http.StatusOK, "api.tmpl", p)
}
