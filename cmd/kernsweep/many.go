package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plural"
	"kernsweep/targets"
)

// deed is what came of a command by hand at one target.
type deed struct {
	line   string // for people; "": nothing needs saying
	result any    // for --json
	err    error
	after  func() // ends what goes on after the result is known; nil: nothing does

	place  int
	name   string
	status int
	end    string // in a few words
	took   time.Duration
}

// deedObject is what --json prints of it.
type deedObject struct {
	Name    string  `json:"name"`
	Status  int     `json:"status"` // as an exit status of this target alone
	Error   string  `json:"error,omitempty"`
	Result  any     `json:"result,omitempty"`
	Seconds float64 `json:"seconds"`
}

// many does something at every target, says how it went as they end, and gives
// the exit status of all. w is where people are told.
func (a *app) many(ctx context.Context, on choice, l limits, w io.Writer, do func(context.Context, hand) deed) error {
	ended := make(chan deed, len(on.list))
	go func() {
		defer close(ended)
		a.each(ctx, on, l, func(tctx context.Context, i int, h hand) {
			d := do(tctx, h)
			d.place, d.name, d.took = i, h.t.Name, time.Since(h.turn)
			d.judge(ctx, tctx, h.reached)
			ended <- d
			if d.after != nil {
				d.after()
			}
		})
	}()
	var list *objects
	if a.json {
		list = newObjects(a.out)
	}
	all := make([]deed, len(on.list))
	var failed error
	for d := range ended {
		all[d.place] = d
		if d.err != nil && d.status != exitInterrupted {
			fmt.Fprintln(w, "kernsweep: "+live.Safe(atTarget(on.list[d.place], d.err).Error()))
		}
		if list == nil && d.line != "" {
			fmt.Fprintf(w, "%s: %s\n", d.name, live.Safe(d.line))
		} else if list != nil {
			o := deedObject{Name: d.name, Status: d.status, Result: d.result, Seconds: d.took.Seconds()}
			if d.err != nil {
				o.Error = live.Safe(d.err.Error())
			}
			failed = errors.Join(failed, list.add(o))
		}
	}
	if list != nil {
		failed = errors.Join(failed, list.close())
	}
	if failed != nil {
		return failed
	}
	return sumUp(all, on.one)
}

// judge finds the exit status: of the link, or of what was done over it.
func (d *deed) judge(all, own context.Context, reached bool) {
	var link *targets.LinkError
	var s *statusError
	_, late := context.Cause(own).(errTime)
	switch {
	case d.err == nil:
		d.status, d.end = 0, "done"
	case all.Err() != nil:
		d.status, d.end = exitInterrupted, "interrupted"
	case late && reached:
		d.status, d.end = exitFailed, "ended by --timeout"
	case !reached && !errors.As(d.err, &s):
		d.status, d.end = exitInfra, "not reached"
	case errors.As(d.err, &s):
		d.status, d.end = s.status, "failed"
		if !reached && s.status == exitInfra {
			d.end = "not reached"
		}
	case errors.As(d.err, &link):
		d.status, d.end = exitInfra, "link lost"
	default:
		d.status, d.end = exitFailed, "failed"
	}
}

// sumUp is nil when all went well. What was said already is not said again of a
// single target.
func sumUp(all []deed, one bool) error {
	ends := map[string][]string{}
	var statuses []int
	for _, d := range all {
		statuses = append(statuses, d.status)
		ends[d.end] = append(ends[d.end], d.name)
	}
	status := worst(statuses)
	if status == 0 {
		return nil
	}
	if one {
		return &statusError{status: status}
	}
	return &statusError{status, errors.New(tally(len(all), ends, "done"))}
}

// tally counts targets by how they ended: "3 targets: 2 done, 1 failed (r1)".
func tally(n int, ends map[string][]string, good string) string {
	order := make([]string, 0, len(ends))
	for end := range ends {
		order = append(order, end)
	}
	slices.SortFunc(order, func(a, b string) int {
		if n := len(ends[b]) - len(ends[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, end := range order {
		text := fmt.Sprintf("%d %s", len(ends[end]), end)
		if end != good {
			text += " (" + listed(ends[end]) + ")"
		}
		parts = append(parts, text)
	}
	return plural.Of(n, "target") + ": " + strings.Join(parts, ", ")
}
