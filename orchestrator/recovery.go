package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/console"
)

// knownGood is the kernel that recovery returns to; without a name it stands for
// whatever answers.
func (l *lane) knownGood() targets.Kernel {
	if l.conf.KnownGood == "" {
		return targets.Kernel{}
	}
	k, _ := l.r.Lab.Kernel(l.conf.KnownGood).For(l.conf)
	return k
}

// wake makes sure that a target answers whose boot method has to ask it. One
// that is off is switched on.
func (l *lane) wake(ctx context.Context) {
	tr := targets.TraitsOf(l.target.Boot)
	if tr.Local || !tr.Running && !tr.OnlyOnce || ctx.Err() != nil {
		return
	}
	release, err := l.hold(ctx)
	if err != nil {
		return // interrupted
	}
	asked := ctx
	ctx, end := l.helm.resume(asked, stretch{what: "waking the target"})
	defer end()
	defer release()
	how, err := targets.SwitchedOn(ctx, l.target, targets.BootLog{Note: l.note(ctx)})
	l.target.StopConsole()
	if err != nil && l.comesUp(ctx, err) {
		how, err = "it came up by itself", nil
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		var s *targets.StrandedError
		if errors.As(err, &s) { // its name and what is wanted are clear here
			err = s.Err
		}
		l.failed(ctx, fmt.Errorf("it did not answer at the start: %w", err))
		l.stranded = l.withdrawn != ""
		end()
		l.pause(asked, "")
	case how != "":
		l.note(ctx)("it did not answer at the start: " + how)
	}
}

// comeUpTry is how often a target is looked for that may come up by itself.
const comeUpTry = 5 * time.Second

// comesUp waits for a target that nothing here can restart: it may only be on its
// way up, after a power failure, a reboot or an update. At most its boot time is
// waited, and no longer than the night is.
func (l *lane) comesUp(ctx context.Context, cause error) bool {
	var other *targets.OtherMachineError
	limit := l.target.Timeout.WithDefaults().Boot
	if left, ends := l.r.night.left(); ends {
		limit = min(limit, left)
	}
	if l.target.Power != nil || l.target.SSH.Host == "" || errors.As(cause, &other) || ctx.Err() != nil || limit <= 0 {
		return false
	}
	l.note(ctx)(fmt.Sprintf("it does not answer, and has no power driver: waiting up to %s for it to come up by itself", limit.Round(time.Second)))
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	again := time.NewTicker(comeUpTry)
	defer again.Stop()
	for {
		try, stop := context.WithTimeout(ctx, l.target.Timeout.WithDefaults().Exec)
		conn, err := l.target.Dial(try, l.target.SSH, targets.DialOptions{})
		if err == nil {
			_, err = targets.ReadBootID(try, conn)
			_ = conn.Close() // that it answers was the question
		}
		stop()
		if err == nil {
			return true
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
}

// hold keeps the target from being somebody's peer while it restarts.
func (l *lane) hold(ctx context.Context) (release func(), err error) {
	free, err := l.r.locks.acquire(ctx, targetLock(l.conf.Name))
	if err != nil {
		return nil, err
	}
	l.away.Store(true)
	return func() { l.away.Store(false); free() }, nil
}

// recover brings a target back to k after a failure: its known-good kernel, or
// targets.Kernel{} where it is enough that it answers. A guest needs neither: its
// next boot is a new one.
func (l *lane) recover(ctx context.Context, k targets.Kernel, after string) {
	if targets.TraitsOf(l.target.Boot).Local || ctx.Err() != nil || l.withdrawn != "" {
		return
	}
	if k.Name != "" && k.Name != l.at { // it takes minutes, in which nothing else is seen of the lane
		l.note(ctx)("it is brought back to its known-good kernel " + k.Name)
	}
	err := l.home(ctx, k)
	if err != nil && l.comesUp(ctx, err) {
		err = l.home(ctx, k)
	}
	if err != nil && ctx.Err() == nil {
		l.failed(ctx, fmt.Errorf("after %s: %w", after, err))
		l.stranded = true
	}
}

// home is targets.Return with everything written down.
func (l *lane) home(ctx context.Context, k targets.Kernel) error {
	release, err := l.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	log := targets.BootLog{Note: l.note(ctx), Known: l.lastID}
	if f := l.recoveryLog(ctx); f != nil {
		defer f.Close()
		log.Console = f
	}
	l.at, l.stranded = "", false
	conn, rec, how, err := targets.Return(ctx, l.target, k, log)
	l.target.StopConsole() // the next boot opens it again
	if err != nil {
		return err
	}
	l.target.Held, l.at = conn, k.Name
	if !l.onlyOnce() { // its lastID tells whether a boot of its own is over
		l.lastID = rec.BootID
	}
	if how == "" {
		l.collect(ctx, l.r.Run.BootDir(l.conf.Name, l.boots))
		return nil // it was there all the time
	}
	what := "back on the known-good kernel " + k.Name
	if k.Name == "" {
		what = "it answers again, with kernel " + rec.Release
	}
	l.note(ctx)(fmt.Sprintf("%s by %s", what, how))
	l.collect(ctx, l.r.Run.BootDir(l.conf.Name, l.boots))
	return nil
}

// recoveryLog is where the console goes while a target is brought back: beside
// the boot that made it necessary. nil before the first boot.
func (l *lane) recoveryLog(ctx context.Context) *console.Recording {
	if l.target.Console == nil || !l.touched {
		return nil
	}
	path := filepath.Join(l.r.Run.BootDir(l.conf.Name, l.boots), "recovery.log")
	for n := 2; exists(path) && n < 100; n++ {
		path = filepath.Join(filepath.Dir(path), fmt.Sprintf("recovery-%d.log", n))
	}
	rec, err := console.Record(path, console.Limits{})
	if err != nil {
		l.note(ctx)("the console is not recorded while the target is brought back: " + err.Error())
		return nil
	}
	return rec
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// collect takes what crashed kernels left on the target, once a system answers
// there: into the folder of the boot that failed, else into dir.
func (l *lane) collect(ctx context.Context, dir string) {
	if tr := targets.TraitsOf(l.target.Boot); tr.Local || tr.OnlyOnce {
		return // a guest has no store, and a machine that is only looked at is left alone
	}
	if l.looked && l.fell == 0 || l.target.Held == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, 2*l.target.Timeout.WithDefaults().Exec)
	defer stop()
	whose := "from before this run"
	if l.fell != 0 {
		dir = l.r.Run.BootDir(l.conf.Name, l.fell)
		whose = fmt.Sprintf("of the crash in boot %d (kernel %s)", l.fell, l.fellKernel)
	}
	dir = filepath.Join(dir, "pstore")
	saved, notes, err := l.left.Collect(ctx, l.target.Held, dir, l.fell == 0)
	for _, n := range notes {
		l.note(ctx)(n)
	}
	if err != nil {
		l.note(ctx)("what a crashed kernel left could not be collected: " + err.Error())
	}
	if len(saved) > 0 {
		l.note(ctx)(fmt.Sprintf("kernel logs %s, from pstore or kdump: %s in %s", whose, strings.Join(saved, ", "), dir))
	}
	if err == nil {
		l.looked, l.fell = true, 0
	}
}

// fallen notes a boot whose kernel crashed or hung.
func (l *lane) fallen(number int, kernel string) {
	if number > 0 {
		l.fell, l.fellKernel = number, kernel
	}
}

// supplied puts the target's power into the hands of the run.
func (l *lane) supplied(power targets.Power) {
	s := &Supply{t: l.target, strip: &strip{power, l.r.locks}, lane: l}
	s.note = func(text string) { l.note(context.Background())(text) }
	l.target.Power = s
}

// misled says that the target's power switches something else, or that another
// machine answers under its address: then the lane ends at once, and nothing more
// is done to what is not ours.
func (l *lane) misled(err error) bool {
	var wrong *targets.OutletError
	var other *targets.OtherMachineError
	switch {
	case errors.As(err, &other):
		l.stranded = true
	case errors.As(err, &wrong):
	default:
		return false
	}
	l.target.Power = nil
	return true
}
