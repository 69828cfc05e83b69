package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/plural"
	"kernsweep/targets/files"
)

func (a *app) pushCmd() *cobra.Command {
	var l limits
	var anyway bool
	c := &cobra.Command{
		Use:   "push TARGET… -- FILE… DEST",
		Short: "Copy files and folders to one target or many at once",
		Long: `Copy files and folders to one target or many at once. ` + choosing + `

A folder arrives in DEST under its own name, with all that is in it. One file takes
the name DEST, unless DEST is a folder there or ends in "/"; several go into the
folder DEST. A DEST without "/" before it is in the home of the login there.
Modes and times are kept, symbolic links below a folder stay links, owners are the
login's. A device, a socket or a named pipe is refused.

What lies there already with the same content (by sha256sum, md5sum or cksum,
whichever the target has) is not sent again. Each file takes its place in one step,
so nobody sees half of one; a link in its place is replaced. Room is looked at
before anything is sent.

Exit status: 0 all is there; 1 a file could not be written, or it took too long;
2 usage or configuration; 3 a target was not reached, its link was lost, or it is
measured; 130 interrupted.`,
		Example:           "  kernsweep push ar2317 -- bfs.elf /tmp/\n  kernsweep push class:router -- overlay /mnt\n  kernsweep push 'all,!ar2317' --parallel 8 -- a.conf b.conf /etc/lab/",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeHands(true),
		RunE: func(c *cobra.Command, args []string) error {
			names, rest, err := dashed(c, args, "FILE… DEST")
			if err == nil && len(rest) < 2 {
				err = usage(fmt.Errorf("%s needs FILE… and DEST after --; usage: %s", c.CommandPath(), c.UseLine()))
			}
			if err == nil {
				err = l.check()
			}
			if err != nil {
				return err
			}
			on, err := a.choose(names)
			if err == nil {
				err = on.forgotDash(c, rest, "the files")
			}
			if err != nil {
				return err
			}
			parcel, err := files.Pack(rest[:len(rest)-1], rest[len(rest)-1])
			if err != nil {
				return usage(err)
			}
			if err := a.undisturbed(c.Context(), on, anyway); err != nil {
				return err
			}
			return a.push(c.Context(), on, l, parcel)
		},
	}
	l.flags(c)
	c.Flags().BoolVar(&anyway, "anyway", false, "also to a target that a run measures now")
	return c
}

// push sends the parcel to every target.
func (a *app) push(ctx context.Context, on choice, l limits, parcel *files.Parcel) error {
	m := a.newMeter(parcel.Bytes() * int64(len(on.list)))
	defer m.show()()
	quiet := *a
	quiet.err = m
	return quiet.many(ctx, on, l, m, func(ctx context.Context, h hand) deed {
		conn, err := h.reach(ctx)
		if err != nil {
			return deed{err: err}
		}
		defer conn.Close()
		p, err := parcel.Push(ctx, conn, m.add)
		d := deed{err: err, result: p}
		switch {
		case err != nil:
		case p.Sent == 0 && p.Files > 0:
			d.line = fmt.Sprintf("%s already there", plural.Of(p.Files, "file"))
		case p.Sent < p.Files:
			d.line = fmt.Sprintf("%s sent (%s), %d already there", plural.Of(p.Sent, "file"), files.Size(p.Bytes), p.Files-p.Sent)
		default:
			d.line = fmt.Sprintf("%s sent (%s)", plural.Of(p.Sent, "file"), files.Size(p.Bytes))
		}
		if len(p.Remarks) > 0 {
			d.line = strings.TrimPrefix(d.line+"; "+strings.Join(p.Remarks, "; "), "; ")
		}
		return d
	})
}
