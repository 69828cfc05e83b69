package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// Channel is what a dialogue reads and types on: a targets.Tap, or a loader that is
// reached over the network.
type Channel interface {
	io.Writer
	// Next returns the bytes that came since the last call, as soon as there are
	// any. Its error is ctx's cause, or says that the line has closed.
	Next(ctx context.Context) ([]byte, error)
}

// Dialogue speaks with a boot loader over a target's console: it types paced,
// checks every echo before it presses Enter, and waits for the prompt. One
// goroutine uses it. The zero value of every field but Channel and Prompt is usable.
type Dialogue struct {
	Channel Channel
	Prompt  string         // regular expression of the prompt, matched at the begin of a line
	Clear   string         // keys that empty the input line and bring a new prompt (default ^C)
	Pace    time.Duration  // between characters (default 1 ms); a UART without a FIFO loses what comes faster
	Quiet   time.Duration  // a prompt counts when nothing follows it for so long (default 150 ms)
	Longest int            // characters in a command, 0: no limit
	Begin   *regexp.Regexp // a loader's first words: seen while a command is typed, the machine has restarted; nil: not looked for

	text       text
	prompt     *regexp.Regexp // compiled of compiledOf, anchored at a line's begin
	compiledOf string
}

const (
	defaultPace  = time.Millisecond
	defaultQuiet = 150 * time.Millisecond
	echoWait     = 700 * time.Millisecond // without a byte: the echo ends here
	echoMax      = 15 * time.Second       // for one echo on a console that never stops
	enterWait    = 1500 * time.Millisecond
	clearWait    = 1500 * time.Millisecond
	tries        = 4 // of a line whose echo is wrong
	slower       = 5 // times the pace, with every try
	enter        = "\r"
)

// EchoError says that a loader did not show what was typed, however slowly.
type EchoError struct {
	Line string
	Got  string // of the last try
}

func (e *EchoError) Error() string {
	if strings.TrimSpace(e.Got) == "" {
		return fmt.Sprintf("the console does not show what is typed (%.60q): is its other direction wired, is the loader's input disabled?", e.Line)
	}
	return fmt.Sprintf("the echo of %.200q stays wrong after %d tries, the last was %.200q: is the console noisy, does somebody else type?",
		e.Line, tries, strings.TrimSpace(e.Got))
}

// promptRE is the prompt's expression at the begin of a line.
func (d *Dialogue) promptRE() *regexp.Regexp {
	if d.prompt == nil || d.compiledOf != d.Prompt {
		d.prompt, d.compiledOf = regexp.MustCompile(`^(?:`+d.Prompt+`) ?`), d.Prompt
	}
	return d.prompt
}

// atPrompt reports whether the last line is a prompt and nothing else.
func (d *Dialogue) atPrompt() bool {
	last := d.text.last()
	m := d.promptRE().FindStringIndex(last)
	return m != nil && m[1] > 0 && strings.TrimSpace(last[m[1]:]) == ""
}

// promptBefore says that a line after the first begins with the prompt: it was
// shown, and something else was printed behind it.
func (d *Dialogue) promptBefore() bool {
	for l := range strings.SplitSeq(string(d.text.buf), "\n") {
		if m := d.promptRE().FindStringIndex(l); m != nil && m[1] > 0 {
			return true
		}
	}
	return false
}

func (d *Dialogue) quiet() time.Duration {
	if d.Quiet > 0 {
		return d.Quiet
	}
	return defaultQuiet
}

// write types keys at once.
func (d *Dialogue) write(keys string) error {
	if _, err := d.Channel.Write([]byte(keys)); err != nil {
		return fmt.Errorf("typing on the console: %w", err)
	}
	return nil
}

// AwaitPrompt waits until the loader shows its prompt and then nothing more, and
// returns what it said before. silence bounds the time without a byte: a transfer
// that shows progress may take long. When stop, which may be nil, matches, the
// text so far comes back with stopped = true. Errors are those of Expect, and that a
// kernel has started.
func (d *Dialogue) AwaitPrompt(ctx context.Context, silence time.Duration, stop *regexp.Regexp) (said string, stopped bool, err error) {
	cleared := false
	for {
		if stop != nil && stop.Match(d.text.buf) {
			return d.text.take(), true, nil
		}
		if started.Match(d.text.buf) {
			return "", false, fmt.Errorf("%w; the last lines: %s", errStarted, strings.Join(quoted(shown(string(d.text.buf))), ", "))
		}
		at, hidden := d.atPrompt(), d.promptBefore()
		wait := silence
		if at {
			wait = d.quiet()
		} else if hidden && !cleared {
			wait = min(silence, 4*d.quiet())
		}
		came, err := d.more(ctx, wait)
		switch {
		case err != nil:
			return "", false, err
		case came:
		case at:
			return d.upToPrompt(), false, nil
		case hidden && !cleared: // a line that somebody else printed stands behind it
			cleared = true
			if err := d.write(d.clearKeys()); err != nil {
				return "", false, err
			}
		default:
			return "", false, d.timeout(fmt.Sprintf("the prompt %q", d.Prompt), silence)
		}
	}
}

// errStarted says that the loader is gone.
var errStarted = errors.New("a kernel started before the loader was told to: did the machine restart?")

// errAgain says that a loader has forgotten what it was told.
var errAgain = errors.New("the machine restarted while a command was typed")

// upToPrompt takes the text, without the prompt that ends it.
func (d *Dialogue) upToPrompt() string {
	all := d.text.take()
	return all[:strings.LastIndexByte(all, '\n')+1]
}

func (d *Dialogue) clearKeys() string {
	if d.Clear != "" {
		return d.Clear
	}
	return "\x03"
}

// Command types line, and once its echo is right presses Enter. It returns what
// the loader said until its next prompt. silence and stop are as in AwaitPrompt;
// after a stop the command is broken off and the loader is at its prompt again.
func (d *Dialogue) Command(ctx context.Context, line string, silence time.Duration, stop *regexp.Regexp) (string, error) {
	if err := d.Type(ctx, line); err != nil {
		return "", err
	}
	if err := d.enter(ctx, line); err != nil {
		return "", err
	}
	said, stopped, err := d.AwaitPrompt(ctx, silence, stop)
	if err != nil {
		return "", fmt.Errorf("after %.100q: %w", line, err)
	}
	if stopped {
		return said, d.Recover(ctx)
	}
	return said, nil
}

// Recover empties the loader's input line, or breaks off its command, and waits
// for a new prompt.
func (d *Dialogue) Recover(ctx context.Context) error {
	_, err := d.clear(ctx)
	return err
}

// clear is Recover; it returns what was said meanwhile.
func (d *Dialogue) clear(ctx context.Context) (said string, err error) {
	for range 4 {
		said += d.text.take()
		if err := d.write(d.clearKeys()); err != nil {
			return said, err
		}
		rest, _, err := d.AwaitPrompt(ctx, clearWait, nil)
		var late *TimeoutError
		if !errors.As(err, &late) {
			return said + rest, err
		}
		if strings.HasSuffix(strings.TrimRight(string(d.text.buf), " "), "^C\n") {
			// It took the key and waits on an empty line without a prompt.
			if err := d.write(enter); err != nil {
				return said, err
			}
			if rest, _, err := d.AwaitPrompt(ctx, clearWait, nil); !errors.As(err, &late) {
				return said + rest, err
			}
		}
	}
	return said, d.timeout(fmt.Sprintf("the prompt %q after %q", d.Prompt, d.clearKeys()), 4*clearWait)
}
