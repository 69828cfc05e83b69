package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

// Waiting times of Run.
const (
	margin     = 2 * time.Minute // after a task's deadline: ending it, and its spool's way home
	firstPause = time.Second     // between redials, doubled up to lastPause
	lastPause  = 15 * time.Second
)

// errOverdue says that an agent does not keep its deadlines: it is stopped, or
// gets no CPU.
var errOverdue = errors.New("its task still runs, longer than it may")

// run is one execution of a task.
type run struct {
	a     *Agent
	t     workloads.Task
	told  bool      // Task.Ended was called
	spool string    // on the machine
	file  string    // the spool here
	over  time.Time // when an interrupted run must be left to itself
	dead  bool      // its link gave no answer then
}

// Run runs one task under the agent, in one exec over a silent link. Its error
// is infrastructure: the spool could not be had whole. What could be had is in
// t.Dir all the same. The machine keeps the spool until it has arrived here.
func (a *Agent) Run(ctx context.Context, t workloads.Task) error {
	return a.track(ctx, t, func(Spooled) error { return nil })
}

// track is Run, with begin called before anything is started on the machine.
func (a *Agent) track(ctx context.Context, t workloads.Task, begin func(Spooled) error) error {
	if a.kind == "shell" {
		if why := shellCannot(t.Argv); why != "" {
			return no("%s", why)
		}
	}
	name, err := newSpool()
	if err != nil {
		return err
	}
	r := a.newRun(t, a.place().spools+"/"+name)
	if err := begin(Spooled{File: r.spool, Prefix: t.Prefix}); err != nil {
		return fmt.Errorf("%s is not started, for where its spool lies could not be written down: %w", t.Argv[0], err)
	}
	a.remember(r.spool)
	return r.do(ctx, r.perform)
}

func (a *Agent) newRun(t workloads.Task, spool string) *run {
	return &run{a: a, t: t, spool: spool, file: filepath.Join(t.Dir, t.Prefix+"spool")}
}

// do has the task performed within its deadline, ends it when ctx ends, and
// takes its spool apart.
func (r *run) do(ctx context.Context, perform func(context.Context) error) error {
	runCtx := ctx
	if r.t.Deadline > 0 {
		var cancel context.CancelFunc
		runCtx, cancel = context.WithTimeout(ctx, r.t.Deadline+margin)
		defer cancel()
	}
	err := perform(runCtx)
	late := runCtx.Err() != nil
	if err != nil && (late || errors.Is(err, errOverdue)) {
		r.interrupt(ctx)
		if late && ctx.Err() == nil {
			err = fmt.Errorf("no answer %v after the deadline of %v: %w", margin, r.t.Deadline, err)
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx) // ended because of it, its spool whole or not
	}
	if serr := r.split(); err == nil {
		err = serr
	}
	return err
}

// perform executes the task and gets its spool, over a second link if need be.
func (r *run) perform(ctx context.Context) error {
	conn := r.a.link()
	exit, said, err := r.exec(ctx, conn, r.args(), r.t.Ready)
	if err != nil {
		r.ended("link lost: " + err.Error())
	}
	if err == nil && (exit.OK() || exit.Code == 2) && r.complete() == nil {
		r.discard(ctx)
		return nil
	}
	if err == nil && exit.Code == 2 {
		return fmt.Errorf("the agent refused: %s", firstLine(said))
	}
	var link *targets.LinkError
	if err == nil {
		// The link lives, the agent died or its output was cut: the file tells.
		why := fmt.Errorf("the agent %s%s", exit, explain(exit, said))
		if cerr := r.collect(ctx, conn); cerr != nil {
			return fmt.Errorf("%w; its spool: %w", why, cerr)
		}
		r.discard(ctx)
		return nil
	}
	if ctx.Err() != nil || !errors.As(err, &link) || r.a.o.Redial == nil {
		return fmt.Errorf("running %s: %w", strings.Join(r.t.Argv, " "), err)
	}
	r.a.o.Note("link lost while a task ran (" + err.Error() + "); dialling again to collect its spool")
	conn, derr := r.redial(ctx)
	if derr != nil {
		return fmt.Errorf("link lost while %s ran: %w; dialling again: %w", r.t.Argv[0], err, derr)
	}
	if cerr := r.collect(ctx, conn); cerr != nil {
		return fmt.Errorf("link lost while %s ran: %w; collecting: %w", r.t.Argv[0], err, cerr)
	}
	r.discard(ctx)
	return nil
}

// ended tells the caller, once, how the task ended.
func (r *run) ended(how string) {
	if r.t.Ended != nil && !r.told {
		r.told = true
		r.t.Ended(how)
	}
}

// args is the agent's command line for the task.
func (r *run) args() []string {
	t := r.t
	v := []string{"run", "-keep", "-spool", r.spool, "-sample", t.Sample.String(), "-limit", strconv.FormatInt(r.a.place().limit, 10)}
	if t.Deadline > 0 {
		v = append(v, "-deadline", t.Deadline.String())
	}
	if t.StopAfter > 0 {
		v = append(v, "-stop-after", t.StopAfter.String())
	}
	if t.Listen != 0 {
		v = append(v, "-listen", strconv.Itoa(t.Listen))
	}
	if t.UDP {
		v = append(v, "-udp")
	}
	if r.a.o.Instance != "" && r.a.kind == "go" && r.a.canResume() { // the controller: a peer is of no use without us
		v = append(v, "-owner", strconv.Itoa(os.Getpid())+"-"+startOf(os.Getpid()))
	}
	for _, e := range t.Env {
		v = append(v, "-env", e)
	}
	return append(v, t.Argv...)
}

// exec runs the agent with args; its stdout is a spool, kept in r.file. An
// agent that is not there any more is pushed again, once.
func (r *run) exec(ctx context.Context, conn targets.Conn, args []string, ready func()) (targets.Exit, string, error) {
	exit, said, err := r.once(ctx, conn, args, ready)
	if err != nil || exit.Code != 127 && exit.Code != 126 {
		return exit, said, err
	}
	if err := r.a.restore(ctx); err != nil {
		return exit, said, err
	}
	return r.once(ctx, conn, args, ready)
}

func (r *run) once(ctx context.Context, conn targets.Conn, args []string, ready func()) (targets.Exit, string, error) {
	f, err := os.Create(r.arriving())
	if err != nil {
		return targets.Exit{}, "", err
	}
	in := &intake{w: f, ready: ready, ended: r.ended}
	errs := &head{}
	argv := append(append([]string(nil), r.a.place().command...), args...)
	exit, err := r.hold(ctx, conn, targets.Cmd{Argv: argv, Stdout: in, Stderr: errs, Quiet: true})
	// The machine's copy is removed soon, so this one must be on the disk.
	for _, ferr := range []error{in.err, f.Sync(), f.Close(), r.keepLonger()} {
		if err == nil {
			err = ferr
		}
	}
	// A shell that lacks its script says 2, as the agent does when it refuses.
	if err == nil && exit.Code == 2 && !strings.HasPrefix(errs.String(), "kernsweep-agent: ") {
		exit.Code = 127
	}
	return exit, errs.String(), err
}

// arriving is the file that a spool is written to: beside one that is there
// already, of which nothing may be lost.
func (r *run) arriving() string {
	if st, err := os.Stat(r.file); err == nil && st.Size() > 0 {
		return r.file + partial
	}
	return r.file
}

// partial ends the name of a spool that arrives a second time.
const partial = ".part"

// keepLonger makes what arrived last the spool, unless there is more of it from
// before.
func (r *run) keepLonger() error {
	again, err := os.Stat(r.file + partial)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st, err := os.Stat(r.file); err == nil && (st.Size() > again.Size() || r.complete() == nil) {
		return os.Remove(r.file + partial)
	}
	return os.Rename(r.file+partial, r.file)
}

// complete reads the spool here and says whether it is whole.
func (r *run) complete() error {
	f, err := os.Open(r.file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = wire.Read(f)
	return err
}

// collect waits for the end of the task's agent and gets the spool.
func (r *run) collect(ctx context.Context, conn targets.Conn) error {
	args := []string{"collect", "-keep", "-spool", r.spool}
	if end, ok := ctx.Deadline(); ok {
		// Leave time for the way home.
		left := time.Until(end)
		args = append(args, "-wait", max(left-min(margin/4, left/2), time.Second).Round(time.Second).String())
	}
	if r.t.Deadline > 0 && r.a.canResume() {
		args = append(args, "-within", (r.t.Deadline + margin/2).String())
	}
	exit, said, err := r.exec(ctx, conn, args, nil)
	if err != nil {
		return err
	}
	if strings.Contains(said, wire.NoSpool) {
		return &GoneError{Spool: r.spool, Why: "it is not on the machine any more"}
	}
	if !exit.OK() {
		return fmt.Errorf("collect %s%s", exit, explain(exit, said))
	}
	if err := r.complete(); err != nil {
		if strings.Contains(said, wire.GoesOn) {
			return fmt.Errorf("%w: %w", err, errOverdue)
		}
		// Of a killed agent the task goes on, and nobody else would end it.
		if exit, serr := conn.Run(ctx, targets.Cmd{Argv: r.stopping()}); serr != nil || !exit.OK() {
			r.a.o.Note("what a killed agent left running may go on: " + strings.Join(r.t.Argv, " "))
		}
		return &GoneError{Spool: r.spool, Why: "the agent was killed, or its machine rebooted", Err: err}
	}
	return nil
}

// redial reaches the machine again, as long as ctx allows and it has not rebooted.
func (r *run) redial(ctx context.Context) (targets.Conn, error) {
	pause := firstPause
	for {
		conn, err := r.a.o.Redial(ctx)
		if err == nil {
			r.a.Through(conn)
			return conn, nil
		}
		var rebooted *targets.RebootedError
		if errors.As(err, &rebooted) {
			return nil, err // the task and its spool are gone
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("gave up: %w", err)
		case <-timer.C:
		}
		pause = min(2*pause, lastPause)
	}
}
