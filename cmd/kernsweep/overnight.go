package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
)

const (
	progressMost = 1 << 20 // bytes of progress that wait for a terminal that is stopped
	reportMost   = 1 << 30 // bytes of a report that wait for whoever reads it
	outputWait   = time.Second
)

// overnight makes a run independent of the terminal, and of whoever sits at it:
// output never holds it up, a signal ends it in good order, and the machine stays
// awake. done is called when the run has ended.
func (a *app) overnight(ctx context.Context, run *results.Run, note func(string)) (done func()) {
	a.pipes = keepPipes()
	stderr, stdout := newOutlet(rawOutput(a.err), progressMost), newOutlet(rawOutput(a.out), reportMost)
	a.err, a.out = said{stderr}, stdout
	a.outlets = append(a.outlets, stdout, stderr)
	stderr.onError(func(err error) { note(fmt.Sprintf("progress is shown no more: %v", err)) })
	stdout.onError(func(err error) {
		text := fmt.Sprintf("standard output takes no report (%v): kernsweep report %s has it", err, paste.Word(run.Name()))
		note(text)
		fmt.Fprintln(said{stderr}, "kernsweep: "+text)
	})
	a.announce(run, nil)
	awake := sleepless{root: "/", warn: func(s string) { note("warning: " + s); fmt.Fprintln(said{stderr}, "warning: "+s) }}
	release := awake.hold("run " + run.Name())
	return func() {
		release()
		a.signals.set(nil, nil, "quitting at once; "+a.command("report", run)+" has what was measured")
	}
}

// rawOutput is what stands behind the check of other commands' output, and
// behind what makes our words inert.
func rawOutput(w io.Writer) io.Writer {
	switch x := w.(type) {
	case *checked:
		return x.w
	case said:
		return x.w
	}
	return w
}

// announce says what the next signals do to the run; say shows it.
func (a *app) announce(run *results.Run, say func(string)) {
	a.signals.set(say, func(why error) string {
		return fmt.Sprintf("kernsweep: %v: nothing more is started; what runs on the targets is ended and collected, within 30 s "+
			"(longer only to bring a target back to its known-good kernel). Ctrl-C again quits at once", why)
	}, "kernsweep: quitting at once, the targets stay as they are; "+a.command("resume", run)+" puts them in order and goes on")
}

// unattended says that nobody needs to stay, and lets the parent of a detached run go.
func (a *app) unattended(ctx context.Context, run *results.Run) error {
	if a.detached == nil {
		return nil
	}
	fmt.Fprintf(a.err, "run %s goes on by itself, with its output in %s/%s\n  follow it: %s\n  stop it:   %s\n",
		paste.Word(run.Name()), paste.Word(run.Dir()), outputFile, a.command("watch", run), a.command("stop", run))
	ctx, stop := context.WithTimeout(ctx, outputWait)
	defer stop()
	for _, o := range a.outlets {
		o.drain(ctx)
	}
	return a.detached.away(run)
}

// closeOutlets waits until a run's output is taken: as long as somebody may read
// it, or a moment after a signal.
func (a *app) closeOutlets(ctx context.Context) {
	for _, o := range a.outlets {
		func() {
			wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
			defer cancel()
			unhook := context.AfterFunc(ctx, func() {
				t := time.NewTimer(outputWait)
				defer t.Stop()
				select {
				case <-t.C:
					cancel()
				case <-wait.Done():
				}
			})
			defer unhook()
			o.close(wait)
		}()
	}
	if a.pipes != nil {
		a.pipes()
	}
}

// detachable gives commands that execute a run the flag --detach.
func (a *app) detachable(root *cobra.Command, names ...string) {
	for _, c := range root.Commands() {
		for _, n := range names {
			if c.Name() != n {
				continue
			}
			run := c.RunE
			detach := c.Flags().Bool("detach", false, "go on after logout: return when the preflight is over; see watch, status and stop")
			c.RunE = func(c *cobra.Command, args []string) error {
				if *detach && a.detached == nil {
					return a.detach(c.Context())
				}
				return run(c, args)
			}
			if !strings.Contains(c.Example, "--detach") {
				c.Example += "\n  kernsweep " + strings.Fields(c.Use)[0] + " " + exampleArgument(c) + " --detach"
			}
		}
	}
}

func exampleArgument(c *cobra.Command) string {
	if strings.Contains(c.Use, "SWEEP") {
		return "overnight"
	}
	return "latest"
}
