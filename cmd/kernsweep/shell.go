package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
)

// errLeft is the way out of a shell that does not answer: ~. after Enter.
var errLeft = errors.New("left")

func (a *app) shellCmd() *cobra.Command {
	var anyway bool
	c := &cobra.Command{
		Use:   "shell TARGET",
		Short: "Log in to a target as a run does: the same keys, host keys, jump hosts and algorithms",
		Long: `Log in to a target as a run does: the same keys, host keys, jump hosts and algorithms.

On a terminal the shell has one too, and follows its size. After Enter: ~. leaves,
also when the target does not answer any more; ~~ types ~; ~? says this. Without a
terminal standard input is passed on, as ssh -T does it.

A virtual target is there while a run or kernsweep boot of yours runs it.
A target that a run measures now is left alone: a login would disturb the figures.
--anyway logs in all the same.

Exit status: the shell's own; 2 usage or configuration, or a virtual target that is not there; 3 the target
was not reached, its link was lost, or it is measured; 130 interrupted.`,
		Example: "  kernsweep shell ar2317\n  echo 'dmesg | tail' | kernsweep shell ar2317",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lab, t, err := a.pick(args[0])
			if err != nil {
				return err
			}
			if err := a.undisturbed(c.Context(), choice{lab, []*config.Target{t}, true}, anyway); err != nil {
				return err
			}
			return a.shell(c.Context(), t)
		},
	}
	c.Flags().BoolVar(&anyway, "anyway", false, "also on a target that a run measures now")
	return c
}

func (a *app) shell(ctx context.Context, t *config.Target) error {
	dial, cancel := context.WithTimeout(ctx, handTime)
	conn, err := a.reachNow(dial, t)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	exit, err := a.logIn(ctx, t, conn)
	switch {
	case errors.Is(err, errLeft):
		return nil
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &statusError{exitInfra, fmt.Errorf("target %s: %w", t.Name, err)}
	case exit.OK():
		return nil
	case exit.Signal == "" && !exit.NoStatus:
		return &statusError{status: exit.Code}
	}
	return &statusError{exitFailed, fmt.Errorf("target %s: the shell %s", t.Name, exit)}
}

// logIn runs the login shell, on our terminal when there is one.
func (a *app) logIn(ctx context.Context, t *config.Target, conn targets.Conn) (targets.Exit, error) {
	plain := sshconn.Terminal{In: a.in, Out: rawOutput(a.out), Err: rawOutput(a.err)}
	s := a.newScreen(t.Name)
	out, isFile := plain.Out.(*os.File)
	if s.tty < 0 || !isFile || !term.IsTerminal(int(out.Fd())) {
		return sshconn.Shell(ctx, conn, plain)
	}
	exit, err := s.logIn(ctx, conn, a.terminalType(), out)
	if errors.Is(err, sshconn.ErrNoTerminal) {
		s.say(err.Error() + ": the shell runs without one, Ctrl-D ends it")
		return sshconn.Shell(ctx, conn, plain)
	}
	return exit, err
}

// terminalType is what the far side is told.
func (a *app) terminalType() string {
	if t, _ := a.env("TERM"); t != "" {
		return t
	}
	return "vt100"
}

// logIn runs the login shell on this terminal, which is restored also by a panic
// and by signals that would end the process.
func (s *screen) logIn(ctx context.Context, conn targets.Conn, kind string, out *os.File) (exit targets.Exit, err error) {
	ctx, quit := signal.NotifyContext(ctx, syscall.SIGQUIT)
	defer quit()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	wakeR, wakeW, err := os.Pipe()
	if err != nil {
		return exit, err
	}
	defer wakeR.Close()
	defer wakeW.Close() // ends the wait for a key
	sizes, still := sizesOf(ctx, out)
	defer still()
	t := sshconn.Terminal{Out: out, Err: out, Type: kind, Size: sizeOf(out), Resized: sizes,
		In: &typist{joint: &joint{screen: s, wake: wakeR}, leave: func() { leave(errLeft) }}}
	if err := s.raw(); err != nil {
		return exit, err
	}
	defer s.restore()
	exit, err = sshconn.Shell(ctx, conn, t)
	if err != nil && errors.Is(context.Cause(ctx), errLeft) {
		err = errLeft
	}
	return exit, err
}

// sizeOf is the size of a terminal now.
func sizeOf(f *os.File) sshconn.Size {
	w, h, err := term.GetSize(int(f.Fd()))
	if err != nil { // a serial line does not know
		return sshconn.Size{Columns: 80, Rows: 24}
	}
	return sshconn.Size{Columns: w, Rows: h}
}

// sizesOf gives the sizes of a terminal as they change, until stop.
func sizesOf(ctx context.Context, f *os.File) (_ <-chan sshconn.Size, stop func()) {
	changed, sizes := make(chan os.Signal, 1), make(chan sshconn.Size)
	signal.Notify(changed, syscall.SIGWINCH)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			select {
			case sizes <- sizeOf(f):
			case <-ctx.Done():
				return
			}
		}
	}()
	return sizes, func() {
		signal.Stop(changed)
		cancel()
		<-done
	}
}

// typist reads what a person types at a raw terminal, and takes the commands after
// ~ out of it.
type typist struct {
	*joint
	k     keys
	left  []byte // to be passed on
	leave func()
}

func (t *typist) Read(p []byte) (int, error) {
	buf := make([]byte, 1024)
	for len(t.left) == 0 {
		n, err := t.input(buf)
		for _, c := range buf[:n] {
			pass, cmd := t.k.add(c)
			t.left = append(t.left, pass...)
			switch cmd {
			case keyLeave:
				t.leave()
				return 0, io.EOF
			case keyHelp, keyBreak:
				t.say("after Enter: ~. leave, ~~ type ~, ~? this")
			}
		}
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
		if err != nil && len(t.left) == 0 {
			return 0, err
		}
	}
	n := copy(p, t.left)
	t.left = t.left[n:]
	return n, nil
}
