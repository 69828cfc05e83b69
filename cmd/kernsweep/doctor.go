package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/doctor"
	"kernsweep/orchestrator/live"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/tftp"
)

func (a *app) targetDoctorCmd() *cobra.Command {
	var kernel string
	var panics, hangs, console bool
	c := &cobra.Command{
		Use:   "doctor TARGET",
		Short: "Rehearse a target: console, transfer, boot, power and the way back, each step timed",
		Long: `Rehearse a target: walk through what an unattended night will need of it, and
time each step. The target is rebooted and switched off and on. --panic and
--hang also take its system down on purpose, to see that the fault is noticed and
that the way back works. What was found is kept; a sweep with "rehearsed" asks
for it.`,
		Example: "  kernsweep target doctor wl500gpv2\n  kernsweep target doctor x86 --kernel cfs_61 --panic --hang",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lab, t, err := a.pick(args[0])
			if err != nil {
				return err
			}
			known, boot, err := a.rehearsed(lab, t, kernel)
			if err != nil {
				return err
			}
			release, err := a.claimTargets(c.Context(), lab, t.Name)
			if err != nil {
				return err
			}
			defer release()
			o := a.doctorOptions(t, known, boot)
			o.Panic, o.Hang = panics, hangs
			if console {
				o.Console = safeWriter{a.err}
			}
			files := tftp.New(o.Log)
			defer files.Close()
			o.Serve = files.Serve
			steps, err := doctor.Walk(c.Context(), o)
			failed := slices.ContainsFunc(steps, func(s doctor.Step) bool { return s.State == doctor.Failed })
			if err != nil && !failed {
				return err // interrupted: what an earlier rehearsal found still holds
			}
			if e := a.keepRehearsal(t, steps); e != nil {
				return &statusError{exitInfra, e}
			}
			if err != nil {
				return err
			}
			return a.printRehearsal(t, steps)
		},
	}
	c.Flags().StringVar(&kernel, "kernel", "", "the kernel to boot by the boot method (default: the target's known_good, which it comes back to)")
	c.Flags().BoolVar(&panics, "panic", false, "crash the kernel, and see that it is noticed and that the target comes back")
	c.Flags().BoolVar(&hangs, "hang", false, "stop every process there, and see that the target comes back")
	c.Flags().BoolVar(&console, "console", false, "show the console meanwhile")
	return c
}

// rehearsed are the kernels of a rehearsal: the one to come back to, and the one
// to boot; nil where none is known.
func (a *app) rehearsed(lab *config.Lab, t *config.Target, name string) (known, boot *targets.Kernel, err error) {
	if t.KnownGood != "" {
		k, _ := lab.Kernel(t.KnownGood).For(t)
		known = &k
	}
	if name == "" {
		return known, known, nil
	}
	k := lab.Kernel(name)
	if k == nil {
		return nil, nil, usage(fmt.Errorf("%s has no kernel %q", a.file, name))
	}
	r, ok := k.For(t)
	if targets.TraitsOf(t.Boot).Image && !ok {
		return nil, nil, usage(fmt.Errorf("%s: kernel %s has no image for %s (%s)", k.Pos, k.Name, t.Name, t.Arch))
	}
	if known == nil {
		known = &r
	}
	return known, &r, nil
}

func (a *app) doctorOptions(t *config.Target, known, boot *targets.Kernel) doctor.Options {
	log := a.logger()
	own := *t
	if own.Power != nil && !targets.TraitsOf(t.Boot).Local {
		own.Power = orchestrator.SharedStrip(a.claims, own.Power)
	}
	o := doctor.Options{Target: &own, Known: known, Kernel: boot, Dial: sshconn.New(log).Dial, Agent: orchestrator.AgentBytes, Log: log,
		Kernsweep: a.kernsweep()}
	if a.json {
		o.Note = func(string) {}
		return o
	}
	fmt.Fprintf(a.out, "target %s (%s)\n", t.Name, t.Pos)
	o.Note = func(s string) { fmt.Fprintln(a.err, "  note: "+live.Safe(s)) }
	o.Step = func(s doctor.Step) { printStep(a.out, s) }
	return o
}

func printStep(w io.Writer, s doctor.Step) {
	word := string(s.State)
	if s.State == doctor.Failed {
		word = "FAILED"
	}
	took := ""
	if s.State != doctor.NA {
		took = s.Took.Round(10 * time.Millisecond).String()
	}
	text := strings.ReplaceAll(live.Safe(s.Text), "\n", "\n"+strings.Repeat(" ", 30))
	fmt.Fprintf(w, "  %-7s %-10s %8s  %s\n", word, s.Name, took, text)
	if s.Advice != "" {
		fmt.Fprintf(w, "  %-7s %-10s %8s  do: %s\n", "", "", "", s.Advice)
	}
}

// printRehearsal ends the list with what it means for a night.
func (a *app) printRehearsal(t *config.Target, steps []doctor.Step) error {
	if a.json {
		if err := a.printJSON(steps); err != nil {
			return err
		}
	}
	by := map[doctor.State][]string{}
	for _, s := range steps {
		by[s.State] = append(by[s.State], s.Name)
	}
	failed, not := by[doctor.Failed], by[doctor.NA]
	if len(failed) > 0 {
		return &statusError{exitInfra, fmt.Errorf("target %s is not ready for a night: %s failed", t.Name, strings.Join(failed, ", "))}
	}
	switch {
	case a.json:
	case len(not) > 0:
		fmt.Fprintf(a.out, "%s is rehearsed, but for: %s\n", t.Name, strings.Join(not, ", "))
	default:
		fmt.Fprintf(a.out, "%s is rehearsed\n", t.Name)
	}
	return nil
}

// keepRehearsal stores what was found, also when it was cut short.
func (a *app) keepRehearsal(t *config.Target, steps []doctor.Step) error {
	r := orchestrator.Rehearsal{Target: t.Name, Address: orchestrator.AddressOf(t), When: time.Now(), Version: version()}
	for _, s := range steps {
		r.Steps = append(r.Steps, orchestrator.RehearsalStep{Name: s.Name, Took: s.Took,
			OK: s.State == doctor.OK, NA: s.State == doctor.NA, Text: s.Text})
	}
	return r.Save(a.runs)
}
