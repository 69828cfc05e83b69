package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"kernsweep/orchestrator/live"
	"kernsweep/targets"
)

// consoleEnded says that a console closed by itself.
type consoleEnded struct {
	target string
	err    error
}

func (e *consoleEnded) Error() string {
	return fmt.Sprintf("target %s: its console closed: %v", e.target, e.err)
}

func (e *consoleEnded) Unwrap() error { return e.err }

// screen joins a person's terminal, or a script's input and output, with a
// console.
type screen struct {
	target string
	in     io.Reader
	out    io.Writer
	errw   io.Writer
	tty    int         // descriptor of the terminal that is typed at, -1: none
	saved  *term.State // of it; nil: not raw
}

func (a *app) newScreen(target string) *screen {
	s := &screen{target: target, in: a.in, out: a.out, errw: rawOutput(a.err), tty: -1}
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.tty = int(f.Fd())
	}
	return s
}

// say writes a line of our own. A raw terminal needs the CR.
func (s *screen) say(text string) {
	end := "\n"
	if s.saved != nil {
		end = "\r\n"
	}
	fmt.Fprintf(s.errw, "%skernsweep: %s%s", end[:len(end)-1], live.Safe(text), end)
}

// raw makes the terminal pass every key.
func (s *screen) raw() error {
	if s.tty < 0 || s.saved != nil {
		return nil
	}
	var err error
	if s.saved, err = term.MakeRaw(s.tty); err != nil {
		return &statusError{exitInfra, fmt.Errorf("the terminal: %w", err)}
	}
	return nil
}

// restore gives the terminal back: its settings, and, where the console is shown
// on it, colours, the character set and the cursor, which the machine may have
// left changed.
func (s *screen) restore() {
	if s.saved == nil {
		return
	}
	if f, ok := s.errw.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(f, "\x0f\x1b[0m\x1b[?25h\r\n")
	}
	_ = term.Restore(s.tty, s.saved) // nothing else can be done about it
	s.saved = nil
}

// drive shows line and passes the keys on until either ends. The terminal is
// restored also by a panic and by signals that would end the process.
func (s *screen) drive(ctx context.Context, line io.ReadWriteCloser, keep io.Writer, readOnly bool) (err error) {
	ctx, quit := signal.NotifyContext(ctx, syscall.SIGQUIT)
	defer quit()
	if err := s.raw(); err != nil {
		return err
	}
	defer s.restore()
	if s.tty >= 0 && !readOnly {
		s.say("you have the console of " + s.target + "; ~. after Enter leaves, ~? says more")
	}
	j := &joint{screen: s, line: line, keep: keep, readOnly: readOnly, over: make(chan error, 2), said: make(chan struct{}, 1)}
	wakeR, wakeW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer wakeR.Close()
	j.wake = wakeR
	j.wg.Go(func() { j.guard(j.show) })
	if s.tty >= 0 || !readOnly {
		j.wg.Go(func() { j.guard(j.typeKeys) })
	}
	select {
	case err = <-j.over:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = wakeW.Close() // ends the wait for a key
	_ = line.Close()  // ends the wait for the console
	if j.inputEnds() {
		j.wg.Wait()
	}
	if j.panicked != nil {
		s.restore()
		panic(j.panicked)
	}
	return err
}

// joint is one drive.
type joint struct {
	*screen
	line     io.ReadWriteCloser
	keep     io.Writer
	readOnly bool
	wake     *os.File      // readable when the drive ends
	over     chan error    // the first one ends the drive
	said     chan struct{} // has one element when the console said something
	wg       sync.WaitGroup

	mu       sync.Mutex
	panicked any
}

// guard turns a panic of f into the end of the drive.
func (j *joint) guard(f func() error) {
	defer func() {
		if p := recover(); p != nil {
			j.mu.Lock()
			j.panicked = p
			j.mu.Unlock()
			j.over <- errors.New("panic")
		}
	}()
	j.over <- f()
}

// show passes the console's bytes to the person, and to keep.
func (j *joint) show() error {
	buf := make([]byte, 16<<10)
	for {
		n, err := j.line.Read(buf)
		if n > 0 {
			select {
			case j.said <- struct{}{}:
			default:
			}
			if _, e := j.keep.Write(buf[:n]); e != nil {
				j.say(e.Error() + "; it goes on without")
				j.keep = io.Discard
			}
			if _, e := j.out.Write(buf[:n]); e != nil {
				return e
			}
		}
		if err != nil {
			return &statusError{exitInfra, &consoleEnded{j.target, err}}
		}
	}
}

// inputEnds says that reading the input can be ended.
func (j *joint) inputEnds() bool {
	_, file := j.in.(*os.File)
	return file || j.readOnly && j.tty < 0
}

// typeKeys passes the input on until it ends.
func (j *joint) typeKeys() error {
	var k keys
	buf := make([]byte, 1024)
	for {
		n, err := j.input(buf)
		if j.tty < 0 {
			if _, e := j.line.Write(buf[:n]); n > 0 && e != nil {
				return &statusError{exitInfra, fmt.Errorf("target %s: %w", j.target, e)}
			}
		} else if left, e := j.keys(&k, buf[:n]); left || e != nil {
			return e
		}
		if errors.Is(err, io.EOF) {
			return j.quiet()
		}
		if err != nil {
			return err
		}
	}
}

// keys takes what was typed at a terminal; left says that the person wants out.
func (j *joint) keys(k *keys, typed []byte) (left bool, err error) {
	var pass []byte
	for _, c := range typed {
		if j.readOnly && c == 3 { // Ctrl-C
			return true, nil
		}
		b, cmd := k.add(c)
		pass = append(pass, b...)
		switch cmd {
		case keyLeave:
			return true, nil
		case keyHelp:
			j.say("after Enter: ~. leave, ~b send a break, ~~ type ~, ~? this")
		case keyBreak:
			j.sendBreak()
		}
	}
	if j.readOnly || len(pass) == 0 {
		return false, nil
	}
	if _, err := j.line.Write(pass); err != nil {
		return false, &statusError{exitInfra, fmt.Errorf("target %s: %w", j.target, err)}
	}
	return false, nil
}

func (j *joint) sendBreak() {
	b, ok := j.line.(targets.Breaker)
	switch {
	case j.readOnly:
		j.say("read-only: no break is sent")
	case !ok:
		j.say("this console cannot send a break")
	default:
		ctx, stop := context.WithTimeout(context.Background(), openTime)
		defer stop()
		if err := b.Break(ctx); err != nil {
			j.say("break: " + err.Error())
		}
	}
}

// input reads once, and ends with the drive.
func (j *joint) input(buf []byte) (int, error) {
	f, ok := j.in.(*os.File)
	if !ok {
		return j.in.Read(buf)
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}, {Fd: int32(j.wake.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case fds[1].Revents != 0:
			return 0, os.ErrClosed
		default:
			return f.Read(buf)
		}
	}
}

// quiet waits until the console has said nothing for a while.
func (j *joint) quiet() error {
	still, most := time.NewTimer(quietTime), time.NewTimer(quietMost)
	defer still.Stop()
	defer most.Stop()
	for {
		select {
		case <-j.said:
			still.Reset(quietTime)
		case <-still.C:
			return nil
		case <-most.C:
			return nil
		}
	}
}
