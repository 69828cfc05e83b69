package orchestrator

import (
	"context"
	"errors"

	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/results"
)

// leased is ctx until another process takes over the lane's target, or one that
// its trials use as a peer. The other lanes go on.
func (l *lane) leased(ctx context.Context) (guarded context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stops := []func(){func() { cancel(nil) }}
	for _, name := range append(peersOf(l.r.Lab, *l.plan), l.conf.Name) {
		stops = append(stops, l.r.Leases.watch(name, func(err error) { cancel(err) }))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// robbed says whether another process took over the target, or a peer of its
// trials. A target that is not ours any more is left as it is.
func (l *lane) robbed(ctx context.Context) error {
	if err := l.r.Leases.check(context.WithoutCancel(ctx), l.conf.Name); err != nil { // also after Ctrl-C
		l.letGo(ctx, err)
		return err
	}
	var lost *leases.LostError
	if errors.As(context.Cause(ctx), &lost) {
		return lost
	}
	return nil
}

// letGo forgets everything that would be put in order on a target that is
// somebody else's now, and keeps what they left for this run to note.
func (l *lane) letGo(ctx context.Context, why error) {
	l.note(ctx)("left as it is, without restoring anything: " + why.Error())
	l.touched, l.stranded, l.pushed, l.owed = false, false, nil, nil
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer stop()
	if err := l.r.Leases.fetch(ctx, l.r.Run, func(s string) error {
		return l.r.append(ctx, results.Record{Kind: results.KindNote, Note: s})
	}); err != nil {
		l.note(ctx)("the notes of others for this run: " + err.Error())
	}
}
