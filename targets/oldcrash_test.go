package targets

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A system that was asked to reboot may crash on its way down: that is no word on
// the kernel that comes after it, however long the reset takes.
func TestOldSystemCrashes(t *testing.T) {
	for name, c := range map[string]struct {
		old  string
		gap  time.Duration
		want string
	}{
		"panic, 12s":      {"[ 8125.401223] Kernel panic - not syncing: Fatal exception\r\n[ 8125.401283] ---[ end Kernel panic - not syncing: Fatal exception ]---\r\n", 12 * time.Second, ""},
		"hung task, 12s":  {"[ 8125.401223] INFO: task x:1 blocked for more than 120 seconds.\r\n", 12 * time.Second, ""},
		"restart word":    {"[ 8125.401223] reboot: Restarting system\r\n[ 8125.5] x\r\n[ 8125.601223] BUG: unable to handle page fault for address: 1\r\n", 12 * time.Second, ""},
		"no times, oops":  {"Unable to handle kernel paging request at virtual address 00000004, epc == 802e4c38, ra == 802e4c20\r\nOops[#1]:\r\n", 200 * time.Millisecond, ""},
		"panic for good":  {"[ 8125.401223] Kernel panic - not syncing: Fatal exception\r\n", time.Hour, "died while it was asked to go"},
		"login meanwhile": {"\r\nlab login: \r\n[ 8125.401223] watchdog: watchdog0: watchdog did not stop!\r\n", 15 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, p := newMachine(), newPipeConsole()
				tg := &Target{Name: "x", Dial: m.dial, Console: p, Ready: `login: $`}
				tg.Boot = started(BootTraits{Cmdline: true, Running: true}, func(k Kernel) {
					go func() {
						io.WriteString(p.w, "         Stopping sshd...\r\n")
						m.set(func(m *machine) { m.up = false })
						<-time.After(300 * time.Millisecond)
						io.WriteString(p.w, c.old)
						if c.gap > time.Minute {
							return
						}
						<-time.After(c.gap)
						io.WriteString(p.w, "\r\nU-Boot 2021.07 (lab)\r\nHit any key to stop autoboot:  0\r\nStarting kernel ...\r\n\r\n[    0.000000] Linux version 6.9.3 (b@d) #1 SMP\r\n[    3.0] Run /init as init process\r\nlogin: ")
						m.set(func(m *machine) { m.up, m.id, m.cmdline = true, idNew, k.Args() })
					}()
				})
				var a attempt
				a.run(t.Context(), tg, Kernel{Name: "k"})
				var be *BootError // would be about the kernel
				if c.want == "" && a.err != nil || c.want != "" && (errors.As(a.err, &be) || !strings.Contains(fmt.Sprint(a.err), c.want)) || p.typed.Len() > 0 {
					t.Errorf("%v; typed %q", a.err, p.typed.String())
				}
				tg.StopConsole()
			})
		})
	}
}
