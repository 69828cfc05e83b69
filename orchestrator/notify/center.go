package notify

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator/results"
)

// Times of sending.
const (
	firstPause = 5 * time.Second // before a failed event is sent again, doubled each time
	mostPause  = 2 * time.Minute
	patience   = 20 * time.Minute // for one event, while the run goes on
	lastWait   = time.Minute      // at the end of a run, for what is still to be sent
	hurry      = 3 * time.Second  // the same after an interruption
	cutGather  = 20 * time.Second // several lanes are cut within moments

	quarantined = "target quarantined: " // how the reason of a withdrawn target's skipped trials begins
)

// Run is what every event of a run says.
type Run struct {
	Sweep, Name, Dir, Controller string
	Kernsweep                    string // the command line up to the subcommand: "kernsweep --runs /x"
}

// Center gives the events of a run to its notify blocks.
type Center struct {
	run  Run
	warn func(string) // what could not be sent, for people and the journal

	firstPause, patience, lastWait, hurry, gather time.Duration // a test's are shorter

	ctx     context.Context // of the senders
	stop    context.CancelFunc
	senders []*sender
	work    sync.WaitGroup

	mu     sync.Mutex
	kernel map[string]string // lane -> the kernel it is in
	told   map[string]bool   // lanes whose quarantine was told
	cuts   []results.Record  // not told yet
	timer  *time.Timer       // tells them
}

// New begins to send for a run. What is missing for sending is warned of at once,
// while somebody is there. warn must not wait for a record to be written that
// Observe is called for. Finish ends it.
func New(run Run, blocks []Block, warn func(string)) *Center {
	c := newCenter(run, warn)
	c.begin(blocks)
	return c
}

func newCenter(run Run, warn func(string)) *Center {
	return &Center{run: run, warn: warn, kernel: map[string]string{}, told: map[string]bool{},
		firstPause: firstPause, patience: patience, lastWait: lastWait, hurry: hurry, gather: cutGather}
}

func (c *Center) begin(blocks []Block) {
	c.ctx, c.stop = context.WithCancel(context.Background())
	for _, b := range blocks {
		if err := b.Ready(); err != nil {
			c.warn(fmt.Sprintf("%s will not be able to send: %v", b, err))
		}
		s := &sender{c: c, block: b, wake: make(chan struct{}, 1)}
		c.senders = append(c.senders, s)
		c.work.Go(s.work)
	}
}

// Observe takes a record in. It does not wait for anything.
func (c *Center) Observe(rec results.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch rec.Kind {
	case results.KindPhase, results.KindBoot:
		if rec.Boot != nil {
			c.kernel[rec.Lane] = rec.Boot.Kernel
		}
	case results.KindJudged:
		// A withdrawn target's trials are skipped at once; its lane ends only when
		// the target is home.
		if cause, ok := strings.CutPrefix(rec.Reason, quarantined); ok && rec.Outcome == results.Skipped {
			c.withdrawn(rec, cause)
		}
	case results.KindLane:
		if strings.HasPrefix(rec.Note, results.NoteQuarantined) {
			c.withdrawn(rec, rec.Reason)
		}
	case results.KindCut:
		if rec.Cut == nil || len(c.senders) == 0 {
			return
		}
		if c.cuts = append(c.cuts, rec); c.timer == nil {
			c.timer = time.AfterFunc(c.gather, c.tellCuts)
		}
	}
}

// withdrawn tells of a quarantine once; c.mu is held.
func (c *Center) withdrawn(rec results.Record, cause string) {
	if c.told[rec.Lane] {
		return
	}
	c.told[rec.Lane] = true
	c.send(c.quarantine(rec.Lane, c.kernel[rec.Lane], cause, rec.At))
}

// tellCuts sends what --until left out since the last time.
func (c *Center) tellCuts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	cuts := c.cuts
	c.cuts, c.timer = nil, nil
	if len(cuts) > 0 {
		c.send(c.deadline(cuts))
	}
}

// send queues an event for every block that wants it.
func (c *Center) send(e Event) {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails (Go 1.24 and later)
	e.ID = hex.EncodeToString(id[:])
	e.Sweep, e.Run, e.Dir, e.Controller = c.run.Sweep, c.run.Name, c.run.Dir, c.run.Controller
	if e.At.IsZero() {
		e.At = time.Now()
	}
	for _, s := range c.senders {
		if s.block.wants(e.Kind) {
			s.add(e)
		}
	}
}

// Finish tells how the run ended, and waits a moment until everything is sent:
// less where ctx has ended, by Ctrl-C. What is not sent by then is a warning.
func (c *Center) Finish(ctx context.Context, end End) {
	c.tellCuts()
	c.mu.Lock()
	c.send(c.finish(end))
	c.mu.Unlock()
	c.close(ctx)
}

// close lets the senders come to their end.
func (c *Center) close(ctx context.Context) {
	for _, s := range c.senders {
		s.end()
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.work.Wait()
	}()
	wait := time.NewTimer(c.lastWait)
	defer wait.Stop()
	select {
	case <-sent:
	case <-wait.C:
	case <-ctx.Done():
		last := time.NewTimer(c.hurry)
		defer last.Stop()
		select {
		case <-sent:
		case <-last.C:
		}
	}
	c.stop()
	<-sent // every driver ends with its context
}

// sender sends the events of one block in their order.
type sender struct {
	c     *Center
	block Block
	wake  chan struct{} // one token: there is something to do

	mu    sync.Mutex
	queue []Event
	over  bool
}

func (s *sender) add(e Event) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.ring()
}

func (s *sender) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.ring()
}

func (s *sender) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sender) work() {
	for {
		s.mu.Lock()
		var e *Event
		if len(s.queue) > 0 {
			e = &s.queue[0]
			s.queue = s.queue[1:]
		}
		over := s.over
		s.mu.Unlock()
		switch {
		case e != nil:
			s.deliver(*e)
		case over:
			return
		default:
			<-s.wake // end rings too
		}
	}
}

// deliver sends an event, again and again for a while.
func (s *sender) deliver(e Event) {
	begin, pause := time.Now(), s.c.firstPause
	for try := 1; ; try++ {
		err := s.block.Send(s.c.ctx, e)
		var never *PermanentError
		var later *LaterError
		switch {
		case err == nil:
			return
		case errors.As(err, &never) && never.Part:
			s.c.warn(fmt.Sprintf("%s: %q: %v", s.block, e.Subject, err))
			return
		case errors.As(err, &never) || s.c.ctx.Err() != nil || time.Since(begin) > s.c.patience:
			s.c.warn(fmt.Sprintf("%s: %q was not sent (try %d): %v", s.block, e.Subject, try, err))
			return
		case try == 1:
			s.c.warn(fmt.Sprintf("%s: %q is not sent yet, and tried again: %v", s.block, e.Subject, err))
		}
		wait := pause
		if errors.As(err, &later) {
			wait = max(wait, later.After)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.c.ctx.Done():
			t.Stop()
			s.c.warn(fmt.Sprintf("%s: %q was not sent in time (try %d): %v", s.block, e.Subject, try, err))
			return
		}
		pause = min(2*pause, mostPause)
	}
}

// SendTest sends a trial message through a block, once.
func SendTest(ctx context.Context, run Run, b Block) error {
	c := newCenter(run, func(string) {})
	e := c.test()
	e.ID = "test"
	return b.Send(ctx, e)
}
