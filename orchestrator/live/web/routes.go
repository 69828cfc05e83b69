package web

import (
	"net/http"
	"slices"
	"strings"
)

// route is one thing that can be asked for.
type route struct {
	method, path string
	do           http.HandlerFunc
	open         bool // also without a token
	stream       bool
	control      bool // only with --allow-control
	api          *operation
}

// operation describes a route of the JSON interface; openapi.json is made of it.
type operation struct {
	id, summary string
	query       []parameter
	body        any    // zero value of what is posted; nil: nothing
	answer      any    // zero value of what is answered
	schema      []byte // of the answer, where it is no type of this package
}

// parameter of a query.
type parameter struct {
	name, kind, about string // kind: a JSON Schema type
}

func (r route) pattern() string {
	if r.path == "/" {
		return r.method + " /{$}"
	}
	return r.method + " " + r.path
}

// routes is everything there is.
func (s *Server) routes() []route {
	return slices.Concat([]route{
		{method: "GET", path: "/", do: s.showRuns},
		{method: "GET", path: "/targets", do: s.showTargets},
		{method: "GET", path: "/runs/{run}", do: s.showRun},
		{method: "GET", path: "/runs/{run}/events", do: s.streamRun, stream: true},
		{method: "GET", path: "/runs/{run}/report", do: s.showReport},
		{method: "GET", path: "/runs/{run}/files/{path...}", do: s.showFile},
		{method: "GET", path: "/runs/{run}/raw/{path...}", do: s.rawFile},
		{method: "GET", path: "/runs/{run}/lanes/{lane}", do: s.showLane},
		{method: "GET", path: "/runs/{run}/lanes/{lane}/events", do: s.streamRun, stream: true},
		{method: "GET", path: "/runs/{run}/lanes/{lane}/console/stream", do: s.streamConsole, stream: true},
		{method: "GET", path: "/runs/{run}/control", do: s.confirm, control: true},
		{method: "POST", path: "/runs/{run}/control", do: s.act, control: true},
		{method: "GET", path: "/login", do: s.showLogin, open: true},
		{method: "POST", path: "/login", do: s.login, open: true},
		{method: "POST", path: "/logout", do: s.logout},
		{method: "GET", path: "/static/{name}", do: s.serveStatic, open: true},
		{method: "GET", path: "/metrics", do: s.metrics.serve},
		{method: "GET", path: "/api", do: s.showAPI},
	}, s.apiRoutes())
}

func (s *Server) routing() *http.ServeMux {
	mux := http.NewServeMux()
	s.opened, s.streaming = map[string]bool{}, map[string]bool{}
	for _, r := range s.routes() {
		s.opened[r.pattern()], s.streaming[r.pattern()] = r.open, r.stream
		do := r.do
		if r.control && s.src.Ask == nil {
			do = func(w http.ResponseWriter, r *http.Request) {
				s.problem(w, r, http.StatusForbidden, "this page is read-only: kernsweep serve was started without --allow-control")
			}
		}
		mux.HandleFunc(r.pattern(), do)
	}
	mux.HandleFunc("/", s.nothing)
	return mux
}

// nothing answers for addresses and methods that there are not.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := s.mux.Handler(other); pattern != "/" && m != r.Method {
			allowed = append(allowed, m)
		}
	}
	if allowed != nil {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.problem(w, r, http.StatusMethodNotAllowed, quoted(r.Method)+" is not for this address: "+strings.Join(allowed, " and ")+" is")
		return
	}
	s.problem(w, r, http.StatusNotFound, "there is nothing at "+quoted(r.URL.Path)+": the runs are at /, the JSON interface is described at /api/openapi.json")
}
