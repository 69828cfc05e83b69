package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"kernsweep/orchestrator/live"
)

//go:embed html static
var files embed.FS

// asset is a file of static/, under an address that changes with it.
type asset struct {
	body    []byte
	media   string
	address string
}

func assets() (map[string]asset, error) {
	out := map[string]asset{}
	for name, media := range map[string]string{"style.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"} {
		b, err := fs.ReadFile(files, "static/"+name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		out[name] = asset{b, media, "/static/" + name + "?v=" + hex.EncodeToString(sum[:8])}
	}
	return out, nil
}

func (s *Server) serveStatic(w http.ResponseWriter, r *http.Request) {
	a, ok := s.static[r.PathValue("name")]
	if !ok {
		s.nothing(w, r)
		return
	}
	w.Header().Set("Content-Type", a.media)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	if r.URL.RequestURI() != a.address { // not what a page of this version asks for
		w.Header().Set("Cache-Control", "no-cache")
	}
	_, _ = w.Write(a.body) // who asked has gone
}

// head is what every page has.
type head struct {
	Title, Place  string
	Made          string // when
	Style, Script string
	LogOut        bool
	Steer         bool
}

func (s *Server) head(r *http.Request, title string) head {
	return head{Title: title, Place: r.URL.Path, Made: s.now().Local().Format("2006-01-02 15:04:05 MST"), Style: s.static["style.css"].address,
		Script: s.static["page.js"].address, LogOut: s.opt.Token != "" && s.session(r), Steer: s.src.Ask != nil}
}

func (s *Server) templates() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"run":   runAddress,
		"lane":  laneAddress,
		"file":  fileAddress,
		"clock": func(t time.Time) string { return clock(t, s.now()) },
		"ago":   func(t time.Time) string { return ago(s.now().Sub(t)) },
		"iso":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"count": live.Stand,
		"lines": func(l []string) string { return strings.Join(l, "\n") },
	}).ParseFS(files, "html/*.tmpl")
}

func runAddress(run string) string        { return "/runs/" + url.PathEscape(run) }
func laneAddress(run, lane string) string { return runAddress(run) + "/lanes/" + url.PathEscape(lane) }

// fileAddress of a file below a run directory; kind: files, or raw.
func fileAddress(run, kind, file string) string {
	parts := strings.Split(path.Clean("/"+file), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return runAddress(run) + "/" + kind + strings.Join(parts, "/")
}

// page sends a page. Characters that hide or turn text are made visible in all of
// it, wherever somebody else's text stands: markup has none.
func (s *Server) page(w http.ResponseWriter, r *http.Request, status int, name string, v any) {
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, name, v); err != nil {
		s.opt.Log("a page could not be made: " + live.SafeText(err.Error()))
		http.Error(w, "this page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(live.SafeText(b.String()))) // who asked has gone
}
