package main

import (
	"strings"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/glance"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
)

// glance is a plan on one screen. again is the command that runs it, without the
// program's name and flags.
func (a *app) glance(lab *config.Lab, p *plan.Plan, f plan.Forecast, again string, begun bool) glance.Glance {
	held, err := leases.List(leases.Find(a.env))
	if err != nil {
		held = nil // a run says it, and begins without
	}
	return glance.Of(glance.Facts{Lab: lab, Plan: p, History: a.history(), Forecast: f, Runs: a.runs, Leases: held, Now: time.Now(), Begun: begun,
		Again: strings.TrimSpace(a.kernsweep() + " " + again), Prefix: a.kernsweep(), Mine: mine})
}
