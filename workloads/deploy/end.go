package deploy

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
)

// Waiting times after the context of a task has ended. A lane has 30 s for its
// whole way out; this package takes at most about 20 of them.
const (
	leaving  = 20 * time.Second       // for all of it
	delivery = 10 * time.Second       // for the agent to end the task and to bring its spool
	patience = 5 * time.Second        // for one request: the agent's TERM and KILL take 3 s
	heeded   = 3 * time.Second        // until a request must have had its effect
	askAgain = 200 * time.Millisecond // between requests to an agent that has not begun
	removal  = 2 * time.Second        // at least, for the spool's removal
	cleanup  = 30 * time.Second       // when nobody waits for it
)

// hold runs the agent. A Conn ends what it ran by KILL when its context ends,
// and the task of a killed agent would go on for ever: so at the end of ctx the
// agent is first asked to end its task and to deliver the spool.
func (r *run) hold(ctx context.Context, conn targets.Conn, cmd targets.Cmd) (targets.Exit, error) {
	held, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	over, asked := make(chan struct{}), make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(asked)
		defer cut()
		if r.over.IsZero() {
			r.over = time.Now().Add(leaving)
		}
		limit, cancel := targets.Afterwards(ctx, min(delivery, time.Until(r.over)))
		defer cancel()
		r.dead = !r.ask(limit, conn, over, cut)
	})
	exit, err := conn.Run(held, cmd)
	close(over)
	if !unhook() {
		<-asked
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return exit, err
}

// ask asks the agent to end its task until over is closed, or limit ends; false
// when the link turns out to be dead. It is cut as soon as it gives no answer,
// for a Conn needs seconds to let go of it.
func (r *run) ask(limit context.Context, conn targets.Conn, over <-chan struct{}, cut func()) (alive bool) {
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for next := time.Now(); limit.Err() == nil; {
		if !time.Now().Before(next) {
			exit, err := r.askOnce(limit, conn, cut)
			switch {
			case errors.Is(err, context.DeadlineExceeded), isLink(err):
				return false
			case err != nil: // a lost session; asked again
			case exit.OK():
				next = time.Now().Add(heeded)
			case exit.Code == 126 || exit.Code == 127: // somebody removed its file
				if r.a.restore(limit) != nil {
					return true
				}
			}
			// Otherwise it refuses: the run has not begun.
		}
		select {
		case <-over:
			return true
		case <-limit.Done():
		case <-again.C:
		}
	}
	return true
}

func (r *run) askOnce(limit context.Context, conn targets.Conn, cut func()) (targets.Exit, error) {
	try, stop := context.WithTimeout(limit, patience)
	defer stop()
	defer context.AfterFunc(try, cut)()
	return conn.Run(try, targets.Cmd{Argv: r.stopping()})
}

func isLink(err error) bool {
	var link *targets.LinkError
	return errors.As(err, &link)
}

// stopping is the command that ends the task.
func (r *run) stopping() []string {
	return append(append([]string(nil), r.a.place().command...), "stop", "-spool", r.spool)
}

// interrupt ends the task after its context ended, and gets what it spooled.
func (r *run) interrupt(ctx context.Context) {
	limit := cleanup
	if ctx.Err() != nil && !r.over.IsZero() {
		limit = time.Until(r.over)
	}
	ctx, cancel := targets.Afterwards(ctx, limit)
	defer cancel()
	err := r.endThere(ctx)
	var gone *GoneError
	switch {
	case err == nil:
	case errors.As(err, &gone):
		r.a.o.Note("the interrupted task was ended, but only the beginning of its spool could be had: " + err.Error())
	default:
		r.a.o.Note("after the interruption the task could not be ended and collected: " + err.Error() +
			"; it ends at its own deadline, and the next run on this machine looks for it")
		return
	}
	r.discard(ctx)
}

// endThere ends the task over the link there is, else over another one, and
// collects its spool.
func (r *run) endThere(ctx context.Context) error {
	conn := r.a.link()
	argv := r.stopping()
	err := errors.New("the link gives no answer")
	if !r.dead || r.a.o.Redial == nil {
		try, stop := context.WithTimeout(ctx, patience)
		_, err = conn.Run(try, targets.Cmd{Argv: argv})
		stop()
	}
	if err != nil && r.a.o.Redial != nil {
		if conn, err = r.redial(ctx); err == nil {
			_, err = conn.Run(ctx, targets.Cmd{Argv: argv})
		}
	}
	if err != nil {
		return err
	}
	return r.collect(ctx, conn)
}

// discard removes the spool there; a failure costs room, not the result.
func (r *run) discard(ctx context.Context) {
	limit := cleanup
	if !r.over.IsZero() {
		limit = max(time.Until(r.over), removal)
	}
	ctx, cancel := targets.Afterwards(ctx, limit)
	defer cancel()
	if err := r.a.delete(ctx, r.spool, r.spool+".reserve", r.spool+".d"); err != nil {
		r.a.o.Log.Warn("a spool stays behind", zap.Error(err))
		return
	}
	r.a.forget(r.spool)
}
