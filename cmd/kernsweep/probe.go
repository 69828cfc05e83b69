package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
)

func (a *app) targetProbeCmd() *cobra.Command {
	var keep, anyway bool
	c := &cobra.Command{
		Use:   "probe TARGET",
		Short: "Look at what runs on a target, and at what is no more as its block says",
		Long: `Look at what runs on a target: kernel, scheduler and the evidence for it, CPU,
tools. A line "drift:" for each thing that is not as the file says, with its
place there; a line "changed:" for what was otherwise when the target was added
or first probed. --keep makes today's look the one to compare with.

Exit status: 0 without drift, 1 with drift, 3 when the target is not reached or
a run measures it now. What only changed since is shown, and is no drift.`,
		Example: "  kernsweep target probe ar2317\n  kernsweep target probe ar2317 --json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return a.probe(c.Context(), args[0], keep, anyway) },
	}
	c.Flags().BoolVar(&anyway, "anyway", false, "also on a target that a run measures now")
	c.Flags().BoolVar(&keep, "keep", false, "from now on, show changes since today")
	return c
}

// probed is what target probe says, beside the record of what runs.
type probed struct {
	targets.BootRecord
	Drift   []orchestrator.Drift  `json:"drift"`
	Changed []orchestrator.Change `json:"changed"`
	Since   string                `json:"since,omitempty"` // when Changed was otherwise
	Facts   []targets.Fact        `json:"facts"`
}

func (a *app) probe(ctx context.Context, name string, keep, anyway bool) error {
	lab, t, err := a.pick(name)
	if err != nil {
		return err
	}
	adder, err := a.adder()
	if err != nil {
		return err
	}
	if err := a.undisturbed(ctx, choice{list: []*config.Target{t}, one: true}, anyway); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, handTime)
	defer cancel()
	s, err := a.surveyOf(ctx, t)
	if err != nil {
		return err
	}
	p := probed{BootRecord: s.Running, Facts: s.Facts(), Changed: []orchestrator.Change{},
		Drift: orchestrator.FindDrift(lab, t, s, func(path ...string) config.Pos { return adder.At(t.Name, path...) })}
	if err := a.compareSurvey(t, s, keep, &p); err != nil {
		return &statusError{exitInfra, err}
	}
	if err := a.printProbed(t, s, p); err != nil {
		return err
	}
	if len(p.Drift) > 0 {
		return &statusError{status: exitFailed}
	}
	return nil
}

// surveyOf looks at a target of the file.
func (a *app) surveyOf(ctx context.Context, t *config.Target) (*targets.Survey, error) {
	var server targets.ServerFacts
	conn, err := a.reachBy(ctx, sshconn.New(a.logger()), t, func(f targets.ServerFacts) { server = f })
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	s, err := targets.TakeSurvey(ctx, conn)
	if err != nil {
		return nil, &statusError{exitInfra, fmt.Errorf("target %s: probe: %w", t.Name, err)}
	}
	s.Server = server
	return s, nil
}

// compareSurvey says what has changed since the survey that is kept, and keeps
// this one where there is none, or where that is asked for.
func (a *app) compareSurvey(t *config.Target, s *targets.Survey, keep bool, p *probed) error {
	k, err := orchestrator.LoadSurvey(a.runs, t.Name)
	switch {
	case keep, errors.Is(err, fs.ErrNotExist):
		k = &orchestrator.KeptSurvey{Target: t.Name, Address: orchestrator.AddressOf(t), Version: version(), Survey: s}
		return k.Save(a.runs)
	case err != nil:
		return err
	case k.Address != orchestrator.AddressOf(t):
		p.Changed = []orchestrator.Change{{What: "address", Was: k.Address, Is: orchestrator.AddressOf(t)}}
	}
	p.Since = k.Survey.Taken.Local().Format("2006-01-02")
	p.Changed = append(p.Changed, orchestrator.Changes(k.Survey, s)...)
	return nil
}

func (a *app) printProbed(t *config.Target, s *targets.Survey, p probed) error {
	if a.json {
		return a.printJSON(p)
	}
	if err := a.printProbe(t, p.BootRecord); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	printFacts(a.out, slices.DeleteFunc(p.Facts, func(f targets.Fact) bool {
		return slices.Contains([]string{"kernel", "scheduler", "iperf2", "iperf3", "memory"}, f.Name) // said above
	}))
	if s.Cut != "" {
		wrap(a.out, "note", "this is not everything: "+s.Cut)
	}
	fmt.Fprintln(a.out)
	fold := func(s string) string { return live.Fold(live.Safe(s), foldWidth(rawOutput(a.out)), "  ") }
	for _, c := range p.Changed {
		fmt.Fprintln(a.out, fold(fmt.Sprintf("changed: %s: was %s on %s, is %s", c.What, c.Was, p.Since, c.Is)))
	}
	for _, d := range p.Drift {
		fmt.Fprintln(a.out, fold(fmt.Sprintf("drift: %s: %s", d.Pos, d.Text)))
	}
	if len(p.Drift) == 0 {
		fmt.Fprintf(a.out, "no drift: %s is as %s says\n", t.Name, t.Pos)
	}
	return nil
}

func (a *app) printProbe(t *config.Target, r targets.BootRecord) error {
	if a.json {
		return a.printJSON(r)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	width := foldWidth(rawOutput(a.out)) - len("has sftp-server  ") // the widest name
	line := func(name, value string) {
		for i, l := range live.Words(live.Safe(value), width) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "%s\t%s\n", name, l)
		}
	}
	line("target", t.Name)
	line("kernel", r.Release+" "+r.Version)
	line("machine", fmt.Sprintf("%s, GOARCH %s, %d CPUs, %d MB", r.Machine, dash(r.Arch), r.CPUs, r.MemoryKB/1024))
	line("scheduler", strings.TrimSpace(dash(r.Scheduler.Name)+" "+r.Scheduler.Detail))
	for _, e := range r.Scheduler.Evidence {
		line("", e)
	}
	for _, e := range r.Scheduler.Conflicts {
		line("conflict", e)
	}
	line("boot_id", r.BootID)
	line("command line", r.Cmdline)
	for _, name := range slices.Sorted(maps.Keys(r.Tools)) {
		line("has "+name, r.Tools[name])
	}
	for _, n := range r.Notes {
		line("note", n)
	}
	return w.Flush()
}
