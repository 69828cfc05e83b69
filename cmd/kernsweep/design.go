package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/plan"
)

// design are the flags that change how a sweep measures.
type design struct {
	boots        string
	repeat       int
	pilot, floor bool
}

func (d *design) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&d.boots, "boots", "", `boots of each kernel, or "auto", instead of the sweep's`)
	f.IntVar(&d.repeat, "repeat", 0, "trials of each cell inside one boot, instead of the sweep's")
	f.BoolVar(&d.pilot, "pilot", false, "a small run of all cells (3 boots, 5 trials in each): plan tells from it how many the sweep needs")
	f.BoolVar(&d.floor, "noise-floor", false, "each target's baseline kernel against itself, twice as many boots of it: how small a change the target can show")
}

// words are the flags as they may be given again.
func (d *design) words(c *cobra.Command) []string {
	var out []string
	for _, name := range []string{"boots", "repeat", "pilot", "noise-floor"} {
		if f := c.Flags().Lookup(name); f.Changed {
			out = append(out, "--"+name+"="+f.Value.String())
		}
	}
	return out
}

// mostBoots bounds what a command line may ask for, as the configuration does.
const mostBoots = 100_000

// changes are what the flags change; they must have been parsed by c.
func (d *design) changes(c *cobra.Command) (plan.Changes, error) {
	var out plan.Changes
	f := c.Flags()
	switch {
	case d.pilot && (f.Changed("boots") || f.Changed("repeat")):
		return out, errors.New("--pilot has its own number of boots and repeats: leave --boots and --repeat out")
	case d.pilot && d.floor:
		return out, errors.New("--pilot and --noise-floor are two runs: give one of them")
	case d.pilot:
		return plan.Pilot(), nil
	}
	out.NoiseFloor = d.floor
	if f.Changed("repeat") {
		if out.Repeat = d.repeat; d.repeat < 1 || d.repeat > mostBoots {
			return out, fmt.Errorf("--repeat %d: it must be from 1 to %d", d.repeat, mostBoots)
		}
	}
	switch {
	case !f.Changed("boots"):
	case d.boots == "auto":
		out.Auto = true
	default:
		n, err := strconv.Atoi(d.boots)
		if err != nil || n < 1 || n > mostBoots {
			return out, fmt.Errorf("--boots %q: write a number from 1 to %d, or auto", d.boots, mostBoots)
		}
		out.Boots = n
	}
	if out.Auto && out.NoiseFloor {
		return out, errors.New("a noise floor is measured with a fixed number of boots: give --boots a number")
	}
	return out, nil
}
