package targets

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBootWithConsoleAndNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		m.up = false
		tg := &Target{Name: "x86", Dial: m.dial, Console: c, Ready: `^sshd ready`, Arch: "amd64"}
		tg.Boot = &bootFunc{traits: BootTraits{Cmdline: true, Emulated: true}, f: func(_ context.Context, _ *Target, k Kernel) error {
			talk(c, "SeaBIOS (version 1)\r\n[    0.000000] Linux version 6.1.0 (x) #1 SMP\r\n", func() {
				<-time.After(8 * time.Second)
				m.set(func(m *machine) { m.up, m.id, m.cmdline = true, idNew, "console=ttyS0 "+k.Args() })
				io.WriteString(c.w, "sshd ready\r\n")
			})
			return nil
		}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "cfs", Scheduler: "cfs", Release: "6.1.*"})
		if a.err != nil {
			t.Fatal(a.err)
		}
		want := []Phase{PhaseAsked, PhaseDown, PhaseLoading, PhaseKernel, PhaseReachable, PhaseVerified}
		if !slices.Equal(a.phases, want) || len(a.rec.Phases) != len(want) {
			t.Errorf("phases %v", a.phases)
		}
		if !a.rec.Proven || a.rec.BootID != idNew || a.rec.Scheduler.Name != "cfs" || a.rec.Arch != "amd64" || a.rec.ClientAddr != "10.0.2.2" {
			t.Errorf("record %+v", a.rec)
		}
		if c.typed.Len() != 0 { // a key would stop an autoboot countdown
			t.Errorf("typed %q at the console", c.typed.String())
		}
		if m.dials != 1 {
			t.Errorf("%d dials, want one: after the console's word", m.dials)
		}
		// After the boot, an oops is an event with a mark before it.
		mark := tg.ConsoleMark()
		io.WriteString(c.w, "[  60.000000] BUG: scheduling while atomic: iperf3/912\n")
		<-time.After(time.Second)
		if ev := tg.ConsoleEvents(mark); len(ev) != 1 || ev[0].Stage != StageOops {
			t.Errorf("events %v", ev)
		}
		tg.StopConsole()
		if !strings.Contains(a.console.String(), "scheduling while atomic") {
			t.Error("the console is not recorded after the boot")
		}
	})
}

func TestBootJudges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*machine)
		kernel Kernel
		stage  string
	}{
		"release":   {func(m *machine) { m.release = "5.15.137-stock" }, Kernel{Release: "6.1.*"}, StageWrongKernel},
		"nonce":     {func(m *machine) { m.cmdline = "kernsweep.nonce=0011223344556677" }, Kernel{}, StageWrongKernel},
		"scheduler": {func(m *machine) { m.release = "6.12.1" }, Kernel{Scheduler: "cfs"}, StageWrongScheduler},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine()
				tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Cmdline: true}, f: func(_ context.Context, _ *Target, k Kernel) error {
					m.set(func(m *machine) { m.id, m.cmdline = idNew, k.Args(); c.change(m) })
					return nil
				}}}
				var a attempt
				a.run(t.Context(), tg, c.kernel)
				if got := a.stage(t); got != c.stage {
					t.Errorf("stage %q, want %q: %v", got, c.stage, a.err)
				}
				if tg.Held != nil {
					t.Error("a link is held after a failed boot")
				}
			})
		})
	}
}

// A slow shutdown: the old boot answers for 60 s after the request.
func TestRebootSlowShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		tg := &Target{Name: "slow", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Running: true}, f: func(context.Context, *Target, Kernel) error {
			go func() {
				<-time.After(60 * time.Second)
				m.set(func(m *machine) { m.up = false })
				<-time.After(20 * time.Second)
				m.set(func(m *machine) { m.up, m.id = true, idNew })
			}()
			return nil
		}}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.err != nil || !a.rec.Proven || a.rec.BootID != idNew {
			t.Fatalf("%v %+v", a.err, a.rec)
		}
		if a.took < 80*time.Second || a.took > 90*time.Second {
			t.Errorf("took %s", a.took)
		}
		if want := []Phase{PhaseAsked, PhaseDown, PhaseReachable, PhaseVerified}; !slices.Equal(a.phases, want) {
			t.Errorf("phases %v", a.phases)
		}
		if len(a.notes) != 1 || !strings.Contains(a.notes[0], "still up") {
			t.Errorf("notes %q", a.notes)
		}
	})
}

func TestRebootNeverGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		tg := &Target{Name: "stubborn", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Running: true},
			f: func(context.Context, *Target, Kernel) error { return nil }}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		var nd *NotDownError
		if !errors.As(a.err, &nd) || nd.BootID != idOld || a.took > 121*time.Second {
			t.Fatalf("after %s: %v", a.took, a.err)
		}
	})
}

// The answers of a machine that goes down: only the seventh counts.
func TestRebootProbeAnswers(t *testing.T) {
	answers := []struct {
		exit int
		out  string
	}{
		{0, idOld}, {255, ""}, {1, ""}, {0, ""},
		{0, "The system is going down for reboot NOW!\n" + idOld}, {1, ""}, {0, idNew},
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		n := 0
		tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Running: true}, f: func(context.Context, *Target, Kernel) error {
			m.set(func(m *machine) {
				m.answer = func() (Exit, string, error) {
					a := answers[min(n, len(answers)-1)]
					n++
					if n == len(answers) {
						m.id = idNew
					}
					return Exit{Code: a.exit}, a.out + "\n", nil
				}
			})
			return nil
		}}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if n != len(answers) || a.err != nil || a.rec.BootID != idNew {
			t.Errorf("decided after %d answers, want %d (%v)", n, len(answers), a.err)
		}
	})
}

func TestBootNone(t *testing.T) {
	m := newMachine()
	tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{OnlyOnce: true},
		f: func(context.Context, *Target, Kernel) error { return nil }}}
	for _, c := range []struct {
		known  string
		proven bool
	}{{"", false}, {idOld, false}, {idNew, true}} {
		_, rec, err := Boot(t.Context(), tg, Kernel{Name: "k"}, BootLog{Known: c.known})
		if err != nil || rec.Proven != c.proven || (rec.Unproven == "") != c.proven {
			t.Errorf("known %q: %v %+v", c.known, err, rec)
		}
	}
}

func TestBootInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.up = false
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Cmdline: true},
			f: func(context.Context, *Target, Kernel) error { return nil }}}
		var a attempt
		a.run(ctx, tg, Kernel{Name: "k"})
		if !errors.Is(a.err, context.DeadlineExceeded) {
			t.Fatal(a.err)
		}
	})
}

func TestWrongArchIsConfiguration(t *testing.T) {
	m := newMachine()
	tg := &Target{Name: "x", Arch: "mips", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{OnlyOnce: true},
		f: func(context.Context, *Target, Kernel) error { return nil }}}
	_, _, err := Boot(t.Context(), tg, Kernel{Name: "k"}, BootLog{})
	var be *BootError
	if err == nil || errors.As(err, &be) || !strings.Contains(err.Error(), `"mips"`) {
		t.Fatal(err)
	}
}
