package deploy

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
)

// Waiting times after the context of a task has ended.
const (
	delivery = 15 * time.Second       // for the agent to end the task and to bring its spool
	patience = 6 * time.Second        // for one request: the agent's TERM and KILL take 2 s each
	heeded   = 3 * time.Second        // until a request must have had its effect
	askAgain = 200 * time.Millisecond // between requests to an agent that has not begun
	cleanup  = 30 * time.Second       // where it did not: ending the task and fetching the spool anew
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
		limit, cancel := targets.Afterwards(ctx, delivery)
		defer cancel()
		again := time.NewTicker(askAgain)
		defer again.Stop()
		for next := time.Now(); ; {
			if !time.Now().Before(next) {
				try, stop := context.WithTimeout(limit, patience)
				exit, err := conn.Run(try, targets.Cmd{Argv: r.stopping()})
				stop()
				var link *targets.LinkError
				if errors.As(err, &link) || limit.Err() != nil {
					return
				}
				switch {
				case err != nil: // a lost session; asked again
				case exit.OK():
					next = time.Now().Add(heeded)
				case exit.Code == 126 || exit.Code == 127: // somebody removed its file
					if r.a.restore(limit) != nil {
						return
					}
				}
				// Otherwise it refuses: the run has not begun.
			}
			select {
			case <-over:
				return
			case <-limit.Done():
				return
			case <-again.C:
			}
		}
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

// stopping is the command that ends the task.
func (r *run) stopping() []string {
	return append(append([]string(nil), r.a.place().command...), "stop", "-spool", r.spool)
}

// interrupt ends the task after its context ended, and gets what it spooled.
func (r *run) interrupt(ctx context.Context) {
	ctx, cancel := targets.Afterwards(ctx, cleanup)
	defer cancel()
	conn := r.a.link()
	argv := r.stopping()
	_, err := conn.Run(ctx, targets.Cmd{Argv: argv})
	if err != nil && r.a.o.Redial != nil {
		if conn, err = r.redial(ctx); err == nil {
			_, err = conn.Run(ctx, targets.Cmd{Argv: argv})
		}
	}
	if err == nil {
		err = r.collect(ctx, conn)
	}
	if err != nil {
		r.a.o.Note("after the interruption the task could not be ended and collected: " + err.Error())
		return
	}
	r.discard(ctx)
}

// discard removes the spool there; a failure costs room, not the result.
func (r *run) discard(ctx context.Context) {
	ctx, cancel := targets.Afterwards(ctx, cleanup)
	defer cancel()
	if err := r.a.delete(ctx, r.spool, r.spool+".reserve", r.spool+".d"); err != nil {
		r.a.o.Log.Warn("a spool stays behind", zap.Error(err))
		return
	}
	r.a.forget(r.spool)
}
