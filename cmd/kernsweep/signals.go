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
)

const (
	// samePress: a shell, sudo or timeout passes the Ctrl-C on that the terminal
	// has sent already.
	samePress = 50 * time.Millisecond
	// sayTime bounds what is said about a signal: a terminal may be stopped or gone.
	sayTime = 200 * time.Millisecond
)

// signalError is what ended a command.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string {
	switch e.sig {
	case syscall.SIGHUP:
		return "the terminal was closed (SIGHUP)"
	case syscall.SIGTERM:
		return "it was asked to end (SIGTERM)"
	}
	if r, ok := e.sig.(asking); ok {
		return r.String()
	}
	return "Ctrl-C (SIGINT)"
}

// Unwrap makes it the end of a context like any other.
func (e *signalError) Unwrap() error { return context.Canceled }

// signals ends a command: the first signal by its context, so that it leaves
// things in order; the second at once.
type signals struct {
	exit   func(status int)
	last   func(string) // shows the line before the exit
	detach bool         // a closed terminal is nobody's
	asked  chan asking  // what other processes ask
	done   chan struct{}

	mu     sync.Mutex
	say    func(string)           // shows a line
	first  func(why error) string // what is said of the first signal; nil: nothing
	second string
	to     func(os.Signal) // who gets the signals instead; nil: nobody
}

// newSignals watches for signals until stop. lines go to w.
func newSignals(ctx context.Context, w io.Writer, detached bool, exit func(int)) (s *signals, _ context.Context, stop func()) {
	plain := func(line string) { fmt.Fprintln(w, line) }
	s = &signals{exit: exit, detach: detached, say: plain, last: plain, asked: make(chan asking), done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // else nohup started it
		signal.Notify(ch, syscall.SIGHUP)
	}
	go func() {
		defer close(s.done)
		s.watch(ch, cancel)
	}()
	return s, ctx, func() {
		signal.Stop(ch)
		close(ch)
		<-s.done
		cancel(nil)
	}
}

func (s *signals) watch(ch <-chan os.Signal, cancel context.CancelCauseFunc) {
	var first time.Time
	for {
		var sig os.Signal
		var ok bool
		select {
		case sig, ok = <-ch:
			if !ok {
				return
			}
		case sig = <-s.asked:
		}
		why := &signalError{sig}
		request, asked := sig.(asking)
		s.mu.Lock()
		to := s.to
		s.mu.Unlock()
		switch {
		case to != nil && !asked:
			to(sig)
		case sig == syscall.SIGHUP && s.detach:
		case first.IsZero():
			first = time.Now()
			s.mu.Lock()
			line, say := "", s.say
			if s.first != nil {
				line = s.first(why)
			}
			s.mu.Unlock()
			tell(say, line)
			cancel(why)
			if asked && request.now {
				s.quit(samePress) // the answer goes out meanwhile
			}
		case sig == syscall.SIGHUP: // closing the terminal asks for nothing more
		case asked && !request.now: // it is being stopped
		case asked:
			s.quit(samePress)
		case time.Since(first) < samePress:
		default:
			s.quit(0)
		}
	}
}

// quit ends the process, after a moment.
func (s *signals) quit(after time.Duration) {
	s.mu.Lock()
	line := s.second
	s.mu.Unlock()
	tell(s.last, line)
	t := time.NewTimer(after)
	defer t.Stop()
	<-t.C
	s.exit(exitInterrupted)
}

// ask passes a request on as if it were a signal.
func (s *signals) ask(r asking) error {
	if s == nil {
		return errors.New("this process takes no signals")
	}
	select {
	case s.asked <- r:
		return nil
	case <-s.done:
		return errors.New("it is about to end")
	}
}

// tell shows a line, and does not wait for a terminal that takes none.
func tell(say func(string), line string) {
	if line == "" {
		return
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		say(line)
	}()
	t := time.NewTimer(sayTime)
	defer t.Stop()
	select {
	case <-said:
	case <-t.C:
	}
}

// set says what the lines for the two signals are, and who shows them (nil: as
// before). Without signals (in a test) it does nothing.
func (s *signals) set(say func(string), first func(error) string, second string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if say != nil {
		s.say = say
	}
	s.first, s.second = first, second
}

// passTo gives every signal to somebody else from now on.
func (s *signals) passTo(to func(os.Signal)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

// keepPipes makes a closed pipe an error of a write instead of the end of the
// process, until stop.
func keepPipes() (stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGPIPE)
	return func() { signal.Stop(ch) }
}
