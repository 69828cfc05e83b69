package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator/glance"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
)

const (
	mostRuns  = 10      // without --all
	pageLines = 22      // where the terminal's height is not known, less would be unkind
	lowDisk   = 2 << 30 // bytes, below which it is said
)

// statusAll tells of the newest runs what needs a person.
func (a *app) statusAll(ctx context.Context, all bool) error {
	names, err := results.List(a.runs)
	if err != nil {
		return usage(err)
	}
	if a.json {
		return a.printJSON(a.readRuns(ctx, names))
	}
	older := 0
	if n := len(names) - mostRuns; n > 0 && !all {
		older, names = n, names[n:]
	}
	slices.Reverse(names)
	list := a.readRuns(ctx, names)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := a.page()
	var last []string
	foot := func(say func(*page)) {
		q := *p
		q.lines = nil
		say(&q)
		last = append(last, q.lines...)
	}
	if older > 0 {
		foot(func(q *page) { q.do(0, plural.Of(older, "older run"), a.kernsweep()+" status --all") })
	}
	for _, l := range a.leaseLines(list) {
		foot(func(q *page) { q.say(0, l) })
	}
	if free := glance.Free(a.runs); free >= 0 && free < lowDisk {
		foot(func(q *page) {
			q.do(0, fmt.Sprintf("the disk is nearly full: %d MB free for %s", free>>20, a.runs), a.kernsweep()+" prune --dry-run")
		})
	}
	if len(names) == 0 {
		fmt.Fprintf(a.err, "no runs in %s yet; start one with: %s run SWEEP\n", a.runs, a.kernsweep())
	}
	for _, l := range append(p.fit(list, len(last)), last...) {
		fmt.Fprintln(a.out, l)
	}
	return nil
}

// readRuns reads runs, several at once; one that cannot be read says why.
func (a *app) readRuns(ctx context.Context, names []string) []runStatus {
	list := make([]runStatus, len(names))
	latest := ""
	if r, err := results.Latest(a.runs); err == nil {
		latest = r.Name()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // most of the time would be its
	short, seen, closely := map[string]int{}, map[string]int{}, make([]bool, len(names))
	for i, n := range names {
		short[results.Short(n)]++
		seen[sweepOf(n)]++
		closely[i] = a.json || seen[sweepOf(n)] <= 2 // the newest may be running
	}
	room := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			if ctx.Err() != nil {
				return
			}
			run, err := results.Find(a.runs, n)
			if err == nil {
				list[i], err = a.morning(run, n == latest, closely[i])
			}
			if err != nil {
				list[i] = runStatus{Run: n, State: "unreadable", Notes: []string{err.Error()}, name: n}
			}
			if short[list[i].Short] > 1 && list[i].name != "latest" {
				list[i].name = n
			}
		})
	}
	wg.Wait()
	return list
}

// sweepOf is the sweep that a run's name tells.
func sweepOf(run string) string {
	s := results.Short(run)
	if n := strings.LastIndexByte(s, '-'); n > 0 {
		return s[:n]
	}
	return run
}

// fit is the list on one screen: what needs a person stands with the newest run of
// each sweep, and with those that wait for somebody; the oldest give way first.
func (p *page) fit(list []runStatus, reserved int) []string {
	blocks := make([][]string, len(list)) // the head, then the details
	total, newest := reserved, map[string]bool{}
	for i := range list {
		s := &list[i]
		q := *p
		q.lines = nil
		q.say(0, p.head(s))
		head := len(q.lines)
		sweep := sweepOf(s.Run)
		if !newest[sweep] || s.State != "ended" {
			q.details(s)
		}
		if i > 0 && s.fine() {
			q.lines = q.lines[:head]
		}
		newest[sweep] = newest[sweep] || s.State != "running"
		blocks[i] = q.lines
		total += len(q.lines)
	}
	if p.height > 0 {
		for i := len(blocks) - 1; i > 0 && total > max(pageLines, p.height-2); i-- {
			total -= len(blocks[i]) - 1
			blocks[i] = blocks[i][:1]
		}
		for n := mostNeeds - 1; n > 0 && total > max(pageLines, p.height-2) && len(list) > 0; n-- {
			q := *p
			q.lines, q.needs = nil, n
			q.say(0, p.head(&list[0]))
			q.details(&list[0])
			total += len(q.lines) - len(blocks[0])
			blocks[0] = q.lines
		}
	}
	return slices.Concat(blocks...)
}

// leaseLines say who uses what on this machine, a line for each holder whose run is
// not listed already. A folder that cannot be read says nothing: this is about runs.
func (a *app) leaseLines(list []runStatus) []string {
	held, err := leases.List(leases.Find(a.env))
	if err != nil {
		return nil
	}
	var out []string
	told := map[string]bool{}
	for _, r := range held {
		who := fmt.Sprint(r.String(), r.State)
		if told[who] {
			continue
		}
		told[who] = true
		var what []string
		for _, o := range held {
			if name := strings.TrimPrefix(o.What, "target "); fmt.Sprint(o.String(), o.State) == who && !slices.Contains(what, name) {
				what = append(what, name)
			}
		}
		doing := "kernsweep " + r.Command
		if r.Run != "" {
			doing = "run " + results.Short(r.Run)
		}
		line := fmt.Sprintf("in use: %s, by %s on %s since %s: %s", listed(what), r.Owner, r.Host, clock(r.Since, time.Now()), doing)
		if r.State != leases.Held {
			line += " (" + r.State + ": the next who wants it gets it)"
		}
		out = append(out, line)
	}
	return out
}
