package web

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/report"
)

// problemPage tells a person what went wrong.
type problemPage struct {
	head
	Detail string
	Runs   []string // that there are; only where one was not found
}

// problem answers with an error: a page for a browser, RFC 9457 for programs.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	s.problemWith(w, r, status, detail, nil)
}

func (s *Server) problemWith(w http.ResponseWriter, r *http.Request, status int, detail string, runs []string) {
	if r.Method == http.MethodHead || !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.page(w, r, status, "problem.tmpl", problemPage{head: s.head(r, http.StatusText(status)), Detail: detail, Runs: runs})
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	writeJSON(w, Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: live.SafeText(detail)})
}

// answer sends JSON.
func (s *Server) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	writeJSON(w, v)
}

func writeJSON(w io.Writer, v any) {
	e := json.NewEncoder(report.Inert(w))
	e.SetIndent("", "  ")
	_ = e.Encode(v) // who asked has gone
}

// quoted is a text of somebody else inside a sentence, not too long.
func quoted(s string) string {
	const most = 100
	s = live.SafeText(s)
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return `"` + strings.ReplaceAll(s, "\n", " ") + `"`
}
