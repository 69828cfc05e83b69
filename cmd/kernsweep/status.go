package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

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

	Short    string        `json:"short"`              // its name without the time, which is understood too
	Began    time.Time     `json:"began,omitzero"`     // the newest session; zero: none has
	Ended    time.Time     `json:"ended,omitzero"`     // that session, or when it was heard of last
	Seconds  float64       `json:"seconds,omitempty"`  // that all its sessions took so far
	LeftS    float64       `json:"left_s,omitempty"`   // estimated, of one that runs
	Why      string        `json:"why,omitempty"`      // it was interrupted
	Needs    []report.Need `json:"needs,omitempty"`    // what asks for a person
	Verdict  string        `json:"verdict,omitempty"`  // "bfs faster on 3, same on 1"
	Imported bool          `json:"imported,omitempty"` // from other people's logs

	call     string // how commands about it begin
	name     string // what they call it
	whole    bool   // it goes by its whole name
	cut      bool   // --until left something out, of the run or of a rerun
	needless int    // trials that were skipped, and are not needed any more
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
	var all bool
	c := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Which runs there are, how they ended, what needs you and the command for it; one line per lane of a run",
		Long: `Which runs there are, how they ended, what needs you, and the command for it, the newest first. With RUN, a line per
lane and whatever is wrong with it. RUN is a name, a beginning of it with its time or without, a path, or "latest".

Nothing is contacted. Exit status: 0 when the runs could be read, whatever they say.`,
		Example: "  kernsweep status\n  kernsweep status latest",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.statusOne(args[0])
			}
			return a.statusAll(c.Context(), all)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all runs, not only the newest ten")
	return c
}

// statusOne tells all that is wrong with one run.
func (a *app) statusOne(name string) error {
	run, err := a.findRun(name)
	if err != nil {
		return err
	}
	s, err := a.morning(run, a.isLatest(run), true)
	if err != nil {
		return usage(err)
	}
	if a.json {
		return a.printJSON([]runStatus{s})
	}
	a.printStatus(s, true)
	return nil
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(report.Inert(a.out))
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// status is how a run stands, without what follows from it.
func (a *app) status(name string) (runStatus, error) {
	run, err := results.Find(a.runs, name)
	if err != nil {
		return runStatus{}, err
	}
	s, err := run.Reading()
	if err != nil {
		return runStatus{}, err
	}
	return a.statusOf(run, s), nil
}

// morning is status with what needs a person, and the verdicts; of a run that ended
// only where it is to be looked at closely, for that takes as long as reading it.
func (a *app) morning(run *results.Run, latest, closely bool) (runStatus, error) {
	s, err := run.Reading()
	if err != nil {
		return runStatus{}, err
	}
	out := a.statusOf(run, s)
	if out.name = out.Short; latest {
		out.name = "latest"
	}
	if !closely && out.State == "ended" {
		return out, nil
	}
	r := report.Of(run, s)
	out.Needs, out.Verdict = r.Needs(out.name, out.call), r.Tally()
	if out.State == "running" {
		out.LeftS = left(run).Seconds()
	}
	return out, nil
}

func (a *app) statusOf(run *results.Run, s *results.State) runStatus {
	out := runStatus{Run: run.Name(), State: sessionState(run, s.Model), Outcomes: s.Model.Count(), Notes: s.Journal.Notes,
		Short: results.Short(run.Name()), Imported: run.Meta.Imported != nil, call: a.calledFor(run), name: run.Name()}
	out.times(run, s.Model.Sessions)
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
		if lane.State == "paused" {
			lane.Reason = fmt.Sprintf("paused since %s %s", l.Paused.Local().Format("15:04"), l.PausedBy)
		}
		if l.Taken != "" && lane.Reason == "" {
			lane.Reason = l.Taken
		}
		byHand(n, s.Model.ByHand(l.Name))
		out.Lanes = append(out.Lanes, lane)
	}
	byHand(out.Outcomes, s.Model.ByHand(""))
	if out.State == "running" {
		running(out.Outcomes)
		for _, l := range out.Lanes {
			running(l.Outcomes)
		}
	}
	out.needless = s.Needless()
	out.Next = a.next(out, run)
	return out
}

// byHand tells the trials that a person skipped from those skipped for a failure.
func byHand(n map[results.Outcome]int, c int) {
	if c == 0 {
		return
	}
	n[results.SkippedByHand] = c
	if n[results.Skipped] -= c; n[results.Skipped] == 0 {
		delete(n, results.Skipped)
	}
}

// running names the trials that have no end yet while their controller lives.
func running(n map[results.Outcome]int) {
	if c := n[results.Interrupted]; c > 0 {
		n[live.Going] = c
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
	case run == "running" && !l.Paused.IsZero():
		return "paused"
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
		if o != results.OK && o != results.NotApplicable && o != results.SkippedByHand { // that was somebody's will
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
	fmt.Fprintf(a.err, "run %s: %s; next: %s\n", s.Run, live.Stand(s.Outcomes, s.Missing), s.Next)
}
