package boot

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/console"
)

// Loader says how a boot loader is stopped and talked to over the console.
// Methods that do so embed it.
type Loader struct {
	Prompt    string        `hcl:"prompt,optional" doc:"regular expression of the loader's prompt, from the begin of a line (default: the usual ones)"`
	Interrupt string        `hcl:"interrupt,optional" doc:"keys that stop the automatic start, typed again and again; ^C is written \"\\u0003\" (default: the loader's usual ones)"`
	Pace      time.Duration `hcl:"pace,optional" doc:"between typed characters (default 1ms; more for a UART that loses some)"`
	Line      int           `hcl:"line,optional" doc:"characters that a command of the loader may have (default: the loader's usual limit)"`
	Retries   int           `hcl:"retries,optional" doc:"further restarts after a missed autoboot window or a failed transfer (default 2)"`

	notes []string // of the newest boot
}

// loaderKind is what one kind of loader is known by.
type loaderKind struct {
	name   string         // "U-Boot"
	prompt string         // default
	keys   string         // default
	line   int            // default
	begin  *regexp.Regexp // its first words
	sync   string         // a command with %s for a token; "" is none
	answer string         // expression of what it answers, with %s for the token
}

const defaultRetries = 2

// errMissed is the cause when the flash kernel started in spite of our keys.
var errMissed = errors.New(string(console.MissedAutoboot))

// check refuses what cannot work.
func (l *Loader) check() error {
	if _, err := regexp.Compile(l.Prompt); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	switch {
	case l.Prompt != "" && regexp.MustCompile(`^(?:`+l.Prompt+`)$`).MatchString(""):
		return fmt.Errorf("prompt = %q also matches nothing at all", l.Prompt)
	case l.Pace < 0 || l.Pace > time.Second:
		return fmt.Errorf("pace = %s: want 0 to 1s", l.Pace)
	case l.Line < 0 || l.Line > 0 && l.Line < 40:
		return fmt.Errorf("line = %d: want at least 40 characters", l.Line)
	case l.Retries < 0 || l.Retries > 20:
		return fmt.Errorf("retries = %d: want 0 to 20", l.Retries)
	}
	return nil
}

// dialogue is a conversation on c with the block's settings.
func (l *Loader) dialogue(c console.Channel, kind loaderKind) *console.Dialogue {
	d := &console.Dialogue{Channel: c, Prompt: kind.prompt, Pace: l.Pace, Longest: kind.line, Begin: kind.begin}
	if l.Prompt != "" {
		d.Prompt = l.Prompt
	}
	if l.Line > 0 {
		d.Longest = l.Line
	}
	return d
}

func (l *Loader) keys(kind loaderKind) string {
	if l.Interrupt != "" {
		return l.Interrupt
	}
	return kind.keys
}

func (l *Loader) retries() int {
	if l.Retries > 0 {
		return l.Retries
	}
	return defaultRetries
}

func (l *Loader) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// sync makes sure that the prompt is kind's.
func (kind loaderKind) syncWith(ctx context.Context, d *console.Dialogue, token string) error {
	if kind.sync == "" {
		return d.Recover(ctx)
	}
	return d.Sync(ctx, fmt.Sprintf(kind.sync, token), regexp.MustCompile(fmt.Sprintf(kind.answer, token)))
}

// find looks whether the machine is in its loader already.
func (l *Loader) find(ctx context.Context, d *console.Dialogue, kind loaderKind, token string) (bool, error) {
	at, err := d.Probe(ctx)
	if !at || err != nil {
		return false, err
	}
	return kind.syncWith(ctx, d, token) == nil, ctx.Err()
}

// stop brings the machine to its loader's prompt: try 0 takes it as it is found,
// every further one restarts it.
func (l *Loader) stop(ctx context.Context, t *targets.Target, d *console.Dialogue, kind loaderKind, try int) error {
	token := fmt.Sprintf("%06d%d", time.Now().UnixNano()/1e3%1e6, try)
	if try == 0 && t.Held == nil {
		found, err := l.find(ctx, d, kind, token)
		if err != nil {
			return err
		}
		if found {
			l.note("found in the boot loader, used without a restart")
			return nil
		}
	}
	r := startRestart(ctx, t, try)
	defer r.end()
	for round := 0; ; round++ {
		outcome, early, err := l.interrupt(ctx, t, d, kind, r)
		if err != nil {
			return err
		}
		if outcome == console.AtPrompt {
			if err = kind.syncWith(ctx, d, token); err == nil {
				return nil
			}
			err = fmt.Errorf("restarted by %s: %w", r.how, err)
		} else {
			err = fmt.Errorf("restarted by %s: %w: a kernel started although %q was typed (are these the keys that stop it, is its delay 0?)", r.how, errMissed, l.keys(kind))
		}
		if !early || round > 0 {
			return err
		}
	}
}

// interrupt stops the automatic start while r is under way: a supply's driver may
// come back when the window is over. early says that the outcome was there before
// the restart had ended, so that it may be the old system's.
func (l *Loader) interrupt(ctx context.Context, t *targets.Target, d *console.Dialogue, kind loaderKind, r *restarting) (outcome console.Outcome, early bool, err error) {
	ictx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(r.failed, func() { stop(context.Cause(r.failed)) })()
	outcome, err = d.Interrupt(ictx, t.Timeout.WithDefaults().Down, console.Interruption{Keys: l.keys(kind), Begin: kind.begin, Dark: r.byPower})
	early = !r.over()
	if e := r.wait(ctx); e != nil {
		return "", false, e
	}
	if err != nil {
		return "", false, fmt.Errorf("restarted by %s: %w", r.how, err)
	}
	return outcome, early, nil
}

// session runs f at the loader's prompt, on the target's console, again from a
// restart while it fails for reasons that a restart may cure.
func (l *Loader) session(ctx context.Context, t *targets.Target, kind loaderKind, f func(d *console.Dialogue, tap *targets.Tap) error) error {
	return l.tries(ctx, kind, func(try int) error {
		tap, err := t.Tap()
		if err != nil {
			return &finalError{err}
		}
		defer tap.Close()
		d := l.dialogue(tap, kind)
		if err := l.stop(ctx, t, d, kind, try); err != nil {
			return err
		}
		return f(d, tap)
	})
}

// tries calls f a bounded number of times, until it succeeds or fails for good.
func (l *Loader) tries(ctx context.Context, kind loaderKind, f func(try int) error) error {
	l.notes = nil
	var first error
	for try := 0; ; try++ {
		err := f(try)
		var kernel *targets.BootError
		var final *finalError
		var line *console.LineError
		var wrong *targets.OutletError // somebody must look at the cables
		switch {
		case err == nil || errors.As(err, &kernel) || errors.As(err, &final) || errors.As(err, &line) || errors.As(err, &wrong):
			return err
		case ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), first, err)
		}
		if first == nil {
			first = err
		}
		l.note("try %d: %v", try+1, err)
		if try >= l.retries() {
			return fmt.Errorf("%s: gave up after %d tries, the first: %w", kind.name, try+1, first)
		}
	}
}

// finalError is infrastructure that no restart cures: a file that nobody serves,
// an address that is not set.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// complaint is the first line of a loader's answer that says what went wrong, or
// else its last one.
func complaint(said string, bad *regexp.Regexp) string {
	last := "it said nothing"
	for line := range strings.SplitSeq(said, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if bad.MatchString(line) {
			return line
		}
		last = line
	}
	return last
}
