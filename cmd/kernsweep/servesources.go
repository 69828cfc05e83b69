package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/live/web"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/targets/console"
)

// configKept is how long a page may show targets as they were read.
const configKept = 3 * time.Second

// sources are what the page shows, as the other commands know it.
func (a *app) sources(steer bool) web.Sources {
	src := web.Sources{
		Runs:    a.runs,
		Status:  a.webStatus,
		Targets: a.webTargets(),
		Leases:  a.webLeases,
		Console: func(target string) (string, io.ReadCloser, error) { return console.Watch(a.runs, target) },
	}
	if steer {
		src.Ask = control.Ask
	}
	return src
}

// webStatus is what status tells of a run.
func (a *app) webStatus(run *results.Run) (web.Status, error) {
	state, err := run.Reading()
	if err != nil {
		return web.Status{}, err
	}
	s := a.statusOf(run, state)
	out := web.Status{Run: s.Run, Sweep: run.Meta.Sweep, State: s.State, Created: run.Meta.Created, Outcomes: s.Outcomes, Missing: s.Missing,
		Next: s.Next, Notes: s.Notes}
	if out.Live() {
		return out, nil
	}
	if n := len(state.Model.Sessions); n > 0 {
		exit := state.Model.ExitStatus()
		out.Exit, out.Ended = &exit, state.Model.Sessions[n-1].Ended
	}
	r := report.Of(run, state)
	out.Verdict = r.Tally()
	now := time.Now()
	for _, n := range r.Needs(s.Run, s.call) {
		out.Needs = append(out.Needs, web.Need{Text: n.Sentence(func(t time.Time) string { return clock(t, now) }), Command: n.Command})
	}
	if len(out.Needs) == 0 && s.Next != "" && s.Next != a.command("report", run) {
		out.Needs = []web.Need{{Text: s.State + ": " + live.Stand(s.Outcomes, s.Missing), Command: s.Next}}
	}
	return out, nil
}

// webTargets reads the configuration anew, but not for each who asks.
func (a *app) webTargets() func() ([]web.Target, error) {
	var mu sync.Mutex
	var read time.Time
	var list []web.Target
	var err error
	return func() ([]web.Target, error) {
		mu.Lock()
		defer mu.Unlock()
		if read.IsZero() || time.Since(read) > configKept {
			list, err = a.readTargets()
			read = time.Now()
		}
		return list, err
	}
}

func (a *app) readTargets() ([]web.Target, error) {
	var said bytes.Buffer
	quiet := *a
	quiet.err = &said
	lab, _, err := quiet.loadAll()
	if err != nil {
		first, _, _ := strings.Cut(said.String(), "\n")
		if first == "" {
			first = err.Error()
		}
		return nil, fmt.Errorf("only targets that are used now are known: %s", first)
	}
	var out []web.Target
	for _, t := range lab.Targets {
		out = append(out, web.Target{Name: t.Name, Class: t.Class, Arch: t.Arch, Address: orchestrator.AddressOf(t), Boot: t.BootKind, Power: t.PowerKind,
			Console: t.ConsoleKind, Virtual: targets.TraitsOf(t.Boot).Local, Rehearsal: a.webRehearsal(t)})
	}
	return out, nil
}

// webRehearsal is the newest of a target, nil when there is none.
func (a *app) webRehearsal(t *config.Target) *web.Rehearsal {
	r, err := orchestrator.LoadRehearsal(a.runs, t.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &web.Rehearsal{Text: err.Error()}
	}
	out := &web.Rehearsal{When: r.When, OK: true}
	switch failed := r.Failed(); {
	case failed != nil:
		out.OK, out.Text = false, failed.Name+": "+failed.Text
	case len(r.Steps) == 0:
		out.OK, out.Text = false, "it has no steps"
	case r.Address != orchestrator.AddressOf(t):
		out.OK, out.Text = false, "it was at another address, "+r.Address
	}
	return out
}

func (a *app) webLeases() ([]web.Lease, error) {
	held, err := leases.List(leases.Find(a.env))
	var out []web.Lease
	for _, r := range held {
		out = append(out, web.Lease{What: r.What, By: r.String(), Run: r.Run, Since: r.Since, State: r.State})
	}
	return out, err
}
