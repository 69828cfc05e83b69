package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kernsweep/orchestrator/results"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers is a driver whose sends end as told; the last answer stays.
type answers struct {
	mu    sync.Mutex
	errs  []error
	hang  bool // until its context ends
	got   []Event
	times []time.Time
}

func (a *answers) Ready() error { return nil }

func (a *answers) Send(ctx context.Context, e Event) error {
	a.mu.Lock()
	a.got, a.times = append(a.got, e), append(a.times, time.Now())
	var err error
	if len(a.errs) > 0 {
		if err = a.errs[0]; len(a.errs) > 1 {
			a.errs = a.errs[1:]
		}
	}
	hang := a.hang
	a.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (a *answers) kinds() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var k []string
	for _, e := range a.got {
		k = append(k, e.Kind)
	}
	return k
}

type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) add(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, s)
}

func aRun() Run {
	return Run{Sweep: "overnight", Name: "20261130T220000Z-overnight-7f3a", Dir: "/runs/x", Controller: "lab", Kernsweep: "kernsweep"}
}

// night is what a journal says of a short one.
func night() []results.Record {
	at := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	slot := func(target string, repeat int) *results.Slot {
		return &results.Slot{Cell: results.Cell{Target: target, Kernel: "bfs", Workload: "crunch.ltm", Scenario: "j1"}, Block: 1, Repeat: repeat, Boot: 1}
	}
	recs := []results.Record{
		{Kind: results.KindRun, Note: results.NoteBegan},
		{Kind: results.KindLane, Lane: "t1", Note: results.NoteBegan},
		{Kind: results.KindLane, Lane: "t2", Note: results.NoteBegan},
		{Kind: results.KindBoot, Lane: "t2", Boot: &results.Boot{Number: 1, Kernel: "bfs", Block: 1, Outcome: results.OK}},
		{Kind: results.KindJudged, Lane: "t1", Slot: slot("t1", 1), Attempt: 1, Outcome: results.OK},
		{Kind: results.KindJudged, Lane: "t1", Slot: slot("t1", 2), Attempt: 1, Outcome: results.Failed, Reason: "exit status 1\x1b[2J"},
		{Kind: results.KindJudged, Lane: "t1", Slot: slot("t1", 3), Attempt: 1, Outcome: results.Failed, Reason: "exit status 1\x1b[2J"},
		{Kind: results.KindJudged, Lane: "t2", Slot: slot("t2", 1), Attempt: 1, Outcome: results.Skipped, Reason: quarantined + "no route to host"},
		{Kind: results.KindJudged, Lane: "t2", Slot: slot("t2", 2), Attempt: 1, Outcome: results.Skipped, Reason: quarantined + "no route to host"},
		{Kind: results.KindCut, Lane: "t1", Cut: &results.Cut{Until: at.Add(9 * time.Hour), Block: 4, Trials: 6}},
		{Kind: results.KindCut, Lane: "t3", Cut: &results.Cut{Until: at.Add(9 * time.Hour), Block: 3, Trials: 2}},
		{Kind: results.KindLane, Lane: "t2", Note: results.NoteQuarantined, Reason: "no route to host"},
		{Kind: results.KindRun, Note: results.NoteEnded},
	}
	for i := range recs {
		recs[i].Seq, recs[i].At = i+1, at
	}
	return recs
}

func theEnd() End {
	return End{Model: results.Load(night()), ExitStatus: 3, Report: "/runs/x/report.txt", Next: "kernsweep rerun x --failed"}
}

// What is told of a night, once each, and what the texts say.
func TestEventsOfANight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, some := &answers{}, &answers{}
		var w warnings
		c := New(aRun(), []Block{{Kind: "x", On: Kinds(), Driver: a}, {Kind: "y", On: []string{Quarantine}, Driver: some}}, w.add)
		for _, r := range night() {
			c.Observe(r)
		}
		c.Finish(t.Context(), theEnd())
		if got := a.kinds(); !slices.Equal(got, []string{Quarantine, Deadline, Finish}) {
			t.Fatalf("told: %v", got)
		}
		if got := some.kinds(); !slices.Equal(got, []string{Quarantine}) {
			t.Errorf("told of what was not asked for: %v", got)
		}
		for i, want := range [][]string{
			{"kernsweep overnight: target t2 is withdrawn: no route to host", "in kernel bfs", "First cause: no route to host", "rerun 20261130T220000Z-overnight-7f3a --failed --target t2"},
			{"kernsweep overnight: 8 trials are left out", "t1: 6 trials, from block 4 on", "t3: 2 trials", "resume"},
			{"kernsweep overnight: 1 ok, 2 failed, 2 skipped", "exit status 3", "t2: withdrawn: no route to host", "crunch.ltm.j1: failed: exit status 1·[2J (2 trials)", "/runs/x/report.txt", "rerun x --failed"},
		} {
			e := a.got[i]
			if e.Subject != clean(want[0], 200) && !strings.HasPrefix(e.Subject, want[0]) {
				t.Errorf("subject %q", e.Subject)
			}
			for _, s := range want[1:] {
				if !strings.Contains(e.Text, s) {
					t.Errorf("the text of %s has no %q:\n%s", e.Kind, s, e.Text)
				}
			}
			if strings.ContainsAny(e.Text+e.Subject, "\x1b\x00\r") {
				t.Errorf("control characters: %q", e.Text)
			}
		}
		if len(w.all) > 0 {
			t.Errorf("warnings: %v", w.all)
		}
	})
}

// How long a failing block is tried, and how long a run waits for it.
func TestSendingAgain(t *testing.T) {
	gone := errors.New("connection refused")
	for name, c := range map[string]struct {
		errs        []error
		hang        bool
		interrupted bool
		sends       int           // at least
		waited      time.Duration // at most, by Finish
		warned      int
	}{
		"taken":                   {sends: 1, waited: 0},
		"refused twice":           {errs: []error{gone, gone, nil}, sends: 3, waited: 15 * time.Second, warned: 1},
		"asked to wait":           {errs: []error{&LaterError{gone, 40 * time.Second}, nil}, sends: 2, waited: 40 * time.Second, warned: 1},
		"refused for good":        {errs: []error{&PermanentError{Err: gone}}, sends: 1, warned: 1},
		"never there":             {errs: []error{gone}, sends: 4, waited: time.Minute, warned: 2},
		"hangs":                   {hang: true, sends: 1, waited: time.Minute, warned: 1},
		"hangs, interrupted":      {hang: true, interrupted: true, sends: 1, waited: hurry, warned: 1},
		"never there, and Ctrl-C": {errs: []error{gone}, interrupted: true, sends: 1, waited: hurry, warned: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{errs: c.errs, hang: c.hang}
				var w warnings
				center := New(aRun(), []Block{{Kind: "x", On: Kinds(), Driver: a}}, w.add)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.interrupted {
					cancel()
				}
				begin := time.Now()
				e := theEnd()
				e.Interrupted = c.interrupted
				center.Finish(ctx, e)
				if took := time.Since(begin); took > c.waited {
					t.Errorf("the run waits %s", took)
				}
				if len(a.got) < c.sends {
					t.Errorf("sent %d times", len(a.got))
				}
				for _, e := range a.got {
					if e.ID != a.got[0].ID || e.ID == "" {
						t.Errorf("tries are not told apart from new events: %q", e.ID)
					}
				}
				if len(w.all) != c.warned {
					t.Errorf("%d warnings: %q", len(w.all), w.all)
				}
			})
		})
	}
}

// While the run goes on an event is tried for a good while, and a block that
// hangs holds nobody up.
func TestObserveDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &answers{hang: true}, &answers{errs: []error{errors.New("down")}}
		var w warnings
		c := New(aRun(), []Block{{Kind: "x", On: Kinds(), Driver: a}, {Kind: "y", On: Kinds(), Driver: b}}, w.add)
		begin := time.Now()
		for i := range 1000 {
			c.Observe(results.Record{Kind: results.KindLane, Lane: fmt.Sprint(i), Note: results.NoteQuarantined, Reason: "gone"})
		}
		if time.Since(begin) > 0 {
			t.Error("it waited")
		}
		<-time.After(30 * time.Minute)
		b.mu.Lock()
		tries := 0
		for _, e := range b.got {
			if e.ID == b.got[0].ID {
				tries++
			}
		}
		b.mu.Unlock()
		if tries < 8 || tries > 30 {
			t.Errorf("an event is tried %d times in %s", tries, patience)
		}
		c.Finish(t.Context(), theEnd())
	})
}

// A web server as they are at night.
func TestWebhookAgainstAServer(t *testing.T) {
	var mu sync.Mutex
	hits := map[string]int{}
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hits[r.URL.Path]++
		n := hits[r.URL.Path]
		mu.Unlock()
		switch r.URL.Path {
		case "/ok/s3cret":
		case "/flaky":
			if n < 3 {
				w.WriteHeader(500)
				fmt.Fprint(w, "oops\x1b[31m")
			}
		case "/later":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		case "/moved":
			http.Redirect(w, r, "http://127.0.0.1:1/t0ken", http.StatusFound)
		case "/no":
			w.WriteHeader(403)
			fmt.Fprint(w, "invalid_token")
		case "/reset":
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
		case "/endless":
			for range 100000 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/hang":
			<-release
		}
	}))
	defer s.Close()
	defer close(release)
	t.Setenv("HOOK", s.URL+"/ok/s3cret")
	t.Setenv("EMPTY", "")
	for name, c := range map[string]struct {
		w         Webhook
		want      string // "" = sent
		permanent bool
		later     time.Duration
	}{
		"sent":             {w: Webhook{URLEnv: "HOOK"}},
		"no secret":        {w: Webhook{URLEnv: "EMPTY"}, want: "EMPTY is not set", permanent: true},
		"500":              {w: Webhook{URL: s.URL + "/flaky"}, want: "answers 500 Internal Server Error: oops·[31m"},
		"429":              {w: Webhook{URL: s.URL + "/later"}, want: "429", later: 7 * time.Second},
		"redirect":         {w: Webhook{URL: s.URL + "/moved"}, want: "points to http://127.0.0.1:1: write", permanent: true},
		"403":              {w: Webhook{URL: s.URL + "/no"}, want: "invalid_token", permanent: true},
		"reset":            {w: Webhook{URL: s.URL + "/reset"}, want: "EOF"},
		"endless answer":   {w: Webhook{URL: s.URL + "/endless"}},
		"hang":             {w: Webhook{URL: s.URL + "/hang", Timeout: 100 * time.Millisecond}, want: "no answer within 100ms"},
		"nobody listens":   {w: Webhook{URL: "http://127.0.0.1:1/t0ken"}, want: "connection refused"},
		"no such CA":       {w: Webhook{URL: s.URL, CAFile: os.DevNull}, want: "holds no certificate", permanent: true},
		"TLS to plain web": {w: Webhook{URL: strings.Replace(s.URL, "http:", "https:", 1)}, want: "HTTP response to HTTPS client"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.w.Check(); err != nil {
				t.Fatal(err)
			}
			err := c.w.Send(t.Context(), sample())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "t0ken") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("a secret in %v", err)
			}
			var p *PermanentError
			var l *LaterError
			if errors.As(err, &p) != c.permanent || errors.As(err, &l) != (c.later > 0) || l != nil && l.After != c.later {
				t.Errorf("%#v", err)
			}
		})
	}
}
