package console

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// LineError says that a command cannot be typed at all, however often it is tried.
type LineError struct{ Line, Why string }

func (e *LineError) Error() string { return fmt.Sprintf("the command %.60q… %s", e.Line, e.Why) }

// Type types line until its echo is right, without Enter. The loader must be at
// its prompt. Its error is a *LineError, an *EchoError, ctx's cause, or that the console failed.
func (d *Dialogue) Type(ctx context.Context, line string) error {
	if d.Longest > 0 && len(line) > d.Longest {
		return &LineError{line, fmt.Sprintf("has %d characters, more than the loader's line takes (%d)", len(line), d.Longest)}
	}
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return &LineError{line, "has a control character"}
	}
	pace := d.Pace
	if pace <= 0 {
		pace = defaultPace
	}
	got := ""
	for try := range tries {
		if try > 0 {
			said, err := d.clear(ctx)
			if d.Begin != nil && d.Begin.MatchString(got+said) {
				return fmt.Errorf("%w: %.100q", errAgain, line)
			}
			if err != nil {
				return err
			}
			pace *= slower
		}
		ok, err := d.typeOnce(ctx, line, pace)
		if ok || err != nil {
			return err
		}
		got = d.text.take()
	}
	if err := d.Recover(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return &EchoError{Line: line, Got: got}
}

// typeOnce types line and reports whether the echo was right.
func (d *Dialogue) typeOnce(ctx context.Context, line string, pace time.Duration) (bool, error) {
	if err := d.settle(ctx); err != nil {
		return false, err
	}
	d.text.take()
	for i := range len(line) {
		if err := d.write(line[i : i+1]); err != nil {
			return false, err
		}
		for end := time.Now().Add(pace); ; {
			left := time.Until(end)
			if left <= 0 {
				break
			}
			if _, err := d.more(ctx, left); err != nil {
				return false, err
			}
		}
	}
	for begin := time.Now(); time.Since(begin) < echoMax; {
		right := echoed([]byte(line), d.text.buf, d.promptLen)
		wait := echoWait
		if right {
			wait = 30 * time.Millisecond // for the second of a doubled last character
		}
		came, err := d.more(ctx, wait)
		if err != nil {
			return false, err
		}
		if !came {
			return right, nil
		}
	}
	return echoed([]byte(line), d.text.buf, d.promptLen), nil
}

func (d *Dialogue) promptLen(s []byte) int {
	if m := d.promptRE().FindIndex(s); m != nil {
		return m[1]
	}
	return 0
}

// settle waits, at most 2 s, until the console is quiet.
func (d *Dialogue) settle(ctx context.Context) error {
	for begin := time.Now(); time.Since(begin) < 2*time.Second; {
		came, err := d.more(ctx, 20*time.Millisecond)
		if err != nil || !came {
			return err
		}
	}
	return nil
}

// enter presses Enter, again when nothing shows that it was taken: a loader goes
// to a new line before it does anything.
func (d *Dialogue) enter(ctx context.Context, line string) error {
	d.text.take()
	for range 3 {
		if err := d.write(enter); err != nil {
			return err
		}
		for begin := time.Now(); time.Since(begin) < enterWait; {
			if i := strings.IndexByte(string(d.text.buf), '\n'); i >= 0 {
				d.text.buf = append(d.text.buf[:0], d.text.buf[i+1:]...)
				return nil
			}
			if _, err := d.more(ctx, enterWait-time.Since(begin)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%.100q was typed and shown, but Enter is not taken", line)
}
