package main

import (
	"slices"

	"github.com/spf13/cobra"
)

func (a *app) runCmd() *cobra.Command {
	var sel selection
	c := &cobra.Command{
		Use:   "run SWEEP",
		Short: "Run a sweep and print its report",
		Long: `Run a sweep and print its report.

Ctrl-C once stops cleanly, within 30 s: nothing more is started, what runs is ended, kept and marked. Only bringing
a real target back to its known-good kernel may take longer, and is announced. Ctrl-C twice stops at once. SIGTERM
and a closed terminal are like the first Ctrl-C; with --detach the run survives logout. resume RUN goes on.

With --until nothing is begun that would not be over by then, the way home included: no block unless the whole
of it fits, and inside a block that runs late no boot and no trial. How long things take is what this run has
seen of them, else earlier runs, else their settings. What is left out is said, counts for nothing in the exit
status, and is measured by resume RUN. A time the clocks skip or show twice that night is resolved, and said.

With boots = "auto" (or --boots auto) a lane ends after the first block, from the fifth on, with which every primary
95 % interval is as narrow as half_width asks for. It looks at widths, never at who is ahead: a night that stops for
a difference finds differences that are not there. --pilot is a small run from which plan proposes boots and repeat;
--noise-floor compares each target's baseline kernel with itself, and is kept as the smallest change that counts there.

Exit status: 0 all trials ok, 1 a kernel or workload failed, 2 usage or configuration,
3 a target was lost, 130 interrupted.`,
		Example: "  kernsweep run quick\n  kernsweep run overnight --target wl500gpv2 --workload iperf\n  kernsweep run overnight --until 07:00\n  kernsweep run overnight --pilot\n  kernsweep run overnight --noise-floor --target ar2317",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lab, p, err := a.expand(args[0], sel)
			if err != nil {
				return err
			}
			if err := a.notReady(lab, p); err != nil {
				return err
			}
			fits, err := a.beginUntil(lab, p, sel.until)
			if err != nil {
				return err
			}
			release, err := a.claim(c.Context(), lab, p)
			if err != nil {
				return err
			}
			defer release()
			run, err := a.createRun(c.Context(), lab, p, slices.Concat(args, sel.words(c)))
			if err != nil {
				return err
			}
			return a.execute(c.Context(), lab, p, run, beginning{until: fits.Until, fits: fits})
		},
	}
	sel.flags(c)
	return c
}
