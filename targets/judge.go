package targets

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// uptimeSlack is how much longer than since the request a new boot may claim to
// be up.
const uptimeSlack = 5 * time.Second

// verify probes what answers and compares it with what was asked for (law 4).
func (b *booting) verify(ctx context.Context, conn Conn, id string) error {
	pctx, stop := context.WithTimeout(ctx, 2*b.time.Exec)
	defer stop()
	ev, err := Probe(pctx, conn)
	if err != nil {
		return fmt.Errorf("target %s answers, but its probe failed: %w", b.t.Name, err)
	}
	if d := b.log.Machine.Differs(ev.identity()); d != "" {
		ev.Fill(&b.rec) // what it is stands in the record
		return &OtherMachineError{b.t.Name, d}
	}
	if up := ev.uptime(); !b.traits.OnlyOnce && !b.traits.Emulated && up > time.Since(b.asked)+uptimeSlack {
		b.old = append(b.old, id) // an emulator's clock may run fast; a machine's does not
		b.sawOld(id)
		return errOldBoot
	}
	if b.log.Probe != nil {
		b.log.Probe(ev)
	}
	ev.Fill(&b.rec)
	if b.rec.BootID != id {
		return b.kernelError(StageLoop, fmt.Errorf("it rebooted while it was probed (boot_id %s, then %s)", id, b.rec.BootID))
	}
	if b.t.Arch != "" && b.rec.Arch != "" && b.t.Arch != b.rec.Arch {
		return fmt.Errorf("target %s is configured with arch = %q, but its programs are %q (from an ELF header there): correct the configuration",
			b.t.Name, b.t.Arch, b.rec.Arch)
	}
	if err := b.judge(); err != nil {
		return err
	}
	b.prove()
	return nil
}

// judge compares the record with the kernel that was asked for.
func (b *booting) judge() error {
	r, k := &b.rec, &b.k
	if k.Release != "" {
		ok, err := path.Match(k.Release, r.Release)
		if err != nil {
			return fmt.Errorf("kernel %s: release = %q: %w", k.Name, k.Release, err)
		}
		if !ok {
			return b.kernelError(StageWrongKernel, fmt.Errorf("%q runs, wanted %q", r.Release, k.Release))
		}
	}
	if k.Nonce != "" && !slices.Contains(strings.Fields(r.Cmdline), k.Nonce) {
		return b.kernelError(StageWrongKernel, fmt.Errorf(
			"the command line of what runs (%d bytes: %.200q) lacks this boot's %s: another start was it, or the loader cut or ignored our arguments",
			len(r.Cmdline), r.Cmdline, k.Nonce))
	}
	if k.Scheduler != "" && !k.hasScheduler(r.Scheduler) {
		got := r.Scheduler.Name
		if got == "" {
			got = "a scheduler that could not be told"
		}
		return b.kernelError(StageWrongScheduler, fmt.Errorf("%s runs, wanted %s (evidence: %s)",
			got, k.Scheduler, strings.Join(r.Scheduler.Evidence, "; ")))
	}
	return nil
}

// hasScheduler compares the declared scheduler with the one found. One that is
// loaded by sched_ext may be named by its ops: "lavd".
func (k *Kernel) hasScheduler(s Scheduler) bool {
	want := NormalScheduler(k.Scheduler)
	return s.Name == want || s.Name == "sched_ext" && strings.HasPrefix(s.Detail, want)
}

// NormalScheduler spells a scheduler's name as the probe does: "O(1)" is "o1".
func NormalScheduler(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	switch s {
	case "o(1)":
		return "o1"
	case "rsdl", "staircase":
		return "sd"
	case "scx":
		return "sched_ext"
	}
	return s
}

// prove says whether this is shown to be a boot of its own.
func (b *booting) prove() {
	switch {
	case b.k.Nonce != "":
		b.rec.Proven = true
	case len(b.old) == 0 && b.traits.OnlyOnce:
		b.rec.Unproven = "the boot method starts nothing and no earlier boot_id is known: it runs, but since when and after what is not shown"
	case len(b.old) == 0:
		b.rec.Unproven = "no earlier boot_id is known and the boot method cannot mark the command line"
	case b.isOld(b.rec.BootID):
		b.rec.Unproven = "the boot method starts nothing: this is the boot that was seen before"
	default:
		b.rec.Proven = true
	}
}

// verdict is what the console's last word means: about the kernel, or about the
// system that should have made room for it.
func (b *booting) verdict(v *ConsoleEvent) error {
	if v.Old && b.phaseSeen() != PhaseReachable { // then a new boot answered
		return fmt.Errorf("target %s: the system that ran before kernel %s died while it was asked to go, and the machine did not restart: %s: %s",
			b.t.Name, b.k.Name, v.Stage, v.Line)
	}
	return b.kernelError(v.Stage, errors.New(v.Line))
}

// kernelError makes the data point, with the console's last lines.
func (b *booting) kernelError(stage string, err error) *BootError {
	e := &BootError{Kernel: b.k.Name, Stage: stage, Err: err}
	if b.w != nil {
		e.LastLines = b.w.lastLines()
	}
	return e
}
