package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

// runStatus is how a run stands; it is also what --json prints.
type runStatus struct {
	Run      string                  `json:"run"`
	State    string                  `json:"state"` // starting, running, ended, interrupted, not begun, died without a word, or unreadable
	Outcomes map[results.Outcome]int `json:"outcomes"`
	Missing  int                     `json:"missing"` // planned trials without any attempt
	Lanes    []laneStatus            `json:"lanes"`
	Notes    []string                `json:"notes,omitempty"` // what is wrong with its files, a sentence each
	Next     string                  `json:"next,omitempty"`

	cut      bool // --until left something out, of the run or of a rerun
	needless int  // trials that were skipped, and are not needed any more
}

type laneStatus struct {
	Name     string                  `json:"name"`
	State    string                  `json:"state"`
	Outcomes map[results.Outcome]int `json:"outcomes"`
	Missing  int                     `json:"missing"` // planned trials without any attempt
	Reason   string                  `json:"reason,omitempty"`
	Enough   string                  `json:"enough,omitempty"` // boots = "auto" came to its end: at what width
}

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "status [RUN]",
		Short:   "Which runs there are, how they stand, and what to do next; one line per lane of a run",
		Example: "  kernsweep status\n  kernsweep status latest",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			names := args
			if len(args) == 0 {
				var err error
				if names, err = results.List(a.runs); err != nil {
					return usage(err)
				}
				if len(names) == 0 {
					fmt.Fprintf(a.err, "no runs in %s yet; start one with: kernsweep run SWEEP\n", a.runs)
				}
			}
			var all []runStatus
			for _, n := range names {
				s, err := a.status(n)
				if err != nil && len(args) > 0 {
					return usage(err)
				}
				if err != nil {
					s = runStatus{Run: n, State: "unreadable", Notes: []string{err.Error()}}
				}
				all = append(all, s)
			}
			if a.json {
				e := json.NewEncoder(report.Inert(a.out))
				e.SetIndent("", "  ")
				return e.Encode(all)
			}
			for _, s := range all {
				a.printStatus(s, len(args) > 0)
			}
			if len(args) == 0 {
				a.printLeases()
			}
			return nil
		},
	}
}

// printLeases says who uses what on this machine; a folder that cannot be read
// says nothing, for status is about runs.
func (a *app) printLeases() {
	held, err := leases.List(leases.Find(a.env))
	if err != nil {
		return
	}
	for _, r := range held {
		fmt.Fprintf(a.out, "%s is used by %s since %s: %s\n", live.Safe(r.What), live.Safe(r.String()), r.Since.Local().Format("2006-01-02 15:04"), r.State)
	}
}

func (a *app) status(name string) (runStatus, error) {
	run, err := results.Find(a.runs, name)
	if err != nil {
		return runStatus{}, err
	}
	s, err := run.State()
	if err != nil {
		return runStatus{}, err
	}
	out := runStatus{Run: run.Name(), State: sessionState(run, s.Model), Outcomes: s.Model.Count(), Notes: s.Journal.Notes}
	if out.State == "starting" {
		out.Notes = nil // its journal is about to begin
	}
	left := map[string]int{} // trials, by target
	for _, c := range s.Plan.Cells {
		n := s.NotRun(c)
		left[c.Target] += n
		out.Missing += n
	}
	for _, l := range s.Model.Lanes {
		n := s.Model.CountLane(l.Name)
		lane := laneStatus{Name: l.Name, State: laneState(l, out.State, left[l.Name]), Outcomes: n, Missing: left[l.Name], Reason: l.Reason}
		if out.cut = out.cut || l.Cut != nil; l.Cut != nil && lane.Reason == "" {
			lane.Reason = strings.TrimPrefix(plan.CutText(l.Name, l.Cut), l.Name+": ")
		}
		if l.Enough != nil {
			lane.Enough = plan.EnoughText(l.Enough)
		}
		if l.Taken != "" && lane.Reason == "" {
			lane.Reason = l.Taken
		}
		out.Lanes = append(out.Lanes, lane)
	}
	if out.State == "running" {
		running(out.Outcomes)
		for _, l := range out.Lanes {
			running(l.Outcomes)
		}
	}
	out.needless = s.Needless()
	out.Next = a.next(out, run)
	return out, nil
}

// running names the trials that have no end yet while their controller lives.
func running(n map[results.Outcome]int) {
	if c := n[results.Interrupted]; c > 0 {
		n["running"] = c
		delete(n, results.Interrupted)
	}
}

func sessionState(run *results.Run, m *results.Model) string {
	_, held := run.HeldBy()
	switch {
	case len(m.Sessions) == 0 && held:
		return "starting"
	case len(m.Sessions) == 0:
		return "not begun"
	}
	last := m.Sessions[len(m.Sessions)-1]
	switch {
	case last.Interrupted:
		return "interrupted"
	case !last.Ended.IsZero():
		return "ended"
	case held:
		return "running"
	}
	return "died without a word"
}

// laneState is how a lane stands that has so many trials left.
func laneState(l *results.LaneState, run string, left int) string {
	switch {
	case l.Quarantined:
		return "quarantined"
	case !l.Ended.IsZero() && run == "interrupted" && left > 0:
		return run
	case !l.Ended.IsZero():
		return "ended"
	case run == "running" || run == "interrupted":
		return run
	}
	return "unfinished"
}

// next is the one command that a run asks for.
func (a *app) next(s runStatus, run *results.Run) string {
	if s.State == "running" || s.State == "starting" {
		return ""
	}
	bad := -s.needless
	for o, n := range s.Outcomes {
		if o != results.OK && o != results.NotApplicable {
			bad += n
		}
	}
	switch {
	case s.Missing > 0 || s.cut || s.State != "ended":
		return a.command("resume", run)
	case bad > 0:
		return a.command("rerun", run) + " --failed"
	}
	return a.command("report", run)
}

// sayNext is the last line of a session: what the run asks for, where it is more
// than to read the report. sayCuts has said it of what --until left out.
func (a *app) sayNext(run *results.Run) {
	s, err := a.status(run.Dir())
	if err != nil || s.cut || s.Next == a.command("report", run) {
		return
	}
	fmt.Fprintf(a.err, "run %s: %s; next: %s\n", s.Run, outcomeText(s.Outcomes, s.Missing), s.Next)
}

func (a *app) printStatus(s runStatus, lanes bool) {
	if s.Outcomes == nil {
		fmt.Fprintf(a.out, "%s  %s\n", s.Run, s.State)
	} else {
		fmt.Fprintf(a.out, "%s  %s  %s\n", s.Run, s.State, outcomeText(s.Outcomes, s.Missing))
	}
	if lanes {
		for _, l := range s.Lanes {
			fmt.Fprintf(a.out, "  %-16s %-12s %s\n", l.Name, l.State, outcomeText(l.Outcomes, l.Missing))
			for _, text := range []string{l.Enough, l.Reason} {
				if text != "" {
					fmt.Fprintf(a.out, "    %s\n", live.Safe(text))
				}
			}
		}
	}
	for _, n := range s.Notes {
		fmt.Fprintf(a.out, "  %s\n", live.Safe(n))
	}
	if s.Next != "" {
		fmt.Fprintf(a.out, "  next: %s\n", s.Next)
	}
}

func outcomeText(n map[results.Outcome]int, missing int) string {
	var s []string
	order := []results.Outcome{results.OK, results.Failed, results.BootFailed, results.Lost, results.Invalid, results.Interrupted, "running", results.Skipped, results.NotApplicable}
	for _, o := range order {
		if n[o] > 0 {
			s = append(s, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	if missing > 0 {
		s = append(s, fmt.Sprintf("%d not tried", missing))
	}
	if len(s) == 0 {
		return "nothing yet"
	}
	return strings.Join(s, ", ")
}
