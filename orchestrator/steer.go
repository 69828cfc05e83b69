package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/results"
)

// Steer does what a person asks of a lane while the run goes on: it is
// control.Steered, but for control.Stop and control.StopNow, which are about the
// whole process. What was accepted is in the journal before it is answered.
func (r *Runner) Steer(ctx context.Context, q control.Request) (said string, err error) {
	if err := q.Check(); err != nil {
		return "", err
	}
	if !q.Action.OfLane() {
		return "", fmt.Errorf("%s is not about a lane: it is for the process that executes the run", q.Action)
	}
	l, err := r.steered(q.Lane)
	if err != nil {
		return "", err
	}
	said, err = l.steer(ctx, q)
	if errors.Is(err, errOver) {
		err = fmt.Errorf("lane %s %w%s", q.Lane, err, r.goingOn(q.Lane))
	}
	return said, err
}

var errOver = errors.New("has nothing left to do")

func (l *lane) steer(ctx context.Context, q control.Request) (said string, err error) {
	l.helm.mu.Lock()
	defer l.helm.mu.Unlock()
	if l.helm.over {
		return "", errOver
	}
	switch q.Action {
	case control.Pause:
		return l.steerPause(ctx, q)
	case control.GoOn:
		return l.steerOn(ctx, q)
	case control.SkipTrial:
		return l.steerTrial(ctx, q)
	case control.SkipKernel:
		return l.steerKernel(ctx, q)
	default:
		return l.steerAway(ctx, q)
	}
}

// steered finds a lane that can be asked.
func (r *Runner) steered(name string) (*lane, error) {
	var names []string
	for _, p := range r.Plan.Lanes {
		names = append(names, p.Target)
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("there is no lane %q in this session of the run; its lanes: %s", name, strings.Join(names, ", "))
	}
	r.steering.Lock()
	defer r.steering.Unlock()
	for _, l := range r.helmed {
		if l.conf.Name == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("lane %s has not begun yet, or the run is at its end: ask again in a moment", name)
}

// steerable gives lanes into people's hands, until done.
func (r *Runner) steerable(lanes []*lane) (done func()) {
	set := func(list []*lane) {
		r.steering.Lock()
		defer r.steering.Unlock()
		r.helmed = list
	}
	set(lanes)
	return func() { set(nil) }
}

// goingOn names the lanes beside one that can still be asked.
func (r *Runner) goingOn(but string) string {
	r.steering.Lock()
	defer r.steering.Unlock()
	var names []string
	for _, l := range r.helmed {
		if l.conf.Name != but && !l.helm.isOver() {
			names = append(names, l.conf.Name)
		}
	}
	if len(names) == 0 {
		return ", and no other lane goes on"
	}
	return "; lanes that go on: " + strings.Join(names, ", ")
}

// asker is who asks, and why, as the journal has it.
func asker(q control.Request) string {
	s := "by " + q.By
	if q.Why != "" {
		s += ": " + q.Why
	}
	return s
}

// skippedBy is the reason of everything that is left out for a request. what is
// named where it is more than a trial.
func skippedBy(q control.Request, what string) string {
	s := results.SkippedBy + q.By
	if what != "" {
		s += " (" + what + ")"
	}
	if q.Why != "" {
		s += ": " + q.Why
	}
	return s
}

// asked writes down what was asked; the helm's lock is held, so nothing gets in
// between.
func (l *lane) asked(ctx context.Context, what string, q control.Request) error {
	return l.r.append(ctx, results.Record{Lane: l.conf.Name, Kind: results.KindNote, Note: "asked: " + what + ", " + asker(q)})
}

func (l *lane) steerPause(ctx context.Context, q control.Request) (string, error) {
	h := l.helm
	if h.paused != nil {
		return fmt.Sprintf("lane %s is paused already, since %s, %s", l.conf.Name, h.paused.since.Format("15:04 MST"), h.paused.who), nil
	}
	if err := l.r.append(ctx, results.Record{Lane: l.conf.Name, Kind: results.KindLane, Note: results.NotePaused, Reason: asker(q)}); err != nil {
		return "", err
	}
	h.paused = &halt{since: time.Now(), who: asker(q)}
	h.changed()
	if n := h.now; n != nil && n.waiting {
		n.cancel(errHalted)
		return fmt.Sprintf("lane %s is paused: %s does not begin before go-on", l.conf.Name, n.what), nil
	}
	until := "; its target stays leased"
	if _, ends := l.r.night.left(); ends {
		until += ", and what would not be over before --until is left out"
	}
	if h.now != nil {
		return fmt.Sprintf("lane %s pauses after %s%s", l.conf.Name, h.now.what, until), nil
	}
	return fmt.Sprintf("lane %s is paused: nothing more begins there before go-on%s", l.conf.Name, until), nil
}

func (l *lane) steerOn(ctx context.Context, q control.Request) (string, error) {
	h := l.helm
	if h.paused == nil {
		return fmt.Sprintf("lane %s is not paused", l.conf.Name), nil
	}
	if err := l.r.append(ctx, results.Record{Lane: l.conf.Name, Kind: results.KindLane, Note: results.NoteGoesOn, Reason: asker(q)}); err != nil {
		return "", err
	}
	h.paused = nil
	h.changed()
	return fmt.Sprintf("lane %s goes on", l.conf.Name), nil
}

func (l *lane) steerTrial(ctx context.Context, q control.Request) (string, error) {
	h, n := l.helm, l.helm.now
	trial := n != nil && n.trial
	switch {
	case h.given != "":
		return "", fmt.Errorf("lane %s: its target is given up, and all its trials are skipped", l.conf.Name)
	case trial && n.over():
		return fmt.Sprintf("lane %s: %s is being ended already", l.conf.Name, n.what), nil
	case trial && n.ended:
		return "", fmt.Errorf("lane %s: %s has just ended by itself, and its evidence is being read: nothing is skipped", l.conf.Name, n.what)
	case !trial && h.next != "":
		return fmt.Sprintf("lane %s: the next trial is to be skipped already", l.conf.Name), nil
	}
	if err := l.asked(ctx, "skip-trial", q); err != nil {
		return "", err
	}
	if trial {
		n.end(skippedBy(q, ""))
		return fmt.Sprintf("lane %s: %s is being ended; the lane goes on with the next", l.conf.Name, n.what), nil
	}
	h.next = skippedBy(q, "")
	return fmt.Sprintf("lane %s: no trial runs now; the next one to begin is skipped", l.conf.Name), nil
}

func (l *lane) steerKernel(ctx context.Context, q control.Request) (string, error) {
	h, kernel := l.helm, q.Kernel
	if kernel == "" && h.now != nil {
		kernel = h.now.kernel
	}
	var planned, left []string
	for i, b := range l.plan.Boots {
		if !slices.Contains(planned, b.Kernel) {
			planned = append(planned, b.Kernel)
		}
		if i >= h.at && !slices.Contains(left, b.Kernel) {
			left = append(left, b.Kernel)
		}
	}
	switch {
	case kernel == "":
		return "", fmt.Errorf("lane %s: no kernel is being booted or measured now: name one of %s", l.conf.Name, strings.Join(left, ", "))
	case !slices.Contains(planned, kernel):
		return "", fmt.Errorf("lane %s has no kernel %q: it has %s", l.conf.Name, kernel, strings.Join(planned, ", "))
	case h.leaves(kernel) != "":
		return fmt.Sprintf("lane %s: kernel %s is left out already", l.conf.Name, kernel), nil
	case !slices.Contains(left, kernel):
		return "", fmt.Errorf("lane %s: nothing is left of kernel %s", l.conf.Name, kernel)
	}
	if err := l.asked(ctx, "skip-kernel "+kernel, q); err != nil {
		return "", err
	}
	why := skippedBy(q, "kernel "+kernel)
	h.leave(kernel, why)
	said := fmt.Sprintf("lane %s: all that is left of kernel %s is left out", l.conf.Name, kernel)
	if n := h.now; n != nil && n.kernel == kernel && n.end(why) {
		said += "; " + n.what + " is being ended"
	}
	return said, nil
}

// steerAway gives the target up.
func (l *lane) steerAway(ctx context.Context, q control.Request) (string, error) {
	h := l.helm
	if h.given != "" {
		return fmt.Sprintf("lane %s: its target is given up already", l.conf.Name), nil
	}
	if err := l.asked(ctx, "quarantine", q); err != nil {
		return "", err
	}
	h.given = skippedBy(q, "target "+l.conf.Name)
	h.paused = nil // the lane's end says more
	h.changed()
	said := fmt.Sprintf("lane %s: its target is given up, what is left is skipped", l.conf.Name)
	if n := h.now; n != nil && n.end(h.given) {
		said += "; " + n.what + " is being ended"
	}
	if k := l.conf.KnownGood; k != "" {
		said += "; the target is brought back to its known-good kernel " + k
	}
	return said, nil
}

// handError is why a person ended something: the cause of its context.
type handError struct{ reason string }

func (e *handError) Error() string { return e.reason }

// Unwrap makes it the end of a context like any other.
func (e *handError) Unwrap() error { return context.Canceled }

// errHalted is why something did not begin: the lane is paused.
var errHalted = errors.New("the lane is paused")

// byHand is the reason that a person gave for ending ctx, "" when nobody did.
func byHand(ctx context.Context) string {
	var e *handError
	if errors.As(context.Cause(ctx), &e) {
		return e.reason
	}
	return ""
}
