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

func started(traits BootTraits, f func(k Kernel)) *bootFunc {
	return &bootFunc{traits: traits, f: func(_ context.Context, _ *Target, k Kernel) error { f(k); return nil }}
}

// A kernel that hangs silently is found after Timeouts.Silence, and the report
// can say how far it came.
func TestSilentHang(t *testing.T) {
	for _, ready := range []string{"", "login: $"} {
		synctest.Test(t, func(t *testing.T) {
			m, c := newMachine(), newPipeConsole()
			m.up = false
			tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: ready}
			tg.Boot = started(BootTraits{Cmdline: true}, func(Kernel) { talk(c, boot1+"[    2.500000]  sda: sda1 sda2\r\n") })
			var a attempt
			a.run(t.Context(), tg, Kernel{Name: "k"})
			if a.stage(t) != StageHang || !strings.Contains(a.err.Error(), "silent for 1m0s after: sda: sda1 sda2") {
				t.Error(a.err)
			}
			if a.took < time.Minute || a.took > time.Minute+6*time.Second {
				t.Errorf("took %s", a.took)
			}
			tg.StopConsole()
		})
	}
}

// After the console's word silence is no sign: the login prompt is silent too.
func TestReadyThenUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		m.up = false
		tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "ready"}
		tg.Boot = started(BootTraits{Cmdline: true, Emulated: true}, func(Kernel) { talk(c, boot1+"ready", func() { io.WriteString(c.w, "\r\n") }) })
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.stage(t) != StageUnreachable || a.took != 5*time.Minute {
			t.Errorf("after %s: %v", a.took, a.err)
		}
		tg.StopConsole()
	})
}

func TestMuteConsole(t *testing.T) {
	for _, emulated := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m, c := newMachine(), newPipeConsole()
			m.up = false
			tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "login"}
			tg.Boot = started(BootTraits{Cmdline: true, Emulated: emulated}, func(Kernel) {})
			var a attempt
			a.run(t.Context(), tg, Kernel{Name: "k"})
			var be *BootError
			if errors.As(a.err, &be) != emulated || a.err == nil {
				t.Errorf("emulated %v: %v", emulated, a.err)
			}
			tg.StopConsole()
		})
	}
}

func TestConsoleCloses(t *testing.T) {
	for _, emulated := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m, c := newMachine(), newPipeConsole()
			m.up = false
			tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "login"}
			tg.Boot = started(BootTraits{Cmdline: true, Emulated: emulated}, func(k Kernel) {
				talk(c, boot1, func() {
					c.w.Close()
					if !emulated { // a console server that closed; the machine comes up
						<-time.After(20 * time.Second)
						m.set(func(m *machine) { m.up, m.id, m.cmdline = true, idNew, k.Args() })
					}
				})
			})
			var a attempt
			a.run(t.Context(), tg, Kernel{Name: "k"})
			if emulated && a.stage(t) != StageEnded || !emulated && a.err != nil {
				t.Errorf("emulated %v: %v", emulated, a.err)
			}
			tg.StopConsole()
		})
	}
}

// A boot that stops at the loader's prompt is named at once.
func TestLoaderPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "login"}
		tg.Boot = started(BootTraits{Running: true}, func(Kernel) {
			m.set(func(m *machine) { m.up = false })
			talk(c, "[  99.100000] reboot: Restarting system\r\nU-Boot 2021.07\r\n=> ")
		})
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.stage(t) != StageLoader || a.took > 2*time.Second {
			t.Errorf("after %s: %v", a.took, a.err)
		}
		if want := []Phase{PhaseAsked, PhaseDown, PhaseLoading}; !slices.Equal(a.phases, want) {
			t.Errorf("phases %v", a.phases)
		}
		tg.StopConsole()
	})
}

// A panic while the probe runs is the kernel's, not the link's.
func TestPanicDuringProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		tg := &Target{Name: "x", Dial: m.dial, Console: c}
		tg.Boot = started(BootTraits{Cmdline: true}, func(k Kernel) {
			m.set(func(m *machine) {
				m.id, m.cmdline = idNew, k.Args()
				m.broken = func() {
					m.up = false
					talk(c, "[   20.000000] Kernel panic - not syncing: Fatal exception\n")
				}
			})
		})
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.stage(t) != StagePanic {
			t.Error(a.err)
		}
		tg.StopConsole()
	})
}

// The start was asked for, nothing happened, and the boot that answers was not
// known: its uptime gives it away.
func TestOldBootByUptime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.uptime = 86400
		tg := &Target{Name: "x", Dial: m.dial, Boot: started(BootTraits{}, func(Kernel) {})}
		_, _, err := Boot(t.Context(), tg, Kernel{Name: "k"}, BootLog{Known: idNew})
		var be *BootError
		if !errors.As(err, &be) || be.Stage != StageNotRebooted {
			t.Fatal(err)
		}
	})
}

func TestUnreachableWithoutConsole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		tg := &Target{Name: "x", Dial: m.dial, Boot: started(BootTraits{Running: true}, func(Kernel) {
			m.set(func(m *machine) { m.up = false })
		})}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.stage(t) != StageUnreachable || a.took > 5*time.Minute+time.Second {
			t.Errorf("after %s: %v", a.took, a.err)
		}
	})
}

// A server that answers and refuses the log-in is infrastructure; silence behind
// an emulator's network is the guest's. What cannot change is not waited for.
func TestLoginRefused(t *testing.T) {
	for _, c := range []struct {
		link     LinkError
		emulated bool
		infra    bool
		at       time.Duration
	}{
		{LinkError{Phase: "log in"}, false, true, 5 * time.Minute},
		{LinkError{Phase: "log in"}, true, true, 5 * time.Minute},
		{LinkError{Phase: "handshake"}, false, true, 5 * time.Minute},
		{LinkError{Phase: "handshake"}, true, false, 5 * time.Minute},
		{LinkError{Phase: "handshake", Refused: true}, true, true, 0},
		{LinkError{Phase: "connect"}, false, false, 5 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine()
			c.link.Err = errors.New("it did not let us in")
			tg := &Target{Name: "x", Dial: m.dial, Boot: started(BootTraits{Cmdline: true, Emulated: c.emulated}, func(Kernel) {
				m.set(func(m *machine) { m.dialErr = &c.link })
			})}
			var a attempt
			a.run(t.Context(), tg, Kernel{Name: "k"})
			var be *BootError
			if errors.As(a.err, &be) == c.infra || a.err == nil || !strings.Contains(a.err.Error(), "let us in") || a.took != c.at {
				t.Errorf("%+v after %s: %v", c.link, a.took, a.err)
			}
		})
	}
}

// The wanted kernel panics once, restarts by itself and then comes up: it is
// not taken for a good boot.
func TestSecondStartDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		m.up = false
		tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "login: $"}
		tg.Boot = started(BootTraits{Cmdline: true}, func(k Kernel) {
			m.set(func(m *machine) { m.up, m.id, m.cmdline = true, idNew, k.Args() })
			talk(c, boot1+"[    2.900000] Run /init as init process\n"+boot1+"login: ")
		})
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.stage(t) != StageLoop {
			t.Error(a.err)
		}
		tg.StopConsole()
	})
}

// A kernel starts, and yet the boot_id is one that was seen before.
func TestSameIDAfterABanner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "login: $"}
		tg.Boot = started(BootTraits{Cmdline: true, Emulated: true}, func(Kernel) { talk(c, boot1+"login: ") })
		_, _, err := Boot(t.Context(), tg, Kernel{Name: "k"}, BootLog{Known: idOld})
		var be *BootError
		if !errors.As(err, &be) || be.Stage != StageNotRebooted {
			t.Error(err)
		}
		tg.StopConsole()
	})
}

// A console that floods for ever ends with Timeouts.Boot.
func TestChattyConsole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		m.up = false
		tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "login: $"}
		tg.Boot = started(BootTraits{Cmdline: true}, func(Kernel) {
			go func() {
				for {
					if _, err := io.WriteString(c.w, "retrying\r\n"); err != nil {
						return
					}
					<-time.After(time.Second)
				}
			}()
		})
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.stage(t) != StageUnreachable || !strings.Contains(a.err.Error(), "never showed") {
			t.Error(a.err)
		}
		tg.StopConsole()
		<-time.After(2 * time.Second) // the flood notices
	})
}

func TestDriverErrors(t *testing.T) {
	m := newMachine()
	fact := &BootError{Kernel: "k", Stage: "no image", Err: errors.New("x")}
	for _, e := range []error{fact, errors.New("plug is dead")} {
		tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{f: func(context.Context, *Target, Kernel) error { return e }}}
		_, _, err := Boot(t.Context(), tg, Kernel{Name: "k"}, BootLog{})
		if !errors.Is(err, e) {
			t.Errorf("%v", err)
		}
	}
}
