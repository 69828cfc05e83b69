package main

import (
	"fmt"
	"os"
	"os/user"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
)

// claim makes the plan's targets ours before anything is written.
func (a *app) claim(lab *config.Lab, p *plan.Plan) (release func(), err error) {
	release, err = orchestrator.Claim(a.runs, holder(), lab, p)
	if err != nil {
		return nil, &statusError{exitInfra, err}
	}
	return release, nil
}

// holder is how others name this process.
func holder() string {
	return fmt.Sprintf("of %s, process %d, since %s", who(), os.Getpid(), time.Now().UTC().Format("2006-01-02 15:04 UTC"))
}

func who() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}
