package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/glance"
	"kernsweep/orchestrator/plan"
)

// selection are the flags that narrow a sweep.
type selection struct {
	plan.Filter
	design
	changed plan.Changes // what the design's flags say
	seed    int64
	until   string
}

func (s *selection) flags(c *cobra.Command) {
	filterFlags(c, &s.Filter)
	s.design.flags(c)
	untilFlag(c, &s.until)
	c.PreRunE = func(c *cobra.Command, _ []string) (err error) {
		if s.changed, err = s.changes(c); err != nil {
			return usage(err)
		}
		return nil
	}
	c.Flags().Int64Var(&s.seed, "seed", 0, "seed of the order (default: the sweep's own, else drawn and recorded)")
}

// filterFlags are the flags that choose part of a plan.
func filterFlags(c *cobra.Command, to *plan.Filter) {
	f := c.Flags()
	f.StringArrayVar(&to.Targets, "target", nil, "only these targets: name, glob, class:NAME, label:NAME, with \"!\" before it not those (repeatable)")
	f.StringSliceVar(&to.Kernels, "kernel", nil, "only these kernels, with commas between (repeatable)")
	f.StringSliceVar(&to.Workloads, "workload", nil, "only these workloads: KIND, KIND.NAME or NAME, with commas between (repeatable)")
}

func (a *app) planCmd() *cobra.Command {
	var sel selection
	var order bool
	c := &cobra.Command{
		Use:   "plan SWEEP",
		Short: "Show the night at a glance: a row for each lane, the time, and what stands against it",
		Long: `Show the night at a glance: a row for each lane, what stands against it with the command for each, and when it
would be over. Nothing is contacted. --order also prints every boot and trial in order, and each cell that is n/a;
the same seed gives the same order.

ABOUT is how long a lane takes, BY what says so: "runs" (earlier runs took as long), "part" (they tell of some of it),
"file" (durations in the configuration) or "guess" (allowances for boots that nobody has seen). FITS are the blocks that
are over before --until. BACK BY is what brings a target back after a crash or a hang: its power driver, the magic SysRq
key, or nobody; a virtual target is started anew.`,
		Example: "  kernsweep plan quick\n  kernsweep plan overnight --until 07:00\n  kernsweep plan overnight --target wl500gpv2 --seed 7 --order",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			lab, p, err := a.expand(args[0], sel)
			if err != nil {
				return err
			}
			f, err := a.until(lab, p, sel.until)
			if err != nil {
				return err
			}
			if err = a.writePlan(lab, p, f, sel, order); err == nil && f.Nothing() != nil {
				err = usage(f.Nothing())
			}
			return errors.Join(err, a.notReady(lab, p))
		},
	}
	sel.flags(c)
	c.Flags().BoolVar(&order, "order", false, "also print every boot and trial in order, and each cell that is n/a")
	return c
}

// writePlan prints a plan, and what of it fits where there is such a question. The
// glance comes last, where the eye is.
func (a *app) writePlan(lab *config.Lab, p *plan.Plan, f plan.Forecast, sel selection, order bool) error {
	proposals, g := a.proposals(lab, p), a.glance(lab, p, f, "run "+p.Sweep, false)
	if a.json {
		doc := struct {
			*plan.Plan
			Until     *plan.Forecast  `json:"until,omitempty"`
			Proposals []plan.Proposal `json:"proposals,omitempty"` // repeat and boots, from earlier runs
			Glance    glance.Glance   `json:"glance"`
		}{Plan: p, Proposals: proposals, Glance: g}
		if len(f.Lanes) > 0 {
			doc.Until = &f
		}
		return a.printJSON(doc)
	}
	write := p.WriteHead
	if order {
		write = p.WriteText
	}
	err := write(a.out)
	if err == nil && !p.Design.NoiseFloor {
		err = p.WriteProposals(a.out, proposals, a.pilotTakes(lab, p, sel.Filter))
	}
	if err == nil && len(f.Lanes) > 0 {
		err = f.WriteText(a.out)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	return g.WriteText(a.out)
}

// expand loads the configuration and makes the plan of a sweep.
func (a *app) expand(sweep string, sel selection) (*config.Lab, *plan.Plan, error) {
	lab, err := a.load()
	if err != nil {
		return nil, nil, err
	}
	s := lab.Sweep(sweep)
	if s == nil {
		var have []string
		for _, s := range lab.Sweeps {
			have = append(have, s.Name)
		}
		return nil, nil, usage(fmt.Errorf("%s has no sweep %q; it has %s", a.file, sweep, strings.Join(have, ", ")))
	}
	seed := sel.seed
	if seed == 0 {
		seed = s.Seed
	}
	if seed == 0 {
		seed = drawSeed()
	}
	filter, err := a.chosen(lab, sel.Filter)
	if err != nil {
		return nil, nil, err
	}
	p, err := sel.changed.Expand(lab, s, seed, filter, a.history())
	if err != nil {
		if p != nil {
			_ = p.WriteText(a.err)
		}
		return nil, nil, usage(err)
	}
	return lab, p, nil
}

// drawSeed gives a seed that people can read aloud.
func drawSeed() int64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24 and later)
	return int64(binary.LittleEndian.Uint32(b[:])%999_999) + 1
}

// notReady is what keeps a plan from being run: image files that are missing,
// and rehearsals that the sweep demands. Nothing is contacted for it.
func (a *app) notReady(lab *config.Lab, p *plan.Plan) error {
	err := missingImages(lab, p)
	if e := orchestrator.CheckRehearsals(a.runs, lab, p, time.Now()); e != nil {
		err = errors.Join(err, usage(e))
	}
	return err
}

// missingMost is how many missing files are named.
const missingMost = 8

func missingImages(lab *config.Lab, p *plan.Plan) error {
	missing := orchestrator.MissingImages(lab, p)
	n := len(missing)
	if n == 0 {
		return nil
	}
	if n > missingMost {
		missing = append(missing[:missingMost:missingMost], fmt.Sprintf("and %d more", n-missingMost))
	}
	return usage(fmt.Errorf("%d image files that this plan needs cannot be used:\n  %s\nthe virtual lab's are made by scripts/lab",
		n, strings.Join(missing, "\n  ")))
}
