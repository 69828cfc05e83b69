package targets

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A boot method drives the console: what a flash kernel or a loader says is not
// judged, what comes after Go is.
func TestTap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "login"}
		tg.Boot = &bootFunc{traits: BootTraits{Console: true}, f: func(ctx context.Context, tg *Target, _ Kernel) error {
			tap, err := tg.Tap()
			if err != nil {
				return err
			}
			defer tap.Close()
			if _, err := tg.Tap(); err == nil {
				t.Error("two hands on one console")
			}
			go io.WriteString(c.w, "[    0.000000] Linux version 2.6.22 (flash) #1\r\nKernel panic - not syncing: flash\r\nCFE> ")
			var said string
			for !strings.Contains(said, "CFE> ") {
				b, err := tap.Next(ctx)
				if err != nil {
					return err
				}
				said += string(b)
			}
			c.onKey = func(string) {
				go io.WriteString(c.w, boot1+"Kernel panic - not syncing: VFS: Unable to mount root fs\r\n")
			}
			return tap.Go([]byte("go\r"))
		}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.stage(t) != StageNoRoot {
			t.Error(a.err)
		}
		tg.StopConsole()
	})
}

func TestTapEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		tg := &Target{Name: "x", Dial: m.dial, Console: c}
		tg.Boot = &bootFunc{f: func(ctx context.Context, tg *Target, _ Kernel) error {
			tap, err := tg.Tap()
			if err != nil {
				return err
			}
			go c.w.Close()
			_, err = tap.Next(ctx)
			return err
		}}
		_, _, err := Boot(t.Context(), tg, Kernel{Name: "k"}, BootLog{})
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		tg.StopConsole()
		if _, err := (&Target{Name: "y"}).Tap(); err == nil {
			t.Error("a target without a console gave one")
		}
	})
}

// stuckConsole takes nothing that is typed until it is closed.
type stuckConsole struct {
	*pipeConsole
	closed chan struct{}
}

func (c *stuckConsole) Open(context.Context) (io.ReadWriteCloser, error) { return c, nil }

func (c *stuckConsole) Write([]byte) (int, error) {
	<-c.closed
	return 0, io.ErrClosedPipe
}

func (c *stuckConsole) Close() error {
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return c.pipeConsole.Close()
}

// A console that takes no input ends the method with an error and leaves nothing.
func TestTapWriteHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), &stuckConsole{newPipeConsole(), make(chan struct{})}
		tg := &Target{Name: "x", Dial: m.dial, Console: c}
		tg.Boot = &bootFunc{f: func(ctx context.Context, tg *Target, _ Kernel) error {
			tap, err := tg.Tap()
			if err != nil {
				return err
			}
			defer tap.Close()
			_, err = tap.Write([]byte("x"))
			return err
		}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.err == nil || !strings.Contains(a.err.Error(), "took no input for 10s") || a.took != typeWait {
			t.Errorf("after %s: %v", a.took, a.err)
		}
		tg.StopConsole()
	})
}

// A flood neither grows memory nor hides what comes last, also while others read
// and close the tap.
func TestTapUnderAFlood(t *testing.T) {
	m, c := newMachine(), newPipeConsole()
	tg := &Target{Name: "x", Dial: m.dial, Console: c}
	tg.Boot = &bootFunc{f: func(ctx context.Context, tg *Target, _ Kernel) error {
		tap, err := tg.Tap()
		if err != nil {
			return err
		}
		go func() {
			for range 1000 {
				if _, err := c.w.Write(bytes.Repeat([]byte("x"), 4095)); err != nil {
					return
				}
			}
			io.WriteString(c.w, "\nthe end")
			c.w.Close()
		}()
		<-tg.watch.done
		b, err := tap.Next(ctx)
		if err != nil || len(b) > maxTap || !bytes.HasSuffix(b, []byte("the end")) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if _, err := tap.Next(ctx); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		tap.Close()
		tap.Close()
		return errors.New("enough")
	}}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if _, _, err := Boot(ctx, tg, Kernel{Name: "k"}, BootLog{}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Error(err)
	}
	tg.StopConsole()
}
