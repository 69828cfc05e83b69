package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
	"kernsweep/targets/localconn"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/tftp"
)

// retryPause is the first pause after an infrastructure failure.
const retryPause = 5 * time.Second

func (a *app) runCmd() *cobra.Command {
	var sel selection
	c := &cobra.Command{
		Use:   "run SWEEP",
		Short: "Run a sweep and print its report",
		Long: `Run a sweep and print its report.

Ctrl-C once stops cleanly: nothing more is started, what ran is kept and marked.
Ctrl-C twice stops at once. Either way, what is missing can be had by rerun --failed.

Exit status: 0 all trials ok, 1 a kernel or workload failed, 2 usage or configuration,
3 a target was lost, 130 interrupted.`,
		Example: "  kernsweep run quick\n  kernsweep run overnight --target wl500gpv2 --workload iperf",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lab, p, err := a.expand(args[0], sel)
			if err != nil {
				return err
			}
			if err := a.notReady(lab, p); err != nil {
				return err
			}
			release, err := a.claim(lab, p)
			if err != nil {
				return err
			}
			defer release()
			run, err := a.createRun(lab, p, args)
			if err != nil {
				return err
			}
			return a.execute(c.Context(), lab, p, run)
		},
	}
	sel.flags(c)
	return c
}

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

// createRun makes the run directory with everything that is known beforehand.
func (a *app) createRun(lab *config.Lab, p *plan.Plan, command []string) (*results.Run, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	images, err := imageHashes(lab, p)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	host, _ := os.Hostname()
	run, err := results.Create(a.runs, p.Sweep, results.RunMeta{
		Who: who(), Host: host, Version: version(), Command: append([]string{"run"}, command...), Seed: p.Seed,
		PlanHash: hex.EncodeToString(sum[:]), Images: images,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	if err := run.WriteFile("testbeds.hcl", sourceCopy(lab)); err != nil {
		return nil, err
	}
	return run, run.WritePlan(orchestrator.Summary(lab, p), p)
}

func who() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// imageHashes are the SHA-256 of every image file of the plan, by path.
func imageHashes(lab *config.Lab, p *plan.Plan) (map[string]string, error) {
	out := map[string]string{}
	for _, f := range orchestrator.ImageFiles(lab, p) {
		h, err := hashFile(f)
		if err != nil {
			return nil, err
		}
		out[f] = h
	}
	return out, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// execute runs a plan into a run directory, shows progress, and ends with the
// report. Its error carries the run's exit status.
func (a *app) execute(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run) error {
	state, err := run.State()
	if err != nil {
		return err
	}
	w, err := run.OpenWriter(who())
	if err != nil {
		return &statusError{exitInfra, err}
	}
	defer w.Close()
	log := a.logger()
	dialer := sshconn.New(log)
	fmt.Fprintf(a.err, "run %s: %d boots, %d trials, about %s\n", run.Dir(), p.Boots(), p.Trials(), plan.Round(p.Estimate()))
	a.preflight(ctx, lab, p, dialer)
	files := tftp.New(log)
	defer files.Close()
	view := a.view(p)
	r := &orchestrator.Runner{Lab: lab, Plan: p, Run: run, Journal: w, Before: state.Model, Dial: dialer.Dial, Serve: files.Serve,
		Local: localconn.New(), Log: log, Pause: retryPause, Observe: view.Observe}
	runErr := r.Execute(ctx)
	view.Close()
	if err := a.writeReport(run); err != nil {
		fmt.Fprintln(a.err, "kernsweep: the report could not be written:", err)
	}
	if runErr != nil && ctx.Err() == nil {
		return &statusError{exitInfra, runErr}
	}
	return a.finish(run)
}

// preflight says what is reached and whether anybody may go home.
func (a *app) preflight(ctx context.Context, lab *config.Lab, p *plan.Plan, d *sshconn.Dialer) {
	safe := true
	for _, f := range orchestrator.Preflight(ctx, lab, p, d.Dial) {
		fmt.Fprintf(a.err, "  %s: %s\n", f.Target, live.Safe(f.Text))
		safe = safe && f.Safe
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(a.err, "  %s\n", w)
	}
	if safe {
		fmt.Fprintln(a.err, "safe to leave")
	} else {
		fmt.Fprintln(a.err, "NOT safe to leave: a target is not reached, or lacks a program; the others go on without it")
	}
}

// observer shows records as they become durable.
type observer interface {
	Observe(results.Record)
	Close()
}

func (a *app) view(p *plan.Plan) observer {
	var lanes []live.Lane
	for _, l := range p.Lanes {
		n := live.Lane{Name: l.Target, Boots: len(l.Boots), Estimate: l.Estimate}
		for _, b := range l.Boots {
			n.Trials += len(b.Trials)
		}
		lanes = append(lanes, n)
	}
	t := live.NewTracker(time.Now(), lanes)
	if width, ok := a.terminal(); ok {
		return live.NewScreen(a.err, t, width, time.Now)
	}
	return &live.Plain{W: a.err, Tracker: t}
}

// writeReport leaves report.txt in the run directory and prints the same.
func (a *app) writeReport(run *results.Run) error {
	o := report.Options{Format: "text"}
	err := writeFileFrom(filepath.Join(run.Dir(), "report.txt"), func(w io.Writer) error { return report.Write(w, run, o) })
	return errors.Join(err, report.Write(a.out, run, a.reportOptions(o)))
}

// finish turns the run's final state into the exit status.
func (a *app) finish(run *results.Run) error {
	state, err := run.State()
	if err != nil {
		return err
	}
	if s := state.Model.ExitStatus(); s != 0 {
		return &statusError{status: s}
	}
	return nil
}
