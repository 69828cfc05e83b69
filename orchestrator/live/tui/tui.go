// Package tui shows a run on a terminal while another process executes it: a
// row per lane, the console of a lane, the log, and keys that ask the run's
// controller for something. It changes nothing by itself and reaches no target:
// what it shows is what the controller has recorded.
package tui

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
)

const (
	lookEvery    = 500 * time.Millisecond // between looks at a run
	consoleEvery = 250 * time.Millisecond // the same while a console is shown
	framesPerS   = 15                     // at most; nothing is drawn when nothing changed
	orphanTime   = 2 * time.Second        // a stop that does not happen is given up after
	lastWords    = 3 * time.Second        // for a terminal that takes nothing any more
)

// Source is a run to show, and what may be asked of its controller. The functions
// are called from one goroutine at a time, but for Ask.
type Source struct {
	// Look reads what is new: how the run stands, and the events since the last call.
	Look func() (live.View, []live.Event, error)
	// Console is the recording of a boot of a lane, which need not have begun.
	Console func(lane string, boot int) *live.Recording
	// Ask asks the run's controller: its answer, or its refusal.
	Ask func(ctx context.Context, r control.Request) (said string, err error)
	// Cannot says why nothing can be asked from here, "" when it can.
	Cannot func() string
	By     string // who asks, for the journal
	Report string // command lines for people to copy
	Resume string
}

// Show shows a run until the person leaves, ctx ends or the terminal is gone, and
// gives the terminal back as it was. It returns how the run stood last; the error
// is the cause of ctx, or the terminal's.
func Show(ctx context.Context, in, out *os.File, env []string, s Source) (live.View, error) {
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return live.View{}, fmt.Errorf("the terminal: %w", err)
	}
	st := &stopping{}
	// What a terminal answers to questions would be typed into the shell, if the
	// person is faster; over SSH none are asked, and so it is everywhere.
	env = append(env[:len(env):len(env)], "SSH_TTY=/dev/tty")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, s)
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(env),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerS), tea.WithFilter(st.filter))
	defer st.continued(p, in)()
	// Not by the program's own context: it would leave its reader behind.
	defer context.AfterFunc(ctx, p.Quit)()
	ended := make(chan error, 1)
	go func() {
		_, err := p.Run()
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		late := time.NewTimer(lastWords)
		defer late.Stop()
		select {
		case err = <-ended:
		case <-late.C: // it waits for a terminal that takes nothing
			_ = term.Restore(int(in.Fd()), state) // nothing else can be done for it
			return live.View{}, context.Cause(ctx)
		}
	}
	view := m.view // nobody changes it any more
	switch {
	case ctx.Err() != nil:
		return view, context.Cause(ctx)
	case m.failed != nil:
		return view, m.failed
	case err != nil:
		return view, fmt.Errorf("the terminal: %w", err)
	}
	return view, nil
}

// stopping knows whether the program was stopped by itself (Ctrl-Z).
type stopping struct{ itself atomic.Bool }

// filter sees what happens before the view does. A stop by Ctrl-Z that the kernel
// ignores, since no shell would wake the program again, is given up.
func (s *stopping) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	switch msg.(type) {
	case tea.SuspendMsg:
		s.itself.Store(true)
		time.AfterFunc(orphanTime, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGCONT) })
	case tea.ResumeMsg:
		s.itself.Store(false)
	case tea.ModeReportMsg:
		return nil // widths of characters are those of wcwidth(3), everywhere
	}
	return msg
}

// continued takes the terminal anew when the program was stopped from outside
// (kill -STOP) and goes on: the shell has changed it meanwhile.
func (s *stopping) continued(p *tea.Program, in *os.File) (stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGCONT)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range ch {
			if s.itself.Load() {
				continue // the library does it
			}
			_, _ = term.MakeRaw(int(in.Fd())) // its settings are restored as they were first
			go p.Send(tea.ClearScreen())      // which waits for the program, and ends with it
		}
	}()
	return func() {
		signal.Stop(ch)
		close(ch)
		<-done
	}
}
