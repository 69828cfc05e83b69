package targets

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// togglePower is a supply that does nothing.
type togglePower struct{}

func (togglePower) Set(context.Context, bool) error { return nil }

// What a crashed system still says while it is restarted is not the new kernel's.
func TestOldWordsDoNotCount(t *testing.T) {
	const old = "[  950.100000] rcu: INFO: rcu_sched self-detected stall on CPU\r\n"
	fresh := "U-Boot 2021.07\r\n" + boot1 + "login: "
	for name, boot := range map[string]func(*Target, *pipeConsole, context.Context) error{
		"power cycled by the method": func(tg *Target, c *pipeConsole, ctx context.Context) error {
			io.WriteString(c.w, boot1+old)
			<-time.After(2 * time.Second)
			if err := PowerCycle(ctx, tg); err != nil {
				return err
			}
			io.WriteString(c.w, fresh)
			return nil
		},
		"restarted by a program": func(_ *Target, c *pipeConsole, _ context.Context) error {
			io.WriteString(c.w, old)
			<-time.After(8 * time.Second)
			io.WriteString(c.w, fresh)
			return nil
		},
		"asked to reboot": func(_ *Target, c *pipeConsole, _ context.Context) error {
			io.WriteString(c.w, old+"[  951.000000] reboot: Restarting system\r\n"+fresh)
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, c := newMachine(), newPipeConsole()
			tg := &Target{Name: "x", Dial: m.dial, Console: c, Power: togglePower{}, Ready: "login: $"}
			tg.Boot = &bootFunc{traits: BootTraits{Cmdline: true}, f: func(ctx context.Context, tg *Target, k Kernel) error {
				err := boot(tg, c, ctx)
				m.set(func(m *machine) { m.id, m.cmdline = idNew, k.Args() })
				return err
			}}
			var a attempt
			a.run(t.Context(), tg, Kernel{Name: "k"})
			if a.err != nil {
				t.Errorf("%s: %v", name, a.err)
			}
			tg.StopConsole()
		})
	}
}
