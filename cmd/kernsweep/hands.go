package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
)

// choosing is what the help of commands by hand says of their targets.
const choosing = `A target is chosen by name, by a
glob ('ar*'), by class (class:router), by label (label:rack2), by "all", or by several
of these with commas or spaces between; "!" takes away again ('all,!ar2317').`

// dialsAtOnce bounds the log-ins under way. They cost the controller about 1 ms
// of CPU each, and mostly wait; more at once only makes each of them later.
func dialsAtOnce() int { return max(32, 16*runtime.NumCPU()) }

// choice is what a command by hand works on.
type choice struct {
	lab  *config.Lab
	list []*config.Target // in the order of the files
	one  bool             // exactly one target was named, by its name
}

// choose loads the configuration and finds the targets that words name.
func (a *app) choose(words []string) (choice, error) {
	lab, err := a.load()
	if err != nil {
		return choice{}, err
	}
	list, err := lab.Choose(words...)
	if err != nil {
		return choice{}, usage(fmt.Errorf("%s: %w", a.file, err))
	}
	return choice{lab, list, len(words) == 1 && lab.Target(words[0]) != nil}, nil
}

// names are those of the targets.
func (c choice) names() []string {
	return named(c.list, func(t *config.Target) string { return t.Name })
}

// dashed takes a command line apart at "--". Without one its first word names
// the targets.
func dashed(c *cobra.Command, args []string, what string) (names, rest []string, err error) {
	at := c.ArgsLenAtDash()
	switch {
	case at < 0 && len(args) > 1:
		return args[:1], args[1:], nil
	case at == 0:
		return nil, nil, usage(fmt.Errorf("%s: name the targets before --, %s after it; usage: %s", c.CommandPath(), what, c.UseLine()))
	case at < 0 || at == len(args):
		return nil, nil, usage(fmt.Errorf("%s: %s is missing; usage: %s", c.CommandPath(), what, c.UseLine()))
	}
	return args[:at], args[at:], nil
}

// forgotDash finds a target where a command line has no "--" and something else
// is meant to stand.
func (c choice) forgotDash(cmd *cobra.Command, rest []string, what string) error {
	if cmd.ArgsLenAtDash() >= 0 || c.lab.Target(rest[0]) == nil {
		return nil
	}
	return usage(fmt.Errorf("%s is a target too: write -- between the targets and %s", rest[0], what))
}

// limits of a command on several targets.
type limits struct {
	timeout  time.Duration
	parallel int
}

func (l *limits) flags(c *cobra.Command) {
	c.Flags().DurationVar(&l.timeout, "timeout", 0, "give up on a target after this long, such as 30s or 5m (default: never, once it has answered)")
	c.Flags().IntVar(&l.parallel, "parallel", 0, "targets at once (default: all)")
}

func (l *limits) check() error {
	if l.timeout < 0 || l.parallel < 0 {
		return usage(errors.New("--timeout and --parallel cannot be negative"))
	}
	return nil
}

// hand is a command by hand at one target.
type hand struct {
	*app // whose words are labelled with the target's name
	t    *config.Target
	ssh  *sshconn.Dialer
	gate chan struct{} // log-ins under way
	all  io.Writer     // standard error of all targets, whole lines at a time
	*trace
}

// lines are further words about the target, such as its console, which are not to
// be mixed with ours in one line.
func (h hand) lines(to io.Writer) *labelled {
	return &labelled{name: h.t.Name, to: to, inert: true}
}

// trace is how far a command came at its target.
type trace struct {
	turn    time.Time // when its log-in began
	reached bool
}

// begins says that the command does something at its target from now on.
func (h hand) begins() { h.turn, h.reached = time.Now(), true }

// reach dials the target, and waits for its turn first.
func (h hand) reach(ctx context.Context) (targets.Conn, error) {
	select {
	case h.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.gate }()
	h.turn = time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, handTime, fmt.Errorf("no connection within %s", handTime))
	defer cancel()
	conn, err := h.reachBy(ctx, h.ssh, h.t, nil)
	h.reached = err == nil
	return conn, err
}

// each does something at every target, at all of them at once unless limited, and
// returns when it is done everywhere. Each target has its own deadline.
func (a *app) each(ctx context.Context, c choice, l limits, do func(context.Context, int, hand)) {
	room := make(chan struct{}, max(1, len(c.list)))
	if l.parallel > 0 {
		room = make(chan struct{}, l.parallel)
	}
	gate := make(chan struct{}, dialsAtOnce())
	words := &oneWriter{w: a.err}
	ssh := sshconn.New(a.logger()) // what it learns of known hosts serves all
	var wg sync.WaitGroup
	for i, t := range c.list {
		own := *a
		if !c.one {
			own.err = &labelled{name: t.Name, to: words, inert: true, own: true}
		}
		wg.Go(func() {
			select {
			case room <- struct{}{}:
				defer func() { <-room }()
			case <-ctx.Done(): // do says so
			}
			ctx, cancel := ctx, context.CancelFunc(func() {})
			if l.timeout > 0 {
				ctx, cancel = context.WithTimeoutCause(ctx, l.timeout, errTime{l.timeout})
			}
			defer cancel()
			do(ctx, i, hand{&own, t, ssh, gate, words, &trace{turn: time.Now()}})
			if w, ok := own.err.(io.Closer); ok && !c.one {
				_ = w.Close() // standard error; nobody could be told
			}
		})
	}
	wg.Wait()
}

// errTime is the end of --timeout.
type errTime struct{ after time.Duration }

func (e errTime) Error() string { return "--timeout " + e.after.String() + " is over" }

// worst is the exit status of several: an interruption, then infrastructure, then
// a failure.
func worst(statuses []int) int {
	rank := func(s int) int {
		switch s {
		case exitInterrupted:
			return 3
		case exitInfra:
			return 2
		case 0:
			return 0
		}
		return 1
	}
	worst := 0
	for _, s := range statuses {
		if rank(s) > rank(worst) {
			worst = s
		}
	}
	return worst
}

// list names things for people: "a, b and 12 more".
func listed(names []string) string {
	const most = 8
	if len(names) > most+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
