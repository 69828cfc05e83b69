package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plural"
	"kernsweep/targets/files"
)

func (a *app) pullCmd() *cobra.Command {
	var l limits
	var anyway bool
	c := &cobra.Command{
		Use:   "pull TARGET… -- PATH… DIR",
		Short: "Copy files and folders from one target or many at once",
		Long: `Copy files and folders from one target or many at once. ` + choosing + `

Each PATH arrives as DIR/TARGET/NAME, where NAME is its last part, so that targets
never write over each other. DIR is made when it is not there; - in its place
writes one file of one target to standard output. A PATH without "/" before it is
in the home of the login there; one that is a link is followed. A file that was
not whole is not kept.

A target decides what its names are, so they are not trusted: nothing is written
outside DIR/TARGET. Names that lead elsewhere are refused, and say so; links and
devices inside a folder are left out, and counted. Files of /proc and /sys are whole
when they are named themselves; in folders they come empty.

Exit status: 0 all is here; 1 something could not be read, was refused, or took too long;
2 usage or configuration; 3 a target was not reached, its link was lost, or it is
measured; 130 interrupted.`,
		Example:           "  kernsweep pull class:router -- /etc/config logs\n  kernsweep pull ar2317 -- /proc/config.gz - | zcat\n  kernsweep pull --json all -- /var/log/messages /etc/os-release tonight",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeHands(true),
		RunE: func(c *cobra.Command, args []string) error {
			names, rest, err := dashed(c, args, "PATH… DIR")
			if err == nil && len(rest) < 2 {
				err = usage(fmt.Errorf("%s needs PATH… and DIR after --; usage: %s", c.CommandPath(), c.UseLine()))
			}
			if err == nil {
				err = errors.Join(l.check(), pullable(rest[:len(rest)-1]))
			}
			if err != nil {
				return err
			}
			on, err := a.choose(names)
			if err == nil {
				err = on.forgotDash(c, rest, "the paths")
			}
			if err != nil {
				return err
			}
			from, dir := rest[:len(rest)-1], rest[len(rest)-1]
			if dir == "-" && (len(from) > 1 || len(on.list) > 1 || a.json) {
				return usage(errors.New("- takes one file of one target, and no --json"))
			}
			if err := a.undisturbed(c.Context(), on, anyway); err != nil {
				return err
			}
			return a.pull(c.Context(), on, l, from, dir)
		},
	}
	l.flags(c)
	c.Flags().BoolVar(&anyway, "anyway", false, "also from a target that a run measures now")
	return c
}

// pullable refuses paths that would meet, or have no name.
func pullable(from []string) error {
	at := map[string]string{}
	for _, p := range from {
		if err := files.Check(p); err != nil {
			return usage(err)
		}
		name := files.Arrives(p)
		if first, ok := at[name]; ok {
			return usage(fmt.Errorf("%s and %s would both arrive as DIR/TARGET/%s: pull them one after the other, into two folders", first, p, name))
		}
		at[name] = p
	}
	return nil
}

func (a *app) pull(ctx context.Context, on choice, l limits, from []string, dir string) error {
	m := a.newMeter(0)
	if dir != "-" || !onTerminal(a.out) {
		defer m.show()()
	}
	quiet := *a
	quiet.err = m
	return quiet.many(ctx, on, l, m, func(ctx context.Context, h hand) deed {
		if dir == "-" {
			return h.cat(ctx, from[0])
		}
		return h.pull(ctx, from, dir, m)
	})
}

func (h hand) cat(ctx context.Context, from string) deed {
	conn, err := h.reach(ctx)
	if err != nil {
		return deed{err: err}
	}
	defer conn.Close()
	return deed{err: files.Cat(ctx, conn, from, h.out)}
}

// pull fetches paths of one target. What goes wrong with one of them does not keep
// the others away.
func (h hand) pull(ctx context.Context, from []string, dir string, m *meter) deed {
	conn, err := h.reach(ctx)
	if err != nil {
		return deed{err: err}
	}
	defer conn.Close()
	root, err := openBelow(dir, h.t)
	if err != nil {
		return deed{err: err}
	}
	defer root.Close()
	sum := files.Pulled{Left: map[string]int{}}
	var errs []error
	for _, p := range from {
		got, err := files.Pull(ctx, conn, p, root, m.add)
		sum.Files, sum.Bytes, sum.Refused = sum.Files+got.Files, sum.Bytes+got.Bytes, append(sum.Refused, got.Refused...)
		for kind, n := range got.Left {
			sum.Left[kind] += n
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(sum.Refused) > 0 {
		errs = append(errs, fmt.Errorf("refused what the target named %s", strings.Join(sum.Refused, "; ")))
	}
	d := deed{err: errors.Join(errs...), result: sum}
	if sum.Files > 0 || d.err == nil {
		d.line = fmt.Sprintf("%s (%s) in %s", plural.Of(sum.Files, "file"), files.Size(sum.Bytes), root.Name())
	}
	for _, kind := range slices.Sorted(maps.Keys(sum.Left)) {
		d.line += "; left out: " + plural.Of(sum.Left[kind], kind)
	}
	return d
}

// openBelow is the folder of one target.
func openBelow(dir string, t *config.Target) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	all, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := all.Mkdir(t.Name, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return all.OpenRoot(t.Name)
}
