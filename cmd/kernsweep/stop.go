package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
	"kernsweep/targets/localproc"
)

const (
	stopTimeout = 2 * time.Minute
	stopTick    = 100 * time.Millisecond // between looks whether a controller is gone
	stopTell    = 5 * time.Second        // between lines that say what is waited for
)

func (a *app) stopCmd() *cobra.Command {
	var now bool
	var limit time.Duration
	c := &cobra.Command{
		Use:   "stop RUN",
		Short: "Stop a run that another process executes, as Ctrl-C there would",
		Long: `Stop a run that another process executes, as Ctrl-C there would: nothing more is started, what runs on the
targets is ended and collected, and the run can be resumed. RUN is a name, a unique beginning of one, a path,
or "latest".

Exit status: 0 it is stopped (or was over), 3 it goes on, or died and waits for resume.`,
		Example: "  kernsweep stop latest\n  kernsweep stop latest --now",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.findRun(args[0])
			if err != nil {
				return err
			}
			if limit <= 0 {
				return usage(fmt.Errorf("--timeout %s: give it some time", limit))
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), limit, errStillThere)
			defer cancel()
			return a.stopRun(ctx, run, now)
		},
	}
	c.Flags().BoolVar(&now, "now", false, "like Ctrl-C twice: at once; targets stay as they are until the run is resumed")
	c.Flags().DurationVar(&limit, "timeout", stopTimeout, "how long to wait until the run has stopped")
	return c
}

var errStillThere = errors.New("time is up")

// stopRun ends the run's controller and says how the run stands then.
func (a *app) stopRun(ctx context.Context, run *results.Run, now bool) error {
	h, ok := run.HeldBy()
	if !ok {
		return a.stopped(run, "is not running")
	}
	p, err := findController(run, h)
	if err != nil {
		return &statusError{exitInfra, err}
	}
	if p == nil {
		return a.stopped(run, "is not running")
	}
	defer p.close()
	if err := p.interrupt(); err != nil {
		return &statusError{exitInfra, fmt.Errorf("run %s is executed by %s: %w", paste.Word(run.Name()), h, err)}
	}
	fmt.Fprintf(a.err, "asked %s to stop\n", h)
	if now {
		first, cancel := context.WithTimeout(ctx, 3*samePress)
		gone := p.wait(first, nil)
		cancel()
		if !gone {
			if err := p.interrupt(); err != nil {
				return &statusError{exitInfra, err}
			}
		}
	}
	if !p.wait(ctx, func() { fmt.Fprintln(a.err, a.waitingFor(run)) }) {
		if !errors.Is(context.Cause(ctx), errStillThere) {
			return context.Cause(ctx)
		}
		return &statusError{exitInfra, fmt.Errorf("run %s has not stopped yet: %s; look again by %s, or quit it at once by %s",
			paste.Word(run.Name()), a.waitingFor(run), a.command("status", run), a.command("stop", run)+" --now")}
	}
	return a.stopped(run, "is stopped")
}

// command is a command line for people to copy, about a run.
func (a *app) command(name string, run *results.Run) string {
	return a.calledFor(run) + " " + name + " " + paste.Word(run.Name())
}

// kernsweep is the beginning of a command line that means the same files as this one.
func (a *app) kernsweep() string {
	return a.called(a.file)
}

// stopped says how a run stands that nobody executes.
func (a *app) stopped(run *results.Run, what string) error {
	s, err := a.status(run.Dir())
	if err != nil {
		return &statusError{exitInfra, err}
	}
	fmt.Fprintf(a.err, "run %s %s\n", paste.Word(run.Name()), what)
	a.printStatus(s, true)
	if s.State != "ended" && s.State != "interrupted" && what == "is not running" {
		return &statusError{status: exitInfra}
	}
	return nil
}

// waitingFor names the lanes that have not ended.
func (a *app) waitingFor(run *results.Run) string {
	s, err := run.State()
	if err != nil {
		return "still waiting"
	}
	var lanes []string
	for _, l := range s.Model.Lanes {
		if l.Ended.IsZero() {
			lanes = append(lanes, l.Name)
		}
	}
	if len(lanes) == 0 {
		return "its lanes have ended, the report is written"
	}
	slices.Sort(lanes)
	last := ""
	if n := s.Model.Notes; len(n) > 0 {
		last = "; last: " + n[len(n)-1].Note
	}
	return "lanes that have not ended: " + strings.Join(lanes, ", ") + last
}

// controller is the process that executes a run, held so that its number cannot
// become another's.
type controller struct {
	run *results.Run
	h   results.Holder
	fd  int // a pidfd; -1: the kernel has none
}

// findController finds the process that a journal's owner record names; nil when it
// is gone.
func findController(run *results.Run, h results.Holder) (*controller, error) {
	if localproc.BootID() != h.BootID {
		return nil, fmt.Errorf("run %s is executed by %s, another machine: give the command there", paste.Word(run.Name()), h)
	}
	p := &controller{run: run, h: h, fd: -1}
	fd, err := holdProcess(h.PID)
	switch {
	case err == nil:
		p.fd = fd
	case errors.Is(err, syscall.ESRCH):
		return nil, nil
	}
	// Only now: from here on the descriptor means this process.
	if localproc.Start(h.PID) != h.Start {
		p.close()
		if _, ok := run.HeldBy(); ok {
			return nil, fmt.Errorf("run %s is executed by %s, which cannot be seen from here (a container?): give the command there", paste.Word(run.Name()), h)
		}
		return nil, nil
	}
	return p, nil
}

// interrupt sends what Ctrl-C sends.
func (p *controller) interrupt() error {
	var err error
	if p.fd >= 0 {
		err = signalHeld(p.fd, syscall.SIGINT)
	} else if localproc.Start(p.h.PID) == p.h.Start {
		err = syscall.Kill(p.h.PID, syscall.SIGINT)
	}
	switch {
	case errors.Is(err, syscall.ESRCH):
		return nil // gone meanwhile
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("it is another user's, and only %s or root can stop it", p.h.Owner)
	}
	return err
}

// wait says whether the process ends before ctx does.
func (p *controller) wait(ctx context.Context, tell func()) (gone bool) {
	tick := time.NewTicker(stopTick)
	defer tick.Stop()
	told := time.Now()
	for {
		if localproc.Start(p.h.PID) != p.h.Start {
			return true
		}
		if tell != nil && time.Since(told) >= stopTell {
			told = time.Now()
			tell()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return localproc.Start(p.h.PID) != p.h.Start
		}
	}
}

func (p *controller) close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
	}
}
