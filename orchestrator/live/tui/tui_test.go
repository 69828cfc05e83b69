package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/term"

	"kernsweep/orchestrator/live"
)

const showLimit = 30 * time.Second // for anything that a terminal is to show

// terminal is a pseudo-terminal that an emulator draws.
type terminal struct {
	t           *testing.T
	master, tty *os.File
	before      *term.State
	done        sync.WaitGroup

	mu     sync.Mutex
	screen *vt.Emulator
	news   chan struct{}
}

func newTerminal(t *testing.T, w, h int) *terminal {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}); err != nil {
		t.Fatal(err)
	}
	c := &terminal{t: t, master: master, tty: tty, screen: vt.NewEmulator(w, h), news: make(chan struct{}, 1)}
	if c.before, err = term.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	c.done.Go(func() { // what the emulator answers is typed, as terminals do
		b := make([]byte, 1024)
		for {
			n, err := c.screen.Read(b)
			if err != nil {
				return
			}
			_, _ = c.master.Write(b[:n])
		}
	})
	c.done.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, err := c.master.Read(b)
			if err != nil {
				return
			}
			c.mu.Lock()
			_, _ = c.screen.Write(b[:n])
			c.mu.Unlock()
			select {
			case c.news <- struct{}{}:
			default:
			}
		}
	})
	t.Cleanup(func() {
		_ = c.tty.Close()
		_ = c.master.Close()
		_ = c.screen.InputPipe().(io.Closer).Close() // its Close would race with its Read
		c.done.Wait()
	})
	return c
}

// await waits until a text is on the screen.
func (c *terminal) await(want string) {
	c.t.Helper()
	end := time.After(showLimit)
	for {
		c.mu.Lock()
		s := c.screen.String()
		c.mu.Unlock()
		if strings.Contains(s, want) {
			return
		}
		select {
		case <-c.news:
		case <-end:
			c.t.Fatalf("%q is not shown:\n%s", want, s)
		}
	}
}

func (c *terminal) types(keys string) {
	c.t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// clean checks that the terminal is as it was.
func (c *terminal) clean() {
	c.t.Helper()
	after, err := term.GetState(int(c.tty.Fd()))
	if err != nil || *after != *c.before {
		c.t.Errorf("the terminal's settings are %+v (%v), and were %+v", after, err, c.before)
	}
	if _, err := c.tty.WriteString("\r\nback in the shell"); err != nil {
		c.t.Fatal(err)
	}
	c.await("back in the shell")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.screen.IsAltScreen() || c.screen.CursorHidden() {
		c.t.Error("the alternate screen is on, or the cursor is hidden")
	}
}

func (c *terminal) show(ctx context.Context, s Source) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := Show(ctx, c.tty, c.tty, []string{"TERM=xterm-256color"}, s)
		ended <- err
	}()
	return ended
}

// end waits for the view's end.
func (c *terminal) end(ended <-chan error) error {
	c.t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(showLimit):
		c.t.Fatal("the view does not end")
		return nil
	}
}

// However a view ends, the terminal is as it was.
func TestShowLeavesTheTerminalClean(t *testing.T) {
	why := errors.New("it was asked to end (SIGTERM)")
	for name, c := range map[string]struct {
		keys string
		stop bool
		fail bool
		want string
	}{
		"q":          {keys: "q"},
		"Ctrl-C":     {keys: "\x03"},
		"in console": {keys: "c\x03"},
		"signal":     {stop: true, want: why.Error()},
		"a fault":    {fail: true, want: "the view failed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			term := newTerminal(t, 80, 24)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			s := f.source()
			if c.fail {
				look, looks := s.Look, 0
				s.Look = func() (live.View, []live.Event, error) {
					if looks++; looks > 2 {
						panic("a fault of ours")
					}
					return look()
				}
			}
			ended := term.show(ctx, s)
			if !c.fail {
				term.await("> wl500gpv2")
			}
			term.types(c.keys)
			if c.stop {
				cancel(why)
			}
			err := term.end(ended)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			term.clean()
		})
	}
}
