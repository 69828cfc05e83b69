package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
)

// execFlags of one call.
type execFlags struct {
	limits
	stream, fold, inOrder, anyway bool
}

const execLong = `Run a command on one target or many at once. ` + choosing + `

The words of the command reach the program as they are: spaces, quotes, $ and
newlines included. No shell looks at them; for one, write -- sh -c 'ps | wc -l'.

One target, named by its name: output is passed on as it comes, standard input
too, and the exit status is the command's own.

Several, or a pattern: the output of each is shown when its command ends, under a
line "== NAME (exit 0, 0.12 s)"; what it wrote to standard error goes there, with
"NAME: " before each line. --fold waits for all and shows equal outputs once.
--stream shows lines as they come, "NAME: " before each. --json has one object per
target. All get the whole of standard input, unless that is a terminal; write
< /dev/null where a loop's own input is meant to stay. Of each output the first
16 MiB are kept, and what is left out is said. On a terminal control characters of
the output are shown as ·, also of one target's; kernsweep shell shows a terminal's.

A target that a run measures now is left alone, and nothing is run anywhere: a
command would disturb the figures. --anyway runs it all the same.

Exit status: 0 all ended with 0; one target: the command's own; several: 1 a
command failed, was killed or did not end in time; 2 usage or configuration; 3 a target was not reached, or its
link was lost, or it is measured; 130 interrupted, after what has ended was shown.`

func (a *app) execCmd() *cobra.Command {
	var f execFlags
	c := &cobra.Command{
		Use:   "exec TARGET… -- COMMAND…",
		Short: "Run a command on one target or many at once",
		Long:  execLong,
		Example: "  kernsweep exec ar2317 -- cat /proc/loadavg\n  kernsweep exec class:router -- uname -r\n  kernsweep exec --fold 'all,!ar2317' -- cat /proc/version\n" +
			"  kernsweep exec --timeout 10s --json label:rack2 -- dmesg",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeHands(false),
		RunE: func(c *cobra.Command, args []string) error {
			names, argv, err := dashed(c, args, "a command")
			if err == nil {
				err = f.check(a)
			}
			if err != nil {
				return err
			}
			on, err := a.choose(names)
			if err == nil {
				err = on.forgotDash(c, argv, "the command")
			}
			if err == nil {
				err = a.undisturbed(c.Context(), on, f.anyway)
			}
			if err != nil {
				return err
			}
			if on.one && !a.json && !f.stream && !f.fold {
				return a.execOne(c.Context(), on, argv, f)
			}
			return a.execMany(c.Context(), on, argv, f)
		},
	}
	f.limits.flags(c)
	c.Flags().BoolVar(&f.stream, "stream", false, "show lines as they come, each with the target's name")
	c.Flags().BoolVar(&f.fold, "fold", false, "show equal outputs once, with the names of their targets, when all have ended")
	c.Flags().BoolVar(&f.inOrder, "in-order", false, "show outputs in the order of the configuration, not as they end")
	c.Flags().BoolVar(&f.anyway, "anyway", false, "also on a target that a run measures now")
	return c
}

func (f *execFlags) check(a *app) error {
	n := 0
	for _, b := range []bool{f.stream, f.fold, a.json} {
		if b {
			n++
		}
	}
	if n > 1 || f.stream && f.inOrder {
		return usage(errors.New("--stream, --fold and --json exclude each other, and --stream has no --in-order"))
	}
	return f.limits.check()
}

// execOne is the plain way: nothing between the command and whoever called, but
// what keeps it from driving a terminal.
func (a *app) execOne(ctx context.Context, on choice, argv []string, f execFlags) error {
	t := on.list[0]
	var exit targets.Exit
	var err error
	a.each(ctx, on, f.limits, func(ctx context.Context, _ int, h hand) {
		var conn targets.Conn
		if conn, err = h.reach(ctx); err != nil {
			return
		}
		defer conn.Close()
		out, outEnd := passed(a.out)
		errw, errEnd := passed(rawOutput(a.err))
		exit, err = conn.Run(ctx, targets.Cmd{Argv: argv, Stdin: a.in, Stdout: out, Stderr: errw})
		outEnd()
		errEnd()
		err = atTarget(t, err)
		if e, ok := context.Cause(ctx).(errTime); ok && err != nil {
			err = &statusError{exitFailed, fmt.Errorf("target %s: the command was ended: %w", t.Name, e)}
		}
	})
	switch {
	case err != nil:
		return err
	case exit.OK():
		return nil
	case exit.Signal == "" && !exit.NoStatus:
		return &statusError{status: exit.Code}
	}
	return &statusError{exitFailed, fmt.Errorf("target %s: the command %s", t.Name, exit)}
}

// atTarget names the target of an infrastructure's error, once.
func atTarget(t *config.Target, err error) error {
	var s *statusError
	if err == nil || errors.As(err, &s) {
		return err
	}
	return &statusError{exitInfra, fmt.Errorf("target %s: %w", t.Name, err)}
}

// execMany runs a command on several targets and shows what came of it.
func (a *app) execMany(ctx context.Context, on choice, argv []string, f execFlags) error {
	in := shareInput(a.in)
	defer in.Close()
	show := a.newShow(ctx, f)
	done := make(chan *handed, len(on.list))
	go func() {
		defer close(done)
		a.each(ctx, on, f.limits, func(ctx context.Context, i int, h hand) {
			done <- h.exec(ctx, i, argv, in, show)
		})
	}()
	all := make([]*handed, len(on.list))
	var failed error
	for r := range done {
		all[r.place] = r
		if err := show.ended(r); err != nil && failed == nil {
			failed = err // the commands go on; their ends are still counted
		}
	}
	if err := show.close(); failed == nil {
		failed = err
	}
	if failed != nil {
		return failed
	}
	return show.verdict(all)
}

// handed is what came of a command at one target.
type handed struct {
	place   int // among the targets
	t       *config.Target
	exit    targets.Exit
	err     error
	reached bool
	late    bool // --timeout
	took    time.Duration
	out     *spool
	errs    *spool
}

// exec runs a command at one target of several.
func (h hand) exec(ctx context.Context, place int, argv []string, in *sharedInput, show *show) *handed {
	r := &handed{place: place, t: h.t, out: newSpool(), errs: newSpool()}
	defer func() {
		r.took, r.reached = time.Since(h.turn), h.reached
		_, r.late = context.Cause(ctx).(errTime)
		r.late = r.late && r.err != nil
	}()
	conn, err := h.reach(ctx)
	if err != nil {
		r.err = err
		return r
	}
	defer conn.Close()
	cmd := targets.Cmd{Argv: argv}
	if stdin := in.reader(); stdin != nil {
		defer stdin.Close()
		cmd.Stdin = stdin
	}
	stdout, stderr, finish := show.outputs(r)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	r.exit, r.err = conn.Run(ctx, cmd)
	if err := finish(); r.err == nil {
		r.err = err
	}
	return r
}

// status is the exit status that a target alone asks for.
func (r *handed) status(ctx context.Context) int {
	switch {
	case r.err == nil && r.exit.OK():
		return 0
	case r.err == nil, r.late && r.reached:
		return exitFailed
	case ctx.Err() != nil:
		return exitInterrupted
	}
	return exitInfra
}

// end says in a few words how it ended.
func (r *handed) end(ctx context.Context) string {
	switch {
	case r.err == nil && r.exit.Signal != "":
		return "killed by SIG" + r.exit.Signal
	case r.err == nil && r.exit.NoStatus:
		return "no exit status"
	case r.err == nil:
		return fmt.Sprintf("exit %d", r.exit.Code)
	case r.late && r.reached:
		return "ended by --timeout"
	case ctx.Err() != nil:
		return "interrupted"
	case !r.reached:
		return "not reached"
	}
	return "link lost"
}
