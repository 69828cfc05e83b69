package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/store"
)

func (a *app) pruneCmd() *cobra.Command {
	var age, limit string
	o := store.Pruning{Keep: -1}
	c := &cobra.Command{
		Use:   "prune",
		Short: "Remove stored images that no run refers to, and, when asked to, old runs",
		Long: `Remove from the folder of the runs what no run refers to any more: images and agents in its store, and what
writes that were cut off left behind. Runs are removed only when asked to: --older-than removes those that
nobody has written to for so long, --keep N all but the newest N, --max-size the oldest until the folder is small
enough. With --older-than or --max-size, --keep N spares the newest N from them.

The newest run stays, and so does a run in use. While a run cannot be read, or is of a newer format, the store
stays as it is, for that run may need any of it.`,
		Example: "  kernsweep prune --dry-run\n  kernsweep prune --older-than 30d --keep 10\n  kernsweep prune --max-size 20G",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if c.Flags().Changed("older-than") {
				if o.OlderThan, err = parseAge(age); err != nil {
					return usage(fmt.Errorf("--older-than %s: %w", age, err))
				}
			}
			if c.Flags().Changed("max-size") {
				if o.MaxSize, err = parseSize(limit); err != nil {
					return usage(fmt.Errorf("--max-size %s: %w", limit, err))
				}
			}
			if c.Flags().Changed("keep") && o.Keep < 0 {
				return usage(fmt.Errorf("--keep %d: write how many runs stay", o.Keep))
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
	f.BoolVar(&o.DryRun, "dry-run", false, "only print what would go")
	return c
}

func (a *app) printPruned(p store.Pruned) error {
	for _, w := range p.Warnings {
		fmt.Fprintln(a.err, "warning: "+live.Safe(w))
	}
	if a.json {
		e := json.NewEncoder(report.Inert(a.out))
		e.SetIndent("", "  ")
		return e.Encode(p)
	}
	for _, r := range p.Removed {
		fmt.Fprintf(a.out, "%-9s %s  %s: %s\n", r.What, live.Safe(r.Name), store.Bytes(r.Bytes), r.Why)
	}
	verb := "freed"
	if p.DryRun {
		verb = "would be freed"
	}
	_, err := fmt.Fprintf(a.out, "%s %s\n", store.Bytes(p.Bytes), verb)
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
