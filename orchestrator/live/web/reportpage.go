package web

import (
	"bytes"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

const (
	reportsKept = 4       // written ones
	reportMost  = 8 << 20 // bytes of one that is kept
)

// reports makes reports one at a time, for they may be large, and keeps the
// newest few.
type reports struct {
	command string

	mu   sync.Mutex
	kept []written // the newest last
}

type written struct {
	dir, format string
	seen        stamp
	body        []byte
}

// write gives a report of a run, as `kernsweep report --format` prints it.
func (p *reports) write(run *results.Run, format string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := stampOf(run)
	for _, k := range p.kept {
		if k.dir == run.Dir() && k.format == format && k.seen == seen {
			return k.body, nil
		}
	}
	var b bytes.Buffer
	if err := report.Write(&b, run, report.Options{Format: format, Width: 100, Kernsweep: p.command}); err != nil {
		return nil, err
	}
	if b.Len() <= reportMost {
		p.kept = append(slices.DeleteFunc(p.kept, func(k written) bool { return k.dir == run.Dir() && k.format == format }), written{run.Dir(), format, seen, b.Bytes()})
		p.kept = p.kept[max(0, len(p.kept)-reportsKept):]
	}
	return b.Bytes(), nil
}

// ownPolicy finds what the report says that it may load.
var ownPolicy = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`)

// showReport sends the report; in other formats than html, to be stored.
func (s *Server) showReport(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	format := r.URL.Query().Get("format")
	if format == "" {
		format = "html"
	}
	if !slices.Contains(report.Formats(), format) {
		s.problem(w, r, http.StatusNotFound, "there is no report format "+quoted(format)+"; there are: "+strings.Join(report.Formats(), ", "))
		return
	}
	body, err := s.reports.write(run, format)
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, "the report of run "+run.Name()+" cannot be made: "+err.Error())
		return
	}
	if format != "html" {
		store(w, run.Name()+"."+format, "text/plain; charset=utf-8")
		_, _ = w.Write(body) // who asked has gone
		return
	}
	policy := "default-src 'none'"
	if m := ownPolicy.FindSubmatch(body[:min(len(body), 4<<10)]); m != nil {
		policy = html.UnescapeString(string(m[1]))
	}
	w.Header().Set("Content-Security-Policy", policy+"; frame-ancestors 'none'; sandbox")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body) // who asked has gone
}
