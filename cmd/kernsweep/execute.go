package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/validity"
	"kernsweep/targets/localconn"
	"kernsweep/targets/qemu"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/tftp"
)

// beginning is how a session of a run begins.
type beginning struct {
	resume bool          // it goes on where the controller before it stopped
	why    string        // for the journal; "" = the run's first
	seen   int           // records of the journal that the plan was made from; 0: not looked at
	until  time.Time     // begin nothing that would not be over by then; zero: whenever
	fits   plan.Forecast // what of it is over by then
}

// execute runs a plan into a run directory, shows progress, and ends with the
// report. Its error carries the run's exit status.
func (a *app) execute(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run, b beginning) error {
	w, err := a.openWriter(ctx, run)
	if err != nil {
		return &statusError{exitInfra, err}
	}
	defer w.Close()
	if err := a.nameRun(ctx, run, w); err != nil {
		return err
	}
	if n := len(w.Before.Records); b.seen > 0 && n != b.seen {
		return &statusError{exitInfra, fmt.Errorf("run %s went on while this was planned (%d records, now %d): give the command again", paste.Word(run.Name()), b.seen, n)}
	}
	before := results.Load(w.Before.Records)
	if n := len(before.Sessions) + 1; n > 1 && !b.resume {
		if err := run.WriteSessionPlan(n, p); err != nil {
			return err
		}
	}
	note := func(s string) {
		_, _ = w.Append(context.WithoutCancel(ctx), results.Record{Kind: results.KindNote, Note: s})
	}
	defer a.overnight(ctx, run, note)()
	if err := qemu.EndLeft(ctx, note); err != nil {
		note("guests of earlier controllers: " + err.Error())
	}
	hands, free := a.steerable(ctx, run, note)
	defer free()
	log := a.logger()
	dialer := sshconn.New(log)
	fmt.Fprintf(a.err, "run %s: %s, %s, %s\n\n", run.Dir(), plural.Of(p.Boots(), "boot"), plural.Of(p.Trials(), "trial"), p.Takes())
	files := tftp.New(log)
	defer files.Close()
	a.preflight(ctx, lab, p, b, run, dialer.Dial, files.Serve, note)
	if err := a.unattended(ctx, run); err != nil {
		return err
	}
	view := a.view(p)
	a.announce(run, view.Say)
	tell := a.notifier(lab, run, note)
	r := &orchestrator.Runner{Lab: lab, Plan: p, Run: run, Journal: w, Before: before, Dial: dialer.Dial, Serve: files.Serve,
		Local: localconn.New(), Log: log, Until: b.until, History: a.history(), Observe: both(view.Observe, tell.Observe),
		Resume: b.resume, Why: b.why, Leases: a.claims}
	hands.begin(r)
	runErr := r.Execute(ctx)
	view.Close()
	a.keepNoise(run)
	if err := a.writeReport(run); err != nil {
		fmt.Fprintln(a.err, "kernsweep: the report could not be written:", err)
	}
	a.sayCuts(run)
	a.sayNext(run)
	verdict := a.verdict(ctx, run, runErr)
	a.tellEnd(ctx, tell, run, verdict)
	return verdict
}

// verdict is the error that carries the exit status of a session.
func (a *app) verdict(ctx context.Context, run *results.Run, runErr error) error {
	switch {
	case ctx.Err() != nil: // whatever else went wrong
		return &statusError{status: exitInterrupted}
	case runErr != nil:
		return &statusError{exitInfra, runErr}
	}
	return a.finish(run)
}

// keepNoise keeps what an A/A run says of its targets' noise, and says it.
func (a *app) keepNoise(run *results.Run) {
	said, err := compare.KeepNoise(run, validity.Run)
	for _, s := range said {
		fmt.Fprintln(a.err, live.Safe(s))
	}
	if err != nil {
		fmt.Fprintln(a.err, "kernsweep: the noise floors are not kept:", live.Safe(err.Error()))
	}
}

// both shows a record to two.
func both(one, other func(results.Record)) func(results.Record) {
	return func(rec results.Record) { one(rec); other(rec) }
}

// openWriter makes this process the run's one writer, and says what it waits for
// and what it finds wrong.
func (a *app) openWriter(ctx context.Context, run *results.Run) (*results.Writer, error) {
	say := func(s string) { fmt.Fprintln(a.err, "kernsweep: "+live.Safe(s)) }
	w, err := run.OpenWriterContext(ctx, who(), say)
	if err != nil {
		return nil, err
	}
	for _, n := range w.Before.Notes {
		if len(w.Before.Records) > 0 { // of a new run there is nothing to say
			say("journal: " + n)
		}
	}
	return w, nil
}

// observer shows records as they become durable.
type observer interface {
	Observe(results.Record)
	Say(line string)
	Close()
}

func (a *app) view(p *plan.Plan) observer {
	t := live.NewTracker(time.Now(), rows(p))
	if width, ok := a.terminal(); ok {
		return live.NewScreen(rawOutput(a.err), t, width, time.Now)
	}
	return &live.Plain{W: a.err, Tracker: t}
}

// rows are a plan's lanes as they are shown.
func rows(p *plan.Plan) []live.Lane {
	var lanes []live.Lane
	for _, l := range p.Lanes {
		n := live.Lane{Name: l.Target, Boots: len(l.Boots), Estimate: l.Estimate}
		for _, b := range l.Boots {
			n.Trials += len(b.Trials)
		}
		lanes = append(lanes, n)
	}
	return lanes
}

// writeReport leaves report.txt and report.html in the run directory and prints
// the text. On a terminal the verdicts are said once more: what a person finds
// there in the morning is the last screen.
func (a *app) writeReport(run *results.Run) error {
	r, err := report.Read(run)
	if err != nil {
		return err
	}
	for name, o := range map[string]report.Options{"report.txt": {Format: "text", Kernsweep: a.kernsweep()}, "report.html": {Format: "html", Kernsweep: a.kernsweep()}} {
		err = errors.Join(err, writeFileFrom(filepath.Join(run.Dir(), name), func(w io.Writer) error { return r.Write(w, o) }))
	}
	err = errors.Join(err, r.Write(a.out, a.reportOptions(report.Options{Format: "text"})))
	if _, ok := a.terminal(); ok {
		fmt.Fprintln(a.err)
		err = errors.Join(err, r.Write(a.err, a.reportOptions(report.Options{Format: "verdicts"})))
	}
	return err
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
