package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// standing is what a lane knows of the failures on its target.
type standing struct {
	crashes   map[string]int          // kernel -> failures to boot, or panics
	crash     map[string]string       // kernel -> first cause
	infra     int                     // infrastructure failures in a row
	cause     string                  // of the first of them
	withdrawn string                  // first cause, once the target is given up
	lost      map[results.SlotKey]int // attempts whose link was lost
}

func newStanding() standing {
	return standing{crashes: map[string]int{}, crash: map[string]string{}, lost: map[results.SlotKey]int{}}
}

// crashed counts a kernel's failure.
func (s *standing) crashed(kernel, why string) {
	s.crashes[kernel]++
	if s.crash[kernel] == "" {
		s.crash[kernel] = why
	}
}

// struck counts an infrastructure failure, of which most in a row are borne.
func (s *standing) struck(why string, most int) {
	if s.infra++; s.infra == 1 {
		s.cause = why
	}
	if s.infra < most || s.withdrawn != "" {
		return
	}
	s.withdrawn = s.cause
	if why != s.cause {
		s.withdrawn += "; last: " + why
	}
}

// Notes of infrastructure failures, which policyBefore reads again.
const (
	noteFailure = "infrastructure failure %d of %d: %v"
	noteMisled  = "infrastructure failure that ends the lane: %v"
)

var failureNote = regexp.MustCompile(`(?s)^infrastructure failure (?:(\d+) of (\d+)|that ends the lane): (.*)`)

// failed counts an infrastructure failure and withdraws the target when there
// were too many in a row, or when its outlet is another machine's. Of a failure of
// the controller's own it is innocent.
func (l *lane) failed(ctx context.Context, err error) {
	if l.r.disk(err) != nil {
		return
	}
	note, misled := "", l.misled(err)
	l.struck(err.Error(), l.conf.Quarantine)
	if note = fmt.Sprintf(noteFailure, l.infra, l.conf.Quarantine, err); misled {
		l.withdrawn, note = err.Error(), fmt.Sprintf(noteMisled, err)
	}
	l.log.Warn("infrastructure failure", zap.Int("in_a_row", l.infra), zap.Error(err))
	l.record(ctx, results.Record{Kind: results.KindNote, Note: note, Slot: &results.Slot{Cell: results.Cell{Target: l.conf.Name}, Boot: l.boots}})
}

// backoff is the pause after so many infrastructure failures in a row: first,
// doubled with each, at most most.
func backoff(first, most time.Duration, row int) time.Duration {
	d := min(first, most)
	for ; row > 1 && d < most; row-- {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return max(d, 0)
}

// pause gives whatever failed time to come back: a switch, a PDU, an SSH server.
func (l *lane) pause(ctx context.Context, kernel string) {
	d := backoff(l.conf.Failures.Backoff, l.conf.Failures.BackoffMax, l.infra)
	if l.withdrawn != "" || d <= 0 || ctx.Err() != nil {
		return
	}
	if left, ends := l.r.night.left(); ends && d >= left {
		l.noTime = true
		return
	}
	l.note(ctx)(fmt.Sprintf("the next try is in %s", d))
	l.patient(ctx, kernel, d)
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// excusedError is a failed boot that the target's failures block calls
// infrastructure.
type excusedError struct{ crash *targets.BootError }

func (e *excusedError) Error() string { return e.crash.Error() }

// acquit turns a verdict on a kernel into an infrastructure failure where the
// target's policy says so, and writes that down.
func (l *lane) acquit(ctx context.Context, b plan.Boot, err error) error {
	var crash *targets.BootError
	if !errors.As(err, &crash) || !l.conf.Failures.Excuses(crash.Stage) {
		return err
	}
	l.record(ctx, results.Record{Kind: results.KindNote, Outcome: results.Lost,
		Slot: &results.Slot{Cell: results.Cell{Target: l.conf.Name, Kernel: b.Kernel}, Block: b.Block, Boot: l.boots},
		Note: fmt.Sprintf("boot %d: kernel %s is not blamed for %q: the failures block of target %s calls that infrastructure", l.boots, b.Kernel, crash.Stage, l.conf.Name)})
	l.fallen(l.boots, b.Kernel) // what it left behind is evidence all the same
	return &excusedError{crash}
}

// despair says whether a boot that ended in what is excused here was tried often
// enough. Its trials are lost then, and the lane goes on with the next boot: where
// one kernel alone does it each time, the others still get their turn.
func (l *lane) despair(err error, tries int) (why string, over bool) {
	var e *excusedError
	if !errors.As(err, &e) || tries <= l.conf.Failures.Retries {
		return "", false
	}
	return fmt.Sprintf("%s: %v (infrastructure by the target's failures block; %d tries)", e.crash.Stage, e.crash.Err, tries), true
}

// pardon does for a trial what acquit does for a boot: what cut it off is the
// infrastructure's where the policy says so, and it is to be repeated.
func (t *trial) pardon(ctx context.Context, rec *results.Record) {
	stage, _, _ := strings.Cut(rec.Reason, ": ")
	stage = strings.TrimSuffix(stage, duringTrial)
	switch {
	case rec.Outcome == results.BootFailed && t.conf.Failures.Excuses(stage):
	case rec.Outcome == results.Failed && t.how.Outcome == results.Lost && strings.HasPrefix(t.how.Note, config.Timeout):
		stage, rec.Reason = config.Timeout, t.how.Reason
	default:
		return
	}
	rec.Outcome = results.Lost
	t.fallen(t.number, t.kernel)
	t.note(ctx)(fmt.Sprintf("%s: kernel %s is not blamed for %q: the failures block of target %s calls that infrastructure", t.slot.Cell, t.kernel, stage, t.conf.Name))
}

const duringTrial = " during the trial" // after a stage, in a verdict's reason

// undertaking is the session that began what the newest one resumes: the run's
// first, or a rerun.
func undertaking(m *results.Model) int {
	from := len(m.Sessions)
	for from > 1 && strings.HasPrefix(m.Sessions[from-1].Why, results.WhyResume) {
		from--
	}
	return from
}

// policyBefore is what the sessions of a run that are one undertaking, the first
// or a rerun and what resumed it, have learnt of a lane's target. A lane that was
// given up stays so with its first cause.
func policyBefore(m *results.Model, lane string) standing {
	s := newStanding()
	if m == nil {
		return s
	}
	from := undertaking(m)
	crashesBefore(&s, m, lane, from)
	infraBefore(&s, m, lane, from)
	if l := m.Lane(lane); l != nil && l.Quarantined {
		s.withdrawn = l.Reason
	}
	return s
}

// crashesBefore counts what is the kernels' fault, and lost links.
func crashesBefore(s *standing, m *results.Model, lane string, from int) {
	type crash struct {
		boot, part  int // the boot itself, or a trial in it
		kernel, why string
	}
	var list []crash
	excused := map[int]bool{}
	for _, n := range m.Notes {
		if n.Lane == lane && n.Slot != nil && n.Outcome == results.Lost {
			excused[n.Slot.Boot] = true
		}
	}
	for _, b := range m.Boots {
		if r := b.Result; b.Lane == lane && b.Session >= from && r != nil && r.Outcome == results.BootFailed && !excused[b.Number] {
			list = append(list, crash{b.Number, 0, r.Kernel, r.Stage + ": " + r.Reason})
		}
	}
	for _, t := range m.Trials {
		for _, a := range t.Attempts {
			switch {
			case t.Slot.Target != lane || a.Session < from || a.Started.IsZero():
			case a.Outcome == results.BootFailed:
				list = append(list, crash{a.Slot.Boot, 1, t.Slot.Kernel, a.Reason})
			case a.Outcome == results.Lost:
				s.lost[t.Slot.Key()]++
			}
		}
	}
	slices.SortStableFunc(list, func(a, b crash) int { return 2*(a.boot-b.boot) + a.part - b.part })
	for _, c := range list {
		s.crashed(c.kernel, c.why)
	}
}

// infraBefore counts the infrastructure failures since the last trial that came
// to a verdict of its own.
func infraBefore(s *standing, m *results.Model, lane string, from int) {
	var good *results.Attempt // the newest
	for _, t := range m.Trials {
		for _, a := range t.Attempts {
			if t.Slot.Target == lane && a.Session >= from && ranWell(a) && (good == nil || newer(a, good.Slot.Boot, good.Ended)) {
				good = a
			}
		}
	}
	for _, n := range m.Notes {
		found := failureNote.FindStringSubmatch(n.Note)
		if n.Lane != lane || n.Slot == nil || found == nil || good != nil && newer(good, n.Slot.Boot, n.At) {
			continue
		}
		if b := m.Boot(lane, n.Slot.Boot); b != nil && b.Session < from {
			continue // of what a rerun began anew
		}
		most, err := strconv.Atoi(found[2])
		s.struck(found[3], most)
		if err != nil { // it ends the lane
			s.withdrawn = found[3]
		}
	}
}

// ranWell says that a trial ran and that its link held.
func ranWell(a *results.Attempt) bool {
	switch a.Outcome {
	case results.Lost, results.BootFailed, results.Interrupted, results.Skipped:
		return false
	}
	return !a.Started.IsZero()
}

// newer says that a is from a later boot, or from later in the same one.
func newer(a *results.Attempt, boot int, than time.Time) bool {
	return a.Slot.Boot > boot || a.Slot.Boot == boot && a.Ended.After(than)
}
