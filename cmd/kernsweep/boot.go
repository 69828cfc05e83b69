package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/paste"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/tftp"
)

func (a *app) bootCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "boot TARGET… KERNEL",
		Short: "Boot a kernel by hand, prove it, and show its console; a virtual target then runs until Ctrl-C",
		Long: `Boot a kernel by hand, prove it, and show its console; a virtual target then runs until Ctrl-C.
` + strings.ReplaceAll(choosing, "\n", " ") + `

Several targets boot at once, virtual ones as many as there are CPUs, and every line
has the target's name before it. All of them are claimed together, so that no run
starts on one; with --wait this waits for those that others use.

Exit status: 0 every boot was proven; 1 a kernel did not boot, or another one did; 2 usage or
configuration; 3 a target could not be booted, or is in use; 130 interrupted.`,
		Example:           "  kernsweep boot x86 eevdf_612\n  kernsweep boot class:router bfs",
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: a.completeHands(false, a.labWords(func(l *config.Lab) []string { return named(l.Kernels, func(k *config.Kernel) string { return k.Name }) })),
		RunE: func(c *cobra.Command, args []string) error {
			on, err := a.choose(args[:len(args)-1])
			if err != nil {
				return err
			}
			k, err := a.bootable(on, args[len(args)-1])
			if err != nil {
				return err
			}
			release, err := a.claimTargets(c.Context(), on.lab, on.names()...)
			if err != nil {
				return err
			}
			defer release()
			files := tftp.New(a.logger()) // one for all: there is one port
			defer files.Close()
			if on.one {
				return a.boot(c.Context(), bootByHand{a, on.list[0], k, files, safeWriter{a.err}})
			}
			return a.bootMany(c.Context(), on, k, files)
		},
	}
}

// bootable finds a kernel that every target has an image of.
func (a *app) bootable(on choice, name string) (*config.Kernel, error) {
	k := on.lab.Kernel(name)
	if k == nil {
		return nil, usage(fmt.Errorf("%s has no kernel %q; it has %s", a.file, name,
			strings.Join(named(on.lab.Kernels, func(k *config.Kernel) string { return k.Name }), ", ")))
	}
	for _, t := range on.list {
		if _, ok := k.For(t); !ok && targets.TraitsOf(t.Boot).Image {
			return nil, usage(fmt.Errorf("kernel %s has no image for %s (%s)", k.Name, t.Name, t.Arch))
		}
	}
	return k, nil
}

// bootByHand is one boot.
type bootByHand struct {
	*app
	t     *config.Target
	k     *config.Kernel
	files *tftp.Pool
	tty   io.Writer // shows the console
}

// boot is the plain way, for one target.
func (a *app) boot(ctx context.Context, b bootByHand) error {
	done, end, err := b.start(ctx)
	defer end()
	if err != nil {
		return err
	}
	if err := a.printProbe(b.t, done.BootRecord); err != nil || !targets.TraitsOf(b.t.Boot).Local {
		return err
	}
	b.sayRuns(done.ssh)
	return b.untilOver(ctx, done.over)
}

// untilOver waits for Ctrl-C, and says so when the guest ends before.
func (b bootByHand) untilOver(ctx context.Context, over <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return nil
	case <-over:
		if ctx.Err() != nil {
			return nil
		}
		return &statusError{exitInfra, fmt.Errorf("target %s has ended by itself: its kernel was told to reboot or to power off, or its QEMU was killed; its console says more", b.t.Name)}
	}
}

// bootMany boots several targets at once.
func (a *app) bootMany(ctx context.Context, on choice, k *config.Kernel, files *tftp.Pool) error {
	cpus := make(chan struct{}, runtime.NumCPU())
	words := &oneWriter{w: a.err}
	return a.many(ctx, on, limits{}, words, func(ctx context.Context, h hand) deed {
		local := targets.TraitsOf(h.t.Boot).Local
		if local {
			select {
			case cpus <- struct{}{}:
			case <-ctx.Done():
				return deed{err: ctx.Err()}
			}
		}
		h.begins()
		tty := h.lines(h.all)
		b := bootByHand{h.app, h.t, k, files, tty}
		rec, end, err := b.start(ctx)
		if local {
			<-cpus
		}
		d := deed{err: err, after: func() { end(); tty.Close() }}
		if err != nil {
			return d
		}
		d.result, d.line = rec.BootRecord, fmt.Sprintf("booted %s, scheduler %s, boot_id %s", rec.Release, dash(rec.Scheduler.Name), rec.BootID)
		if !rec.Proven {
			d.line += ", not proven: " + rec.Unproven
		}
		if local {
			b.sayRuns(rec.ssh)
			d.after = func() {
				if err := b.untilOver(ctx, rec.over); err != nil {
					fmt.Fprintln(b.err, "kernsweep: "+err.Error())
				}
				end()
				tty.Close()
			}
		}
		return d
	})
}

// sayRuns says how to reach a virtual target: by kernsweep, and by ssh, which
// needs the key that the target's block names.
func (b bootByHand) sayRuns(s targets.SSH) {
	key := ""
	if s.Key != "" {
		key = " -i " + paste.Word(s.Key)
	}
	fmt.Fprintf(b.err, "running; in another terminal: %s\n", b.kernsweep()+" shell "+paste.Word(b.t.Name))
	fmt.Fprintf(b.err, "or: ssh%s -p %d %s@%s\nCtrl-C ends it\n", key, s.Port, s.User, s.Host)
}

// booted is what a boot came to, and how the target is reached then.
type booted struct {
	targets.BootRecord
	ssh  targets.SSH
	over <-chan struct{} // closed when its console ended
}

// start boots the kernel and proves it. end gives everything back, and ends a
// virtual target; it is never nil.
func (b bootByHand) start(ctx context.Context) (done booted, end func(), err error) {
	var undo []func()
	end = func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
	resolved, _ := b.k.For(b.t)
	m := b.t.Target
	note := func(s string) { fmt.Fprintln(b.err, live.Safe(s)) }
	m.Dial, m.Serve, m.Agent = sshconn.New(b.logger()).Dial, b.files.Serve, orchestrator.AgentBytes
	if m.Power != nil && !targets.TraitsOf(b.t.Boot).Local { // a boot method may have to cycle it
		m.Power = orchestrator.NewSupply(b.claims, &m, note)
	}
	shared, unshare, err := b.keepConsole(b.t.Target, "kernsweep boot "+holder(), "")
	if err != nil {
		return done, end, &statusError{exitInfra, err}
	}
	undo = append(undo, unshare, m.StopConsole)
	if c, ok := m.Boot.(targets.Closer); ok {
		undo = append(undo, func() { c.Close() })
	}
	conn, rec, err := targets.Boot(ctx, &m, resolved, targets.BootLog{
		Phase:   func(p targets.Phase) { fmt.Fprintf(b.err, "%s: %s\n", b.t.Name, p) },
		Note:    note,
		Console: io.MultiWriter(b.tty, shared),
	})
	var crash *targets.BootError
	switch {
	case errors.As(err, &crash):
		return done, end, &statusError{exitFailed, fmt.Errorf("target %s: %w", b.t.Name, err)}
	case err != nil:
		return done, end, &statusError{exitInfra, fmt.Errorf("target %s, kernel %s: %w", b.t.Name, b.k.Name, err)}
	}
	undo = append(undo, func() { conn.Close() })
	return booted{rec, m.SSH, m.ConsoleEnded()}, end, nil
}
