package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// untilFlag adds --until to a command.
func untilFlag(c *cobra.Command, to *string) {
	c.Flags().Var((*deadlineText)(to), "until", `begin nothing that would not be over by then: "07:00" (the next one), "2026-12-01 07:00", RFC 3339, or a duration ("8h")`)
}

// deadlineText is the text of --until. An empty one is refused: it is a variable
// of the shell that was not set, and would mean a night without an end.
type deadlineText string

func (d *deadlineText) String() string { return string(*d) }
func (d *deadlineText) Type() string   { return "string" }

func (d *deadlineText) Set(s string) error {
	if s == "" {
		return errors.New("it is empty: write a time of day (07:00) or a duration (8h)")
	}
	*d = deadlineText(s)
	return nil
}

// until is the time that --until names, with what of p is over by then; zero
// without the flag. A text that is no future time is a usage error.
func (a *app) until(lab *config.Lab, p *plan.Plan, text string) (plan.Forecast, error) {
	if text == "" {
		return plan.Forecast{}, nil
	}
	now := time.Now()
	zone, err := a.zone()
	if _, e := time.ParseDuration(text); err != nil && e == nil {
		zone, err = time.UTC, nil
	}
	if err != nil {
		return plan.Forecast{}, usage(fmt.Errorf("--until %s: %w", text, err))
	}
	d, err := plan.ParseUntil(text, now, zone)
	if err != nil {
		return plan.Forecast{}, usage(fmt.Errorf("--until: %w", err))
	}
	return plan.ForecastUntil(lab, p, a.history(), d, now), nil
}

// beginUntil is until for a session that is about to begin: it says what fits, and
// refuses when nothing does.
func (a *app) beginUntil(lab *config.Lab, p *plan.Plan, text string) (plan.Forecast, error) {
	f, err := a.until(lab, p, text)
	if err != nil || text == "" {
		return f, err
	}
	if err := f.Nothing(); err != nil {
		return f, usage(err)
	}
	return f, f.WriteText(a.err)
}

// zone is the time zone of whoever gives the command. One that is not understood
// is an error: Go would take it for UTC.
func (a *app) zone() (*time.Location, error) {
	tz, set := a.env("TZ")
	name := strings.TrimPrefix(tz, ":")
	switch {
	case !set:
		return time.Local, nil
	case name == "" || name == "UTC0" || name == "GMT0":
		return time.UTC, nil
	}
	loc, err := time.LoadLocation(name)
	if filepath.IsAbs(name) {
		var raw []byte
		if raw, err = os.ReadFile(name); err == nil {
			loc, err = time.LoadLocationFromTZData(filepath.Base(name), raw)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("TZ=%s is no time zone that is known here (Europe/Berlin would be one; are the zone files installed?): set TZ, or give a duration (%q)", tz, "8h")
	}
	return loc, nil
}

// sayCuts says what --until left out, and how to have it.
func (a *app) sayCuts(run *results.Run) {
	state, err := run.State()
	if err != nil {
		return // the exit status tells
	}
	n := 0
	for _, l := range state.Model.Lanes {
		if l.Cut != nil {
			fmt.Fprintln(a.err, plan.CutText(l.Name, l.Cut))
			n++
		}
	}
	if n > 0 {
		fmt.Fprintf(a.err, "kernsweep resume %s goes on with what was left out\n", paste.Word(run.Name()))
	}
}
