package web

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a folder of runs, and the functions of a page over it.
type lab struct {
	t    testing.TB
	runs string
	src  Sources

	mu       sync.Mutex
	asked    []control.Request
	refuse   error
	consoles map[string]*pipe
	calls    int // of Status
}

// pipe is a console that a test speaks for.
type pipe struct {
	*io.PipeReader
	w *io.PipeWriter
}

func newLab(t testing.TB) *lab {
	l := &lab{t: t, runs: filepath.Join(t.TempDir(), "runs"), consoles: map[string]*pipe{}}
	if err := os.Mkdir(l.runs, 0o755); err != nil {
		t.Fatal(err)
	}
	l.src = Sources{Runs: l.runs, Status: l.status,
		Targets: func() ([]Target, error) { return nil, nil },
		Leases:  func() ([]Lease, error) { return nil, nil },
		Console: func(target string) (string, io.ReadCloser, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			p := l.consoles[target]
			if p == nil {
				return "", nil, fs.ErrNotExist
			}
			delete(l.consoles, target)
			return "run x, boot 1", p, nil
		}}
	return l
}

// status derives a state as the command does.
func (l *lab) status(run *results.Run) (Status, error) {
	l.mu.Lock()
	l.calls++
	l.mu.Unlock()
	s, err := run.State()
	if err != nil {
		return Status{}, err
	}
	out := Status{Run: run.Name(), Sweep: run.Meta.Sweep, State: "not begun", Created: run.Meta.Created, Outcomes: s.Model.Count(), Notes: s.Journal.Notes}
	if n := len(s.Model.Sessions); n > 0 {
		last := s.Model.Sessions[n-1]
		_, held := run.HeldBy()
		switch {
		case !last.Ended.IsZero():
			exit := s.Model.ExitStatus()
			out.State, out.Ended, out.Exit = "ended", last.Ended, &exit
		case held:
			out.State = "running"
		default:
			out.State = "died without a word"
		}
	}
	if out.Exit != nil && *out.Exit != 0 {
		out.Next = "kernsweep rerun " + run.Name() + " --failed"
		out.Needs = []Need{{"box: " + live.Stand(out.Outcomes, 0), out.Next}}
	}
	return out, nil
}

// steer makes the page one that can steer.
func (l *lab) steer() {
	l.src.Ask = func(_ context.Context, _ *results.Run, r control.Request) (string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.refuse != nil {
			return "", l.refuse
		}
		l.asked = append(l.asked, r)
		return "lane " + r.Lane + " pauses after this trial", nil
	}
}

func (l *lab) requests() []control.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]control.Request(nil), l.asked...)
}

// console gives a target a console, and the end to speak into.
func (l *lab) console(target string) io.WriteCloser {
	r, w := io.Pipe()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.consoles[target] = &pipe{r, w}
	return w
}

// page makes a server over the lab that answers quickly.
func (l *lab) page(o Options) *Server {
	l.t.Helper()
	if o.Log == nil {
		o.Log = func(string) {}
	}
	s, err := New(l.src, o)
	if err != nil {
		l.t.Fatal(err)
	}
	s.limits.tick, s.limits.retry, s.limits.beat = 5*time.Millisecond, 5*time.Millisecond, 50*time.Millisecond
	s.hub.tick = s.limits.tick
	l.t.Cleanup(s.hub.close)
	return s
}

// serve serves it on 127.0.0.1 until the test ends, and gives its address.
func serve(t testing.TB, s *Server) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, lis, nil) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the server does not end")
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + lis.Addr().String()
}

// get asks a server without a network.
func get(s *Server, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return do(s, "GET", path, "", change...)
}

func do(s *Server, method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8420"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func browser(r *http.Request) { r.Header.Set("Accept", "text/html,*/*") }

// night is a run that the test executes.
type night struct {
	t   testing.TB
	run *results.Run
	w   *results.Writer
	at  time.Time
}

// newNight makes a run with lanes of so many boots, of two trials each, and begins it.
func (l *lab) newNight(sweep string, boots int, lanes ...string) *night {
	l.t.Helper()
	began := time.Now().Add(-time.Minute)
	run, err := results.Create(l.runs, sweep, results.RunMeta{Who: "ada", Host: "lab1", Version: "0.1", Seed: 7}, began)
	if err != nil {
		l.t.Fatal(err)
	}
	type boot struct {
		Trials []struct{} `json:"trials"`
	}
	type lane struct {
		Target   string        `json:"target"`
		Estimate time.Duration `json:"estimate"`
		Boots    []boot        `json:"boots"`
	}
	var p struct {
		Lanes []lane `json:"lanes"`
	}
	sum := results.PlanSummary{Sweep: sweep, Seed: 7, Metrics: map[string][]workloads.Metric{}}
	for _, name := range lanes {
		x := lane{Target: name, Estimate: time.Hour}
		for range boots {
			x.Boots = append(x.Boots, boot{make([]struct{}, 2)})
		}
		p.Lanes = append(p.Lanes, x)
		sum.Targets = append(sum.Targets, results.PlannedTarget{Name: name, Boots: boots})
		for _, k := range []string{"cfs", "bfs"} {
			sum.Cells = append(sum.Cells, results.PlannedCell{Cell: cellOf(name, k), Baseline: "cfs", Boots: boots, Repeat: 2})
		}
	}
	sum.Kernels = []results.PlannedKernel{{Name: "cfs"}, {Name: "bfs"}}
	if err := run.WritePlan(sum, p); err != nil {
		l.t.Fatal(err)
	}
	n := &night{t: l.t, run: run, at: began}
	if n.w, err = run.OpenWriter("ada"); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = n.w.Close() }) // ended already, or it does not matter
	n.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan})
	for _, name := range lanes {
		n.add(results.Record{Lane: name, Kind: results.KindLane, Note: results.NoteBegan})
	}
	return n
}

func cellOf(target, kernel string) results.Cell {
	return results.Cell{Target: target, Kernel: kernel, Workload: "iperf.to_target", Scenario: "default"}
}

func (n *night) add(r results.Record) {
	n.t.Helper()
	n.at = n.at.Add(time.Second)
	r.At = n.at
	if _, err := n.w.Append(context.Background(), r); err != nil {
		n.t.Fatal(err)
	}
}

// boots boots a kernel and leaves its console.
func (n *night) boots(lane, kernel string, number int, o results.Outcome, lines ...string) {
	n.t.Helper()
	dir, err := n.run.NewBootDir(lane, number)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "console.log"), []byte("Linux version 6.1\r\n\x1b[31mhello from "+lane+"\x1b[0m\r\n"+strings.Join(lines, "\n")), 0o644)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.add(results.Record{Lane: lane, Kind: results.KindPhase, Phase: "asked", Boot: &results.Boot{Number: number, Kernel: kernel, Block: number}})
	n.add(results.Record{Lane: lane, Kind: results.KindPhase, Phase: "kernel", Boot: &results.Boot{Number: number, Kernel: kernel, Block: number}})
	b := &results.Boot{Number: number, Kernel: kernel, Block: number, Outcome: o}
	if o == results.OK {
		b.Record = targets.BootRecord{Kernel: kernel, Release: "6.1.0-test", Proven: true, Scheduler: targets.Scheduler{Name: kernel}}
	} else {
		b.Stage, b.Reason, b.LastLines = "kernel", "panic: not syncing: VFS: Unable to mount root fs", lines
	}
	n.add(results.Record{Lane: lane, Kind: results.KindBoot, Boot: b, Outcome: o})
}

func (n *night) slot(lane, kernel string, boot, repeat int) *results.Slot {
	return &results.Slot{Cell: cellOf(lane, kernel), Block: boot, Repeat: repeat, Boot: boot}
}

func (n *night) begins(lane, kernel string, boot, repeat int) {
	n.add(results.Record{Lane: lane, Kind: results.KindStarted, Slot: n.slot(lane, kernel, boot, repeat), Attempt: 1})
}

func (n *night) judged(lane, kernel string, boot, repeat int, o results.Outcome, why string) {
	s := n.slot(lane, kernel, boot, repeat)
	n.add(results.Record{Lane: lane, Kind: results.KindEnded, Slot: s, Attempt: 1, Outcome: o})
	n.add(results.Record{Lane: lane, Kind: results.KindJudged, Slot: s, Attempt: 1, Outcome: o, Reason: why})
}

// end ends the run in good order.
func (n *night) end(lanes ...string) {
	for _, l := range lanes {
		n.add(results.Record{Lane: l, Kind: results.KindLane, Note: results.NoteEnded})
	}
	n.add(results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	if err := n.w.Close(); err != nil {
		n.t.Fatal(err)
	}
}

// past are so many runs that are over; each third one failed.
func (l *lab) past(count int) {
	for i := range count {
		n := l.newNight("overnight", 1, "box")
		n.boots("box", "cfs", 1, results.OK)
		o, why := results.OK, ""
		if i%3 == 0 {
			o, why = results.Failed, "exit status 1"
		}
		n.judged("box", "cfs", 1, 1, o, why)
		n.judged("box", "cfs", 1, 2, results.OK, "")
		n.end("box")
	}
}

func decoded[T any](t testing.TB, b []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in:\n%s", err, b)
	}
	return v
}

// hostile are names and outputs that mean harm.
func hostile() []string {
	return []string{`<script>document.title="owned"</script>`, "\x1b]0;owned\x07\x1b[2J", "\u202egnp.evil\u2066", `"><img src=x onerror=document.title='owned'>`,
		"../../etc/passwd", "javascript:alert(1)", strings.Repeat("w", 200), "{{.}}", "a b&c=d?e#f%2f", "\u05d0\u05d1\u05d2 \u0645\u0631\u062d\u0628\u0627"}
}

func itoa(n int) string { return strconv.Itoa(n) }

// localServer serves what another page would be.
func localServer(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
