package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"kernsweep/orchestrator/results"
)

// Metrics tell of live runs and of the last one, are named as Prometheus wants,
// and carry no name that makes a new series for each request.
func TestMetrics(t *testing.T) {
	l := newLab(t)
	l.src.Leases = func() ([]Lease, error) { return []Lease{{What: "target box", State: "held"}}, nil }
	l.past(3) // the newest is all ok, the first failed
	n := l.newNight("tonight", 3, "box", "router")
	n.boots("box", "cfs", 1, results.OK)
	n.judged("box", "cfs", 1, 1, results.Failed, "x")
	n.judged("box", "cfs", 1, 1, results.OK, "") // another attempt of the slot
	n.judged("box", "cfs", 1, 2, results.Failed, "x")
	n.add(results.Record{Lane: "router", Kind: results.KindLane, Note: results.NoteQuarantined, Reason: "gone"})
	s := l.page(Options{Version: "1.2"})
	for _, path := range []string{"/", "/runs/" + n.run.Name(), "/nosuch/1", "/nosuch/2"} {
		get(s, path)
	}
	do(s, "BREW", "/pot", "")
	problems, err := testutil.GatherAndLint(s.metrics.all)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	w := get(s, "/metrics")
	text := w.Body.String()
	for _, want := range []string{
		`kernsweep_runs{state="ended"} 3`, `kernsweep_runs{state="running"} 1`,
		`kernsweep_trials{kernel="cfs",outcome="ok",sweep="tonight",target="box"} 1`,
		`kernsweep_trials{kernel="cfs",outcome="failed",sweep="tonight",target="box"} 1`,
		`kernsweep_lane_state{state="quarantined",sweep="tonight",target="router"} 1`, `kernsweep_lane_state{state="running",sweep="tonight",target="router"} 0`,
		`kernsweep_lane_boots{sweep="tonight",target="box"} 1`, `kernsweep_lane_boots_planned{sweep="tonight",target="box"} 3`,
		`kernsweep_last_run_exit_status 0`, `kernsweep_leases{state="held"} 1`, `kernsweep_build_info{goversion="go`, `version="1.2"} 1`,
		`kernsweep_http_requests_total{code="404",method="GET",route="none"} 2`, `kernsweep_http_requests_total{code="404",method="other",route="none"} 1`,
		`kernsweep_http_requests_total{code="200",method="GET",route="GET /runs/{run}"} 1`, "kernsweep_last_run_age_seconds ", "kernsweep_run_left_seconds{", "go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, n.run.Name()) || strings.Contains(text, "nosuch") || strings.Contains(text, `left_seconds{sweep="tonight",target="router"}`) {
		t.Errorf("it tells too much:\n%s", text)
	}
	if t.Failed() {
		t.Log(text)
	}
	for range 3 { // what was read once is not read again
		get(s, "/metrics")
	}
	if l.calls > 4 {
		t.Errorf("4 runs were read %d times", l.calls)
	}
}

// A quiet page reads nothing by itself.
func TestNothingIsReadUnasked(t *testing.T) {
	l := newLab(t)
	l.past(2)
	s := l.page(Options{})
	if l.calls != 0 || len(s.hub.runs) != 0 {
		t.Errorf("%d reads, %d followed before anybody asked", l.calls, len(s.hub.runs))
	}
	if w := get(s, "/"); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	if l.calls != 2 {
		t.Errorf("2 runs were read %d times", l.calls)
	}
}

// A large lab answers in time.
func TestManyRunsAreQuick(t *testing.T) {
	l := newLab(t)
	l.past(60)
	s := l.page(Options{})
	get(s, "/metrics")
	began := time.Now()
	for range 20 {
		get(s, "/")
	}
	if took := time.Since(began) / 20; took > 500*time.Millisecond {
		t.Errorf("a page of many runs takes %s", took)
	} else {
		t.Logf("a page takes %s", took)
	}
}
