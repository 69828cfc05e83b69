package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/store"
)

func (a *app) pruneCmd() *cobra.Command {
	var age, limit, storeAge, storeLimit string
	o := store.Pruning{Keep: -1}
	c := &cobra.Command{
		Use:   "prune",
		Short: "Remove stored images that no run refers to, and, when asked to, old runs",
		Long: `Remove from the folder of the runs what no run refers to any more: images and agents in its store, and what
writes that were cut off left behind. Runs are removed only when asked to: --older-than removes those that
nobody has written to for so long, --keep N all but the newest N, --max-size the oldest until the folder is small
enough. With --older-than or --max-size, --keep N spares the newest N from them.

Of the store, what no run refers to goes, and nothing else. Some of it may be spared, for runs to come:
--store-older-than removes only what was put there longer ago, --store-max-size only the oldest until the rest is
small enough, --store-keep N never the newest N.

Rehearsals and noise floors are small, and stay: another configuration may share the folder.

The newest run stays, and so does a run in use. While a run cannot be read, or is of a newer format, the store
stays as it is, for that run may need any of it.`,
		Example: "  kernsweep prune --dry-run\n  kernsweep prune --older-than 30d --keep 10\n  kernsweep prune --max-size 20G\n  kernsweep prune --store-older-than 30d --store-max-size 5G",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, f := range []struct {
				name, text string
				age        *time.Duration
				size       *int64
			}{{"older-than", age, &o.OlderThan, nil}, {"store-older-than", storeAge, &o.Store.OlderThan, nil},
				{"max-size", limit, nil, &o.MaxSize}, {"store-max-size", storeLimit, nil, &o.Store.MaxSize}} {
				if err := pruneFlag(c, f.name, f.text, f.age, f.size); err != nil {
					return err
				}
			}
			if c.Flags().Changed("keep") && o.Keep < 0 {
				return usage(fmt.Errorf("--keep %d: write how many runs stay", o.Keep))
			}
			if o.Store.Keep < 0 {
				return usage(fmt.Errorf("--store-keep %d: write how many entries stay", o.Store.Keep))
			}
			o.Now = time.Now()
			done, err := store.Prune(c.Context(), a.runs, o)
			if e := a.printPruned(done); err == nil {
				err = e
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&age, "older-than", "", "remove runs that were not written to for so long: 12h, 30d, 8w")
	f.IntVar(&o.Keep, "keep", -1, "remove all but the newest N runs, or spare these from the other flags")
	f.StringVar(&limit, "max-size", "", "remove the oldest runs until the folder takes no more than this: 500M, 20G, 1T")
	f.StringVar(&storeAge, "store-older-than", "", "of what no run refers to, only what was put there longer ago: 12h, 30d, 8w")
	f.IntVar(&o.Store.Keep, "store-keep", 0, "of what no run refers to, spare the newest N")
	f.StringVar(&storeLimit, "store-max-size", "", "of what no run refers to, only the oldest, until the rest takes no more than this: 500M, 20G, 1T")
	f.BoolVar(&o.DryRun, "dry-run", false, "only print what would go")
	return c
}

// pruneFlag reads the text of a flag that was given, as an age or as a size.
func pruneFlag(c *cobra.Command, name, text string, age *time.Duration, size *int64) (err error) {
	switch {
	case !c.Flags().Changed(name):
	case age != nil:
		*age, err = parseAge(text)
	default:
		*size, err = parseSize(text)
	}
	if err != nil {
		return usage(fmt.Errorf("--%s %s: %w", name, text, err))
	}
	return nil
}

func (a *app) printPruned(p store.Pruned) error {
	for _, w := range p.Warnings {
		fmt.Fprintln(a.err, "warning: "+live.Safe(w))
	}
	if a.json {
		return a.printJSON(p)
	}
	for _, r := range p.Removed {
		fmt.Fprintf(a.out, "%-9s %s  %s: %s\n", r.What, live.Safe(r.Name), store.Bytes(r.Bytes), r.Why)
	}
	verb := "freed"
	if p.DryRun {
		verb = "would be freed"
	}
	what := ""
	for _, kind := range []struct{ what, one string }{{"run", "run"}, {"store", "store file"}, {"leftover", "leftover"}} {
		n := 0
		for _, r := range p.Removed {
			if r.What == kind.what {
				n++
			}
		}
		if n > 0 {
			what += ", " + plural.Of(n, kind.one)
		}
	}
	if what != "" {
		what = " (" + strings.TrimPrefix(what, ", ") + ")"
	}
	_, err := fmt.Fprintf(a.out, "%s %s%s; left: %s, %s with the store\n", store.Bytes(p.Bytes), verb, what, plural.Of(p.Runs, "run"), store.Bytes(p.Stay))
	return err
}

// parseAge reads a duration that may also be in days and weeks.
func parseAge(s string) (time.Duration, error) {
	unit := map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[s[max(0, len(s)-1):]]
	var d time.Duration
	if unit == 0 {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			return 0, fmt.Errorf("write a number and a unit: 12h, 30d, 8w")
		}
	} else {
		n, err := strconv.ParseFloat(s[:len(s)-1], 64)
		if err != nil || !(n*float64(unit) < math.MaxInt64) {
			return 0, fmt.Errorf("write a number and a unit: 12h, 30d, 8w")
		}
		d = time.Duration(n * float64(unit))
	}
	if d <= 0 {
		return 0, fmt.Errorf("an age is more than nothing: 12h, 30d, 8w")
	}
	return d, nil
}

// parseSize reads bytes, or a number with K, M, G or T (of 1024).
func parseSize(s string) (int64, error) {
	number := strings.ToUpper(s)
	number = strings.TrimSuffix(strings.TrimSuffix(number, "B"), "I")
	shift := 0
	// A bare number would be so many bytes, and remove nearly everything.
	if i := strings.IndexAny(number, "KMGT"); i >= 0 && i == len(number)-1 {
		shift = 10 * (1 + strings.IndexByte("KMGT", number[i]))
		number = number[:i]
	}
	n, err := strconv.ParseFloat(number, 64)
	bytes := n * float64(int64(1)<<shift)
	if err != nil || shift == 0 || !(bytes >= 1 && bytes < math.MaxInt64) {
		return 0, fmt.Errorf("write a number and a unit: 500M, 20G, 1T")
	}
	return int64(bytes), nil
}
