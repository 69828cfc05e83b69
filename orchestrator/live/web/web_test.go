package web

import (
	"net/http"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
)

// The pages tell what there is: of live runs, past ones, and ones that cannot be read.
func TestPages(t *testing.T) {
	l := newLab(t)
	l.past(3)
	n := l.newNight("tonight", 4, "box", "router")
	n.boots("box", "cfs", 1, results.OK)
	n.begins("box", "cfs", 1, 1)
	n.boots("router", "bfs", 1, results.BootFailed, "VFS: Unable to mount root fs")
	s := l.page(Options{})
	name := n.run.Name()
	for path, wants := range map[string][]string{
		"/":                                      {name, "Needs somebody", "kernsweep rerun ", "router", "Read-only."},
		"/targets":                               {"router", "box", "running"},
		"/runs/" + name:                          {"cfs: iperf.to_target #1", "0 of 16", "boot 001 bfs: boot-failed", "Report", "As of"},
		"/runs/" + name + "/lanes/router":        {"Boot 1", "Unable to mount root fs", "boot-failed", "console"},
		"/runs/" + name + "/lanes/box":           {"hello from box", "proven"},
		"/runs/" + name + "/files/":              {"journal.jsonl", "plan.json", "box"},
		"/runs/" + name + "/files/box/boot-001/": {"console.log"},
		"/runs/" + name + "/files/box/boot-001/console.log": {"Linux version 6.1\nhello from box"},
		"/runs/" + name + "/report":                         {"kernsweep: sweep tonight"},
		"/api":                                              {"/api/runs/{run}"},
	} {
		w := get(s, path, browser)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d\n%s", path, w.Code, w.Body)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s does not say %q:\n%s", path, want, w.Body)
			}
		}
	}
	if w := get(s, "/runs/latest/files/run.json"); w.Code != http.StatusFound || w.Header().Get("Location") != "/runs/"+name+"/files/run.json" {
		t.Errorf("latest: %d %s", w.Code, w.Header().Get("Location"))
	}
	if w := get(s, "/runs/nosuch", browser); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "/runs/"+name) {
		t.Errorf("a run that is not there: %d\n%s", w.Code, w.Body)
	}
}
