package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const goodRelease = "6.1.0-good"

// once is a boot method that starts a kernel once; any other start is the default.
func once(d *device, release string, err error) *bootFunc {
	return &bootFunc{traits: BootTraits{Running: true, Returns: true}, f: func(context.Context, *Target, Kernel) error {
		if err == nil {
			d.goDown()
			d.comeUp(10*time.Second, idOf(9), release)
		}
		return err
	}}
}

// idOf is a boot_id.
func idOf(n int) string { return fmt.Sprintf("b7e40d66-1f0a-4f63-8e2b-5c9d7a90c3%02x", n) }

// trouble is what a machine is in, and what Return makes of it.
type trouble struct {
	prepare func(d *device, t *Target)
	kernel  Kernel
	how     string // begin of it
	err     string
	most    time.Duration
}

func troubles() map[string]trouble {
	good := Kernel{Name: "good", Release: goodRelease, Scheduler: "cfs"}
	return map[string]trouble{
		"by SSH": {func(d *device, _ *Target) {
			d.reboot = func() { d.goDown(); d.comeUp(20*time.Second, idOf(1), goodRelease) }
		}, good, "ssh, after ", "", time.Minute},
		"by SysRq, after a panic": {func(d *device, _ *Target) {
			d.goDown()
			d.lines <- "[    3.000000] Kernel panic - not syncing: x\r\n"
			d.sysrq(func() { d.comeUp(20*time.Second, idOf(1), goodRelease) })
		}, good, "sysrq, after ", "", time.Minute},
		"by power, after a hang": {func(d *device, _ *Target) {
			d.goDown()
			d.power = func(on bool) error {
				if on {
					d.comeUp(20*time.Second, idOf(1), goodRelease)
				}
				return nil
			}
		}, good, "power, after ", "", 2 * time.Minute},
		"SSH says yes and the machine hangs on its way down": {func(d *device, _ *Target) {
			d.reboot = d.goDown
			d.power = func(on bool) error {
				if on {
					d.comeUp(20*time.Second, idOf(1), goodRelease)
				}
				return nil
			}
		}, good, "power, after ", "", 8 * time.Minute},
		"the old boot answers for 60 s": {func(d *device, _ *Target) {
			d.reboot = func() {
				go func() { <-time.After(time.Minute); d.goDown(); d.comeUp(20*time.Second, idOf(1), goodRelease) }()
			}
		}, good, "ssh, after 1m2", "", 2 * time.Minute},
		"another kernel comes up: the method starts the good one": {func(d *device, tg *Target) {
			tg.Boot = once(d, goodRelease, nil)
			d.reboot = func() { d.goDown(); d.comeUp(20*time.Second, idOf(1), "6.12-other") }
		}, good, "boot method, after ", "", 2 * time.Minute},
		"the good kernel is wrong itself": {func(d *device, tg *Target) {
			tg.Boot = once(d, "5.4-stock", nil)
			d.reboot = func() { d.goDown(); d.comeUp(20*time.Second, idOf(1), "6.12-other") }
		}, good, "", "target dev did not come back to its known-good kernel good: ssh: kernel good: wrong kernel: \"6.12-other\" runs", 2 * time.Minute},
		"it never comes back": {func(d *device, _ *Target) {
			d.goDown()
			d.power = func(bool) error { return nil }
		}, good, "", "target dev did not come back to its known-good kernel good: ssh: the target does not answer: connect: connection refused; sysrq: ", 8 * time.Minute},
		"power fails": {func(d *device, _ *Target) { d.goDown() }, good, "", "power: off: the strip does not answer", 2 * time.Minute},
		"the outlet is another's": {func(d *device, _ *Target) {
			d.reboot = func() {} // it says yes and does not
			d.power = func(on bool) error {
				if !on {
					return &OutletError{Target: "dev", Alive: "SSH answers"}
				}
				return nil
			}
		}, good, "", "belongs to someone else", 4 * time.Minute},
		"nothing is known to be good, and it answers": {func(*device, *Target) {}, Kernel{}, "", "", 10 * time.Second},
		"nothing is known to be good, and it hangs": {func(d *device, _ *Target) {
			d.goDown()
			d.power = func(on bool) error {
				if on {
					d.comeUp(20*time.Second, idOf(1), "6.12-other")
				}
				return nil
			}
		}, Kernel{}, "power, after ", "", 2 * time.Minute},
		"a method for every boot": {func(d *device, tg *Target) {
			b := once(d, goodRelease, nil)
			b.traits = BootTraits{}
			tg.Boot = b
		}, good, "boot method, after ", "", time.Minute},
		"a method that must ask, and nobody answers": {func(d *device, tg *Target) {
			b := once(d, goodRelease, nil)
			b.traits.Returns = false
			tg.Boot = b
			d.goDown()
			d.power = func(on bool) error {
				if on {
					d.comeUp(20*time.Second, idOf(1), "6.12-other")
				}
				return nil
			}
		}, good, "boot method, after ", "", 3 * time.Minute},
	}
}

func TestReturn(t *testing.T) {
	for name, c := range troubles() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice()
				tg := d.target()
				tg.Boot = once(d, "not used", errors.New("the method must not be used"))
				c.prepare(d, tg)
				own := tg.Boot
				var notes []string
				begin := time.Now()
				conn, rec, how, err := Return(t.Context(), tg, c.kernel, BootLog{Note: func(s string) { notes = append(notes, s) }, Known: idOld})
				took := time.Since(begin)
				tg.StopConsole()
				if tg.Boot != own {
					t.Error("the boot method is not the target's own any more")
				}
				switch {
				case c.err != "":
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("error %v, want %q", err, c.err)
					}
					if conn != nil || len(notes) == 0 {
						t.Errorf("link %v, notes %q", conn, notes)
					}
				case err != nil || !strings.HasPrefix(how, c.how) || c.how == "" && how != "":
					t.Errorf("%q, %v; want %q", how, err, c.how)
				case tg.Held != conn || conn == nil || c.how != "" && (!rec.Proven || rec.BootID == idOld):
					t.Errorf("held %v, link %v, record %+v", tg.Held, conn, rec)
				}
				if took > c.most {
					t.Errorf("took %s, %q", took, notes)
				}
				<-time.After(2 * time.Minute) // the scripted machine ends
			})
		})
	}
}

// Ctrl-C ends a recovery at once, and another one can begin.
func TestReturnInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		tg := d.target()
		tg.Boot = once(d, "", nil)
		d.reboot = func() { d.goDown(); d.comeUp(2*time.Minute, idOf(1), goodRelease) }
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		begin := time.Now()
		_, _, _, err := Return(ctx, tg, Kernel{Name: "good", Release: goodRelease}, BootLog{})
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took > 31*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		d.power = func(on bool) error {
			if on {
				d.comeUp(10*time.Second, idOf(2), goodRelease)
			}
			return nil
		}
		_, rec, how, err := Return(t.Context(), tg, Kernel{Name: "good", Release: goodRelease}, BootLog{})
		if err != nil || rec.BootID == idOld {
			t.Errorf("%q, %v, %+v", how, err, rec)
		}
		tg.StopConsole()
		<-time.After(3 * time.Minute)
	})
}

// A target that is off is switched on; one that hangs with its supply on is
// restarted.
func TestSwitchedOn(t *testing.T) {
	for name, c := range map[string]struct {
		up   bool
		on   int // it comes up after so many commands to switch on; 0: never
		how  string
		fail bool
	}{
		"up": {up: true}, "off": {on: 1, how: "switched on, it answers after 2"}, "hung": {on: 2, how: "power, after "}, "dead": {fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice()
				tg := d.target()
				tg.Boot = once(d, "", errors.New("not asked for"))
				n := 0
				d.power = func(on bool) error {
					if on {
						if n++; n == c.on {
							d.comeUp(20*time.Second, idOf(1), goodRelease)
						}
					}
					return nil
				}
				if !c.up {
					d.goDown()
				}
				how, err := SwitchedOn(t.Context(), tg, BootLog{})
				if (err != nil) != c.fail || !strings.HasPrefix(how, c.how) || !c.fail && tg.Held == nil {
					t.Errorf("%q, %v", how, err)
				}
				tg.StopConsole()
				<-time.After(time.Minute)
			})
		})
	}
}
