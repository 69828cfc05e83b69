package console

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Outcome of an interruption.
type Outcome string

// The outcomes.
const (
	AtPrompt       Outcome = "at the prompt"
	MissedAutoboot Outcome = "missed autoboot window"
)

// Interruption says how a loader's automatic start is stopped.
type Interruption struct {
	Keys  string         // typed again and again
	Every time.Duration  // between them (default 100 ms)
	Begin *regexp.Regexp // a loader's first words: no key is typed before; nil: at once
	Dark  func() bool    // says that nobody is disturbed any more by keys on a silent console; nil: never
}

const (
	defaultEvery = 100 * time.Millisecond
	darkAfter    = 8 * time.Second // of silence: a loader that prints nothing before its prompt
	listenTime   = time.Second
	listenMost   = 3 * time.Second
)

// started are signs of a kernel or of its system: then the loader is gone.
var started = regexp.MustCompile(`(?m)Linux version \d|^Starting kernel \.\.\.|^## Transferring control to|^Uncompressing Linux|^Starting program at 0x|^Now booting linux kernel|\[ {4}\d\.\d{6}\]|` +
	`^\S* ?login:|^procd: |^init started: |^INIT: version |^Please press Enter to activate|^BusyBox v\d|systemd\[1\]: |^\[?[\w.-]+@[\w.-]+[: ]\S*[#$] ?`)

// writing are the last words while a flash is written, which a key may break off.
var writing = regexp.MustCompile(`(?i)\b(?:eras|programm?|writ|upgrad|burn|flash)ing\b[^\n]*$|do not (?:power|turn|switch|unplug|remove|reset)[^\n]*\n?$`)

// writingWait is how long a flash write may be silent.
const writingWait = 2 * time.Minute

// Interrupt waits for a loader's first words and then types until the loader is at
// its prompt or a kernel has started. The prompt counts when it stands alone and
// stays so while nothing is typed. Errors are those of Expect.
func (d *Dialogue) Interrupt(ctx context.Context, within time.Duration, in Interruption) (Outcome, error) {
	every := in.Every
	if every <= 0 {
		every = defaultEvery
	}
	begin, heard := time.Now(), time.Now()
	typing := in.Begin == nil
	for {
		if !typing && in.Begin.Match(d.text.buf) {
			typing = true
			at := in.Begin.FindIndex(d.text.buf)[0]
			d.text.buf = append(d.text.buf[:0], d.text.buf[at:]...) // the old system's words are over
		}
		if !typing && in.Dark != nil && time.Since(heard) > darkAfter && in.Dark() {
			typing = true
			d.text.take()
		}
		if typing && started.Match(d.text.buf) {
			d.text.take()
			return MissedAutoboot, nil
		}
		if d.stopped(in.Keys) {
			came, err := d.more(ctx, d.quiet())
			if err != nil {
				return "", err
			}
			if !came {
				d.text.take()
				return AtPrompt, nil
			}
			continue
		}
		if time.Since(begin) > within {
			if typing {
				return "", d.timeout(fmt.Sprintf("the prompt %q, nor a kernel's start, while %q was typed,", d.Prompt, in.Keys), within)
			}
			return "", d.timeout("a boot loader's first words", within)
		}
		if typing {
			keys := in.Keys
			if d.promptBefore() && !strings.Contains(keys, d.clearKeys()) {
				keys += d.clearKeys() // a foreign line stands behind the prompt
			}
			if err := d.write(keys); err != nil {
				return "", err
			}
		}
		came, err := d.more(ctx, every)
		if err != nil {
			return "", err
		}
		if came {
			heard = time.Now()
			if typing {
				err = d.drain(ctx, every, heard)
			}
		}
		if err != nil {
			return "", err
		}
	}
}

// drain reads on until the next key is due.
func (d *Dialogue) drain(ctx context.Context, every time.Duration, since time.Time) error {
	for {
		left := every - time.Since(since)
		if left <= 0 || d.atPrompt() {
			return nil
		}
		if came, err := d.more(ctx, left); err != nil || !came {
			return err
		}
	}
}

// stopped reports whether the last line is a prompt with nothing but our own keys
// behind it.
func (d *Dialogue) stopped(keys string) bool {
	last := d.text.last()
	m := d.promptRE().FindStringIndex(last)
	if m == nil || m[1] == 0 {
		return false
	}
	rest := strings.ReplaceAll(last[m[1]:], "^C", "")
	if keys = strings.TrimSpace(visible(keys)); keys != "" {
		rest = strings.ReplaceAll(rest, keys, "")
		if strings.HasPrefix(keys, strings.TrimSpace(rest)) {
			return true // the last of them is on its way
		}
	}
	return strings.TrimSpace(rest) == ""
}

func visible(keys string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, keys)
}

// Probe looks whether a loader waits at its prompt, without a restart. It listens
// first: a console that talks, or that waits for a login, is left alone. So
// is one that writes a flash, until it goes on or has said nothing for 2 min.
func (d *Dialogue) Probe(ctx context.Context) (bool, error) {
	for begin := time.Now(); ; {
		wait := listenTime
		busy := writing.Match(d.text.buf)
		if busy {
			wait = writingWait
		}
		came, err := d.more(ctx, wait)
		switch {
		case err != nil:
			return false, err
		case came && busy:
			begin = time.Now()
		case busy, came && time.Since(begin) > listenMost:
			return false, nil
		}
		if !came {
			break
		}
	}
	if started.MatchString(d.text.last()) {
		return false, nil
	}
	d.text.take()
	if err := d.write(d.clearKeys()); err != nil {
		return false, err
	}
	_, _, err := d.AwaitPrompt(ctx, clearWait, nil)
	var late *TimeoutError
	if errors.As(err, &late) || errors.Is(err, errStarted) {
		return false, nil
	}
	return err == nil, err
}

// Sync makes sure that what looks like a prompt is the loader's: it empties the
// line, gives a command whose answer only the loader can know, and looks for
// want in what comes back. From then on only the prompt seen here counts.
func (d *Dialogue) Sync(ctx context.Context, command string, want *regexp.Regexp) error {
	var said string
	for range 3 {
		if err := d.Recover(ctx); err != nil {
			return err
		}
		if err := d.Type(ctx, command); err != nil {
			return err
		}
		if err := d.enter(ctx, command); err != nil {
			return err
		}
		var err error
		if said, err = d.syncPrompt(ctx); err != nil {
			return err
		}
		if want.MatchString(said) {
			return nil
		}
	}
	return fmt.Errorf("what looks like the prompt %q does not answer %q as a boot loader does, but with %.200q", d.Prompt, command, strings.TrimSpace(said))
}

// syncPrompt waits for the prompt and narrows the expression to it.
func (d *Dialogue) syncPrompt(ctx context.Context) (string, error) {
	for heard := time.Now(); ; {
		if d.atPrompt() {
			came, err := d.more(ctx, d.quiet())
			if err != nil {
				return "", err
			}
			if !came {
				prompt := strings.TrimSpace(d.text.last())
				said := d.upToPrompt()
				d.Prompt = regexp.QuoteMeta(prompt)
				return said, nil
			}
			heard = time.Now()
			continue
		}
		if time.Since(heard) > 5*time.Second {
			return "", d.timeout(fmt.Sprintf("the prompt %q", d.Prompt), 5*time.Second)
		}
		came, err := d.more(ctx, time.Second)
		if err != nil {
			return "", err
		}
		if came {
			heard = time.Now()
		}
	}
}
