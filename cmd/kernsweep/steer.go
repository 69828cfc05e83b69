package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/results"
)

// steered is this process in the hands of others, while it executes a run.
type steered struct {
	signals *signals // nil: in a test
	note    func(string)

	mu    sync.Mutex
	lanes control.Steered // nil: none has begun
}

// steerable takes requests about the run until done. That nobody can ask is worth
// a note, and never ends a run.
func (a *app) steerable(ctx context.Context, run *results.Run, note func(string)) (s *steered, done func()) {
	s = &steered{signals: a.signals, note: note}
	server, err := control.Serve(context.WithoutCancel(ctx), run, s) // also after Ctrl-C: it can be asked to quit at once
	if err != nil {
		note(err.Error())
		fmt.Fprintln(a.err, "warning:", err)
		return s, func() {}
	}
	return s, func() {
		if err := server.Close(); err != nil {
			note("the socket for requests did not close: " + err.Error())
		}
	}
}

// begin says who obeys requests about lanes.
func (s *steered) begin(lanes control.Steered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes = lanes
}

// Steer does what is asked, or has it done.
func (s *steered) Steer(ctx context.Context, r control.Request) (string, error) {
	if r.Action.OfLane() {
		s.mu.Lock()
		lanes := s.lanes
		s.mu.Unlock()
		if lanes == nil {
			return "", errors.New("no lane has begun yet: ask again when the preflight is over")
		}
		return lanes.Steer(ctx, r)
	}
	by := "by " + r.By
	if r.Why != "" {
		by += ": " + r.Why
	}
	s.note(fmt.Sprintf("asked: %s, %s", r.Action, by))
	if err := s.signals.ask(asking{by: by, now: r.Action == control.StopNow}); err != nil {
		return "", err
	}
	if r.Action == control.StopNow {
		return "it quits at once; the targets stay as they are until the run is resumed", nil
	}
	return "nothing more is started; what runs on the targets is ended and collected", nil
}

// asking is a request to end, as a signal is one.
type asking struct {
	by  string
	now bool // as Ctrl-C twice
}

// String is for people.
func (a asking) String() string { return "it was asked to stop " + a.by }

// Signal makes it an os.Signal.
func (asking) Signal() {}
