package web

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// shown are pages of every kind: a live run of many lanes, many past runs, hostile
// names, and errors.
func shown(t *testing.T) (l *lab, s *Server, pages map[string]string) {
	t.Helper()
	l = newLab(t)
	l.steer()
	l.src.Targets = func() ([]Target, error) {
		return []Target{
			{Name: "wl500gpv2", Class: "openwrt", Arch: "mipsle", Address: "192.168.1.1:22", Boot: "cfe", Power: "http", Console: "tcp", Rehearsal: &Rehearsal{When: time.Now().Add(-26 * time.Hour), OK: true}},
			{Name: "ar2317", Class: "openwrt", Arch: "mips", Address: "192.168.1.2:22 via labpi", Boot: "redboot", Console: "serial", Rehearsal: &Rehearsal{When: time.Now().Add(-90 * time.Hour), Text: "power cycle: no answer from http://plug2/on within 30s"}},
			{Name: "virtual", Arch: "amd64", Address: "127.0.0.1:0", Boot: "qemu", Virtual: true},
		}, nil
	}
	l.src.Leases = func() ([]Lease, error) {
		return []Lease{{What: "target ar2317", By: "bob (process 4711 on lab1, kernsweep boot ar2317 bfs)", Since: time.Now().Add(-time.Hour), State: "held"},
			{What: "lan0", By: "eve (process 12 on lab1, no run)", Since: time.Now().Add(-30 * time.Hour), State: "left by a process that is gone"}}, nil
	}
	l.past(50)
	var lanes []string
	for i := range 30 {
		lanes = append(lanes, fmt.Sprintf("router%02d", i+1))
	}
	n := l.newNight("tonight", 6, lanes...)
	for i, lane := range lanes {
		switch {
		case i%7 == 3:
			n.boots(lane, "bfs", 1, results.BootFailed, "VFS: Cannot open root device", "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)")
		case i%7 == 5:
			n.add(results.Record{Lane: lane, Kind: results.KindLane, Note: results.NoteQuarantined, Reason: "no route to host, three times in a row"})
		case i%7 == 6:
			n.boots(lane, "cfs", 1, results.OK)
			n.add(results.Record{Lane: lane, Kind: results.KindLane, Note: results.NotePaused, Reason: "bob wants to look at it"})
		default:
			n.boots(lane, "cfs", 1, results.OK)
			n.judged(lane, "cfs", 1, 1, results.OK, "")
			n.begins(lane, "cfs", 1, 2)
		}
	}
	evil := l.newNight("evil", 2, hostile()...)
	for _, lane := range hostile() {
		evil.add(results.Record{Lane: lane, Kind: results.KindPhase, Phase: "asked", Boot: &results.Boot{Number: 1, Kernel: lane, Block: 1}})
		evil.add(results.Record{Lane: lane, Kind: results.KindNote, Note: lane})
	}
	if err := os.MkdirAll(l.runs+"/20261101T000000Z-damaged-0000", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.runs+"/20261101T000000Z-damaged-0000/run.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	name := n.run.Name()
	names, err := results.List(l.runs)
	if err != nil {
		t.Fatal(err)
	}
	past := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.Contains(n, "-overnight-") })
	return l, l.page(Options{}), map[string]string{
		"runs": "/", "targets": "/targets", "run": "/runs/" + name, "lane": "/runs/" + name + "/lanes/router01", "failed lane": "/runs/" + name + "/lanes/router04",
		"past run": "/runs/" + past[0], "files": "/runs/" + name + "/files/", "file": "/runs/" + name + "/files/router01/boot-001/console.log",
		"confirm": "/runs/" + name + "/control?action=skip-kernel&lane=router01&kernel=cfs", "evil run": "/runs/" + evil.run.Name(),
		"evil lane": laneAddress(evil.run.Name(), hostile()[0]), "problem": "/runs/nosuch", "api": "/api", "older": "/?before=" + past[20],
	}
}

// On every page, at a phone's and a desk's width, light and dark: what a page must
// have for everybody.
func TestPagesInABrowser(t *testing.T) {
	_, s, pages := shown(t)
	base := serve(t, s)
	b := newTab(t, chromium(t))
	for name, path := range pages {
		for _, width := range []int64{360, 1280} {
			for _, dark := range []bool{false, true} {
				what := fmt.Sprintf("%s %d %v", name, width, dark)
				b.size(width, dark)
				b.open(base + path)
				b.shot(what)
				checkPage(b, what)
			}
		}
		if name == "problem" {
			b.faults = nil // the browser notes that a page is 404
		}
		b.clean(name)
	}
	// The report brings its own style, under its own policy.
	b.open(base + pages["past run"] + "/report")
	if s := eval[string](b, `document.querySelector("h1").textContent + " " + getComputedStyle(document.querySelector(".card")).borderRadius`); s != "kernsweep: sweep overnight 8px" {
		t.Errorf("the report shows %q", s)
	}
	b.clean("report")
}
