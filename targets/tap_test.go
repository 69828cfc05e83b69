package targets

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
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
