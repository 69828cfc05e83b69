package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
)

const (
	preflightTime = time.Minute // for the whole preflight, for all targets at once
	preflightMost = 32          // checks under way at once
)

// Level says whether a finding keeps anybody from going home.
type Level string

// The levels of a finding.
const (
	Fine    Level = "ok"
	Warning Level = "warning"
	Unsafe  Level = "NOT SAFE"
)

// Finding is what the preflight says of one target, or of the controller.
type Finding struct {
	Target string // "" = the controller
	Level  Level
	Text   string // what was seen, or what is wrong
	Do     string // what to do about it; "" when it is fine
	// Command is one that helps with it, to be pasted; "" = none does.
	Command string
}

// cmd is a command line of ours.
func (p *Preflight) cmd(format string, args ...any) string {
	return strings.TrimSpace(p.Kernsweep + " " + fmt.Sprintf(format, args...))
}

// Preflight looks, before a run, for what would spoil the night. It changes
// nothing on a target, and switches nothing.
type Preflight struct {
	Lab   *config.Lab
	Plan  *plan.Plan
	Dial  targets.DialFunc
	Serve targets.ServeFunc // nil: no TFTP server is tried
	// Claims are the leases of this run; Held those that anybody has.
	Claims *Claims
	Held   []leases.Record
	Mine   func(leases.Record) bool
	// Quiet only logs in: a trial that an earlier session began may still be running.
	Quiet bool
	// Kernsweep begins the commands that findings propose.
	Kernsweep string
	Bound     time.Duration // of the whole; 0: a minute
	Now       func() time.Time
}

// check is one question. Its answers count when it ends in time.
type check struct {
	target, what string
	ask          func(context.Context) []Finding
}

// Run asks everything at once and returns after Bound at the latest, even where a
// driver or a target never answers: what is not known by then is a warning. A
// virtual target is not started. The findings stand in the plan's order of targets.
func (p *Preflight) Run(ctx context.Context) []Finding {
	bound := p.Bound
	if bound <= 0 {
		bound = preflightTime
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	ctx, stop := context.WithTimeout(ctx, bound)
	defer stop()
	// What asks ends a little earlier, so that its own words are heard.
	asking, enough := context.WithTimeoutCause(ctx, bound*9/10, fmt.Errorf("no answer within %s", (bound*9/10).Round(time.Millisecond)))
	defer enough()
	checks := p.checks()
	answers := newAnswers(len(checks))
	go answers.ask(asking, checks)
	select {
	case <-answers.done:
	case <-ctx.Done():
	}
	return p.sorted(p.so(answers, checks))
}

// checks are the questions of a plan.
func (p *Preflight) checks() []check {
	var out []check
	var names []string
	for _, l := range p.Plan.Lanes {
		if t := p.Lab.Target(l.Target); t != nil {
			out = append(out, p.laneChecks(l, t)...)
			names = append(names, l.Target)
		}
	}
	for _, l := range p.Plan.Lanes {
		for _, n := range peersOf(p.Lab, l) {
			if t := p.Lab.Target(n); t != nil && !slices.Contains(names, n) {
				names = append(names, n)
				out = append(out, check{n, "whether it answers as a peer", func(ctx context.Context) []Finding { return p.reach(ctx, plan.Lane{Target: n}, t) }})
			}
		}
	}
	return append(out, check{"", "the controller's tools", func(context.Context) []Finding { return p.controller() }})
}

// answers are what the checks found so far.
type answers struct {
	done chan struct{}

	mu    sync.Mutex
	found [][]Finding
	ended []bool
}

func newAnswers(n int) *answers {
	return &answers{done: make(chan struct{}), found: make([][]Finding, n), ended: make([]bool, n)}
}

func (a *answers) ask(ctx context.Context, checks []check) {
	defer close(a.done)
	var all sync.WaitGroup
	room := make(chan struct{}, preflightMost)
	for i, c := range checks {
		all.Go(func() {
			select {
			case room <- struct{}{}:
				defer func() { <-room }()
			case <-ctx.Done():
				return
			}
			found := c.ask(ctx)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.found[i], a.ended[i] = found, true
		})
	}
	all.Wait()
}

// so is what is known now; a check that has not ended is a finding itself.
func (p *Preflight) so(a *answers, checks []check) []Finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Finding
	for i, c := range checks {
		if a.ended[i] {
			out = append(out, a.found[i]...)
			continue
		}
		out = append(out, Finding{Target: c.target, Level: Warning, Text: "not known in time: " + c.what, Do: "try it by hand before you leave:",
			Command: p.cmd("target doctor %s", c.target)})
	}
	return out
}

// sorted puts the findings into the order of the plan's targets, and joins what is
// fine about one.
func (p *Preflight) sorted(found []Finding) []Finding {
	var names []string
	for _, f := range found {
		if !slices.Contains(names, f.Target) && f.Target != "" {
			names = append(names, f.Target)
		}
	}
	var out []Finding
	for _, n := range append(names, "") {
		var fine []string
		var rest []Finding
		for _, f := range found {
			switch {
			case f.Target != n:
			case f.Level == Fine:
				fine = append(fine, f.Text)
			default:
				rest = append(rest, f)
			}
		}
		if len(fine) > 0 && (n != "" || len(rest) > 0) {
			out = append(out, Finding{Target: n, Level: Fine, Text: strings.Join(fine, ", ")})
		}
		out = append(out, rest...)
	}
	return out
}
