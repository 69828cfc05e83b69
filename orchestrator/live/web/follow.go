package web

import (
	"context"
	"sync"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

const (
	keptEvents  = 1000 // of a run that is followed
	keptRuns    = 32   // that are followed, watched ones not counted
	lookAgain   = 200 * time.Millisecond
	timesChange = 5 * time.Second // between views that differ in their times only
)

// hub has one follower for a run, however many look at it. A follower is only
// read when somebody asks; while streams are open, a goroutine asks.
type hub struct {
	tick time.Duration
	now  func() time.Time
	wg   sync.WaitGroup
	ctx  context.Context // of the goroutines
	stop context.CancelFunc

	mu   sync.Mutex
	runs map[string]*followed // by directory and identity
}

func newHub(tick time.Duration, now func() time.Time) *hub {
	ctx, stop := context.WithCancel(context.Background())
	return &hub{tick: tick, now: now, ctx: ctx, stop: stop, runs: map[string]*followed{}}
}

// close ends all following.
func (h *hub) close() {
	h.stop()
	h.wg.Wait()
}

// followed is a run that is followed.
type followed struct {
	hub     *hub
	used    time.Time // guarded by hub.mu
	viewers int       // guarded by hub.mu
	stop    context.CancelFunc

	mu     sync.Mutex
	run    *results.Run
	watch  *live.Watching
	looked time.Time
	events []live.Event // the newest
	counts tally
	err    error
	news   chan struct{} // closed when there is something new
}

// moment is how a run stood when it was looked at.
type moment struct {
	view live.View // without events
	held bool
	err  error
	news <-chan struct{}
}

func (m moment) over() bool { return m.view.State != live.Executing && m.view.State != live.Starting }

// follow is the follower of a run.
func (h *hub) follow(run *results.Run) *followed {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := run.Dir() + "\x00" + run.Meta.ID
	f := h.runs[key]
	if f == nil {
		h.forget()
		f = &followed{hub: h, run: run, watch: live.Watch(run), counts: newTally(), news: make(chan struct{})}
		h.runs[key] = f
	}
	f.used = h.now()
	return f
}

// forget makes room: the run that nobody asked about for the longest time goes.
func (h *hub) forget() {
	if len(h.runs) < keptRuns {
		return
	}
	oldest := ""
	for key, f := range h.runs {
		if f.viewers == 0 && (oldest == "" || f.used.Before(h.runs[oldest].used)) {
			oldest = key
		}
	}
	delete(h.runs, oldest)
}

// attach is for a stream: the run is looked at until release.
func (h *hub) attach(run *results.Run) (f *followed, release func()) {
	f = h.follow(run)
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.viewers++; f.viewers == 1 {
		ctx, stop := context.WithCancel(h.ctx)
		f.stop = stop
		h.wg.Go(func() { f.keepLooking(ctx) })
	}
	return f, sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if f.viewers--; f.viewers == 0 {
			f.stop()
		}
	})
}

func (f *followed) keepLooking(ctx context.Context) {
	t := time.NewTicker(f.hub.tick)
	defer t.Stop()
	for {
		f.look(0)
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// look reads what is new, unless somebody did so within age.
func (f *followed) look(age time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.hub.now()
	if !f.looked.IsZero() && now.Sub(f.looked) < age {
		return
	}
	f.looked = now
	held, was := f.watch.Held(), f.err
	recs, err := f.watch.Look()
	for _, rec := range recs {
		f.counts.add(rec)
		f.event(rec)
	}
	f.err = err
	if len(recs) > 0 || held != f.watch.Held() || (err == nil) != (was == nil) {
		close(f.news)
		f.news = make(chan struct{})
	}
}

// event keeps what is worth a line; what says the same again is kept once.
func (f *followed) event(rec results.Record) {
	e, ok := live.EventOf(rec)
	if n := len(f.events); !ok || n > 0 && f.events[n-1].Lane == e.Lane && f.events[n-1].Text == e.Text {
		return
	}
	if len(f.events) >= 2*keptEvents {
		f.events = append(f.events[:0], f.events[keptEvents:]...)
	}
	f.events = append(f.events, e)
}

// moment is how the run stands, as far as it was read.
func (f *followed) moment() moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := moment{view: f.watch.View(f.hub.now()), held: f.watch.Held(), err: f.err, news: f.news}
	m.view.Events = []live.Event{}
	if m.view.Lanes == nil {
		m.view.Lanes = []live.LaneView{}
	}
	return m
}

// after are the kept events later than seq, of one lane or ("") of all, at most
// the newest so many.
func (f *followed) after(seq int, lane string, most int) []live.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []live.Event{}
	for _, e := range f.events {
		if e.Seq > seq && (lane == "" || e.Lane == lane) {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-most):]
}

// tallied are the counts of trials.
func (f *followed) tallied() map[tallyKey]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts.totals()
}
