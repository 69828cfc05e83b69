package targets

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"
)

// BootLog is what Boot tells while it works. Every field may be left out.
type BootLog struct {
	Phase func(Phase)
	Note  func(string)
	// Console receives the console's bytes as they came, until the next Boot or
	// StopConsole: it must stay writable until then.
	Console io.Writer
	// Probe receives the evidence the boot was judged by, also when it failed.
	Probe func(*Evidence)
	// Known is the boot_id of an earlier boot of this target, "" for none.
	Known string
	// Machine is the Identity of an earlier boot's record, nil for none: another
	// machine under the same address is an *OtherMachineError.
	Machine *Identity
}

// Intervals of a boot's polling over SSH; the OS gives no event for a machine
// that comes up.
const (
	pollAbsent = 100 * time.Millisecond // while nobody listens there
	pollFirst  = 250 * time.Millisecond
	pollLast   = 4 * time.Second
	tryTime    = 10 * time.Second // for a dial while a machine goes down or talks on its console
	lastTry    = 5 * time.Second  // for the one dial after a silent console
)

// errBootTime is the cause when Timeouts.Boot has run out.
var errBootTime = errors.New("time is over")

// NotDownError is infrastructure: the running system was asked to reboot and
// did not go down.
type NotDownError struct {
	Target, BootID string
	Waited         time.Duration
}

func (e *NotDownError) Error() string {
	return fmt.Sprintf("target %s was asked to reboot and is still up after %s (boot_id %s): may its user reboot it, does its reboot command work?",
		e.Target, e.Waited, e.BootID)
}

// booting is one call of Boot.
type booting struct {
	t      *Target
	k      Kernel
	log    BootLog
	traits BootTraits
	time   Timeouts
	rec    BootRecord
	old    []string // boot_ids that are not this boot
	asked  time.Time
	handed time.Time // when the boot method returned: the old system must go from then on
	w      *watch    // nil: no console

	mu     sync.Mutex // phases come from the console's goroutine too
	done   bool
	phases []PhaseTime

	started  bool  // the method was called
	wasDown  bool  // it did not answer any more
	noted    bool  // that the old boot is still up
	lastDial error // of the last try to reach the new boot
}

// Boot starts k on t and judges what came up: the one place that decides whether
// a boot counts (law 4). On success t.Held is the returned Conn, and the console
// goes on being recorded until the next Boot or StopConsole. A *BootError is a
// fact about the kernel; ctx's error means it was interrupted; every other error
// is infrastructure. The record holds what is known, whatever the error.
func Boot(ctx context.Context, t *Target, k Kernel, log BootLog) (Conn, BootRecord, error) {
	b := &booting{t: t, k: k, log: log, traits: TraitsOf(t.Boot), time: t.Timeout.WithDefaults()}
	t.StopConsole()
	b.rec.Kernel = k.Name
	if b.traits.Cmdline {
		var n [8]byte
		_, _ = rand.Read(n[:]) // never fails
		b.k.Nonce = "kernsweep.nonce=" + hex.EncodeToString(n[:])
		b.rec.Nonce = b.k.Nonce
	}
	conn, err := b.run(ctx)
	if b.w != nil {
		b.w.conclude(err == nil)
		if v := b.w.state().Verdict; v != nil && ctx.Err() == nil {
			err = b.verdict(v)
		}
		b.w.settle()
	}
	if err != nil && conn != nil {
		_ = conn.Close() // the boot's error is the one that matters
		conn = nil
	}
	if err == nil {
		b.reach(PhaseVerified)
		t.Held = conn
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	if n, ok := t.Boot.(Noter); ok && b.started {
		b.rec.Notes = append(b.rec.Notes, n.Notes()...) // also of what the target did since
	}
	b.rec.Phases = b.phases
	return conn, b.rec, err
}

// run does it all; its errors are final but for a verdict of the console.
func (b *booting) run(ctx context.Context) (Conn, error) {
	if err := b.know(ctx); err != nil {
		return nil, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := b.openConsole(ctx, func() { fail(errConsoleVerdict) }); err != nil {
		return nil, err
	}
	b.asked = time.Now()
	b.reach(PhaseAsked)
	tctx, stop := context.WithTimeoutCause(ctx, b.time.Boot, errBootTime)
	defer stop()
	b.started = true
	err := b.t.Boot.Boot(tctx, b.t, b.k)
	b.handed = time.Now() // sending files may have taken long
	b.dropHeld()
	var be *BootError
	switch {
	case errors.As(err, &be):
		if be.LastLines == nil && b.w != nil {
			be.LastLines = b.w.lastLines()
		}
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("target %s: could not start kernel %s: %w", b.t.Name, b.k.Name, err)
	}
	for {
		conn, id, err := b.await(tctx)
		if err != nil {
			return nil, err
		}
		err = b.verify(tctx, conn, id)
		if s, ok := b.t.Boot.(Settler); ok && err == nil {
			err = s.Settle(tctx, b.t, conn, b.note)
		}
		var link *LinkError
		if !errors.Is(err, errOldBoot) && !errors.As(err, &link) || tctx.Err() != nil {
			return conn, err
		}
		b.lastDial = err
		_ = conn.Close() // it is dead, or leads to the old boot
		b.pause(tctx, time.Second)
	}
}

var (
	errConsoleVerdict = errors.New("the console shows that the boot failed")
	errOldBoot        = errors.New("the old boot still answers")
)

// know reads the boot_id of what runs now, where it can be had.
func (b *booting) know(ctx context.Context) error {
	if wellFormed(b.log.Known) {
		b.old = append(b.old, b.log.Known)
	}
	if b.traits.OnlyOnce {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, b.time.Exec)
	defer stop()
	if b.t.Held == nil && (b.traits.Running || !b.traits.Cmdline && len(b.old) == 0) {
		conn, err := b.t.Dial(ctx, b.t.SSH, DialOptions{Note: b.log.Note})
		if err != nil {
			if b.traits.Running {
				return fmt.Errorf("target %s cannot be asked to reboot, it does not answer: %w", b.t.Name, err)
			}
			return nil // it may be off; then there is no earlier boot to compare with
		}
		b.t.Held = conn
	}
	if b.t.Held == nil {
		return nil
	}
	id, err := ReadBootID(ctx, b.t.Held)
	if err != nil {
		if b.traits.Running {
			return fmt.Errorf("target %s cannot be asked to reboot: %w", b.t.Name, err)
		}
		return nil
	}
	b.old = append(b.old, id)
	return nil
}

func (b *booting) dropHeld() {
	if b.t.Held != nil {
		_ = b.t.Held.Close() // its system is going away
		b.t.Held = nil
	}
}

// openConsole begins the recording, before anything is asked.
func (b *booting) openConsole(ctx context.Context, fail func()) error {
	if b.t.Console == nil {
		return nil
	}
	var ready *regexp.Regexp
	if b.t.Ready != "" {
		var err error
		if ready, err = regexp.Compile(b.t.Ready); err != nil {
			return fmt.Errorf("target %s: ready: %w", b.t.Name, err)
		}
	}
	octx, stop := context.WithTimeout(ctx, b.time.Exec)
	defer stop()
	rwc, err := b.t.Console.Open(octx)
	if err != nil {
		return fmt.Errorf("target %s: its console does not open: %w", b.t.Name, err)
	}
	b.w = startWatch(rwc, watchOptions{
		Record: b.log.Console, Note: b.note, Ready: ready, Phase: b.seen, Fail: fail,
		Wanted: b.k.Release, Tolerant: b.traits.HostBound, Fresh: b.traits.Emulated || b.traits.OnlyOnce,
	})
	b.t.watch = b.w
	if n, ok := rwc.(Noter); ok {
		for _, s := range n.Notes() {
			b.note("console: " + s)
		}
	}
	return nil
}

func (b *booting) note(s string) {
	b.mu.Lock()
	if !b.done {
		b.rec.Notes = append(b.rec.Notes, s)
	}
	b.mu.Unlock()
	if b.log.Note != nil {
		b.log.Note(s)
	}
}

// reach reports a phase once, and never after a later one.
func (b *booting) reach(p Phase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done || len(b.phases) > 0 && !before(b.phases[len(b.phases)-1].Phase, p) {
		return
	}
	b.phases = append(b.phases, PhaseTime{p, time.Now()})
	if b.log.Phase != nil {
		b.log.Phase(p)
	}
}

// seen takes a phase from the console: a firmware's or a kernel's banner proves
// the earlier ones too.
func (b *booting) seen(p Phase) {
	if b.phaseSeen() == "" {
		return // the old system's words, before anything was asked
	}
	for _, q := range phaseOrder[1:4] {
		if q == p || before(q, p) {
			b.reach(q)
		}
	}
}

// phaseSeen is the latest phase.
func (b *booting) phaseSeen() Phase {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.phases) == 0 {
		return ""
	}
	return b.phases[len(b.phases)-1].Phase
}
