package boot

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// breaking is a machine's console that can send a break, as a serial port does.
type breaking struct{ m *targetstest.Machine }

func (b breaking) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	c, err := b.m.Open(ctx)
	return breakingLine{c, b.m}, err
}

type breakingLine struct {
	io.ReadWriteCloser
	m *targetstest.Machine
}

func (b breakingLine) Break(context.Context) error { return b.m.Break() }

// inGuest runs a command there and does not mind that it may never end.
func inGuest(t *testing.T, tg *targets.Target, command string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	_, _ = tg.Held.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", command}})
}

// A machine in every kind of trouble comes back to its own kernel by the
// gentlest means that still works, in a new boot, and is proven.
func TestGuestComesBack(t *testing.T) {
	t.Parallel()
	flash := guestKernel(t, "6.1")
	m, tg := guest(t, guestArgs(t, flash, kernelLine)...)
	tg.Boot, tg.Console = new(Kexec), breaking{m}
	tg.Timeout.Down = 10 * time.Second
	known := targets.Kernel{Name: "flash", Release: "6.1.*", Scheduler: "cfs"}
	wrong := guestKernel(t, "6.12")
	if how, err := targets.SwitchedOn(t.Context(), tg, targets.BootLog{}); err != nil || !strings.HasPrefix(how, "switched on, ") {
		t.Fatalf("%q, %v", how, err)
	}
	mute := "killall -STOP dropbear" // the port is open and nobody answers, as on a machine that hangs
	series := []struct {
		name, how string
		trouble   func(t *testing.T)
		offs      int
	}{
		{"SSH hangs", "sysrq, ", func(t *testing.T) { inGuest(t, tg, "echo 1 >/proc/sys/kernel/sysrq; "+mute) }, 0},
		{"hang, and no SysRq", "power, ", func(t *testing.T) { inGuest(t, tg, "echo 0 >/proc/sys/kernel/sysrq; "+mute) }, 1},
		{"another kernel runs", "ssh, ", func(t *testing.T) {
			wrong.Cmdline = kernelLine
			if rec, err := bootGuest(t, tg, wrong); err != nil || !strings.HasPrefix(rec.Release, "6.12") {
				t.Fatal(rec.Release, err)
			}
		}, 0},
		{"panic", "", func(t *testing.T) { inGuest(t, tg, "echo c >/proc/sysrq-trigger") }, -1},
		{"kernel that panics", "", func(t *testing.T) {
			wrong.Cmdline = kernelLine + " lab.fault=panic"
			_, err := bootGuest(t, tg, wrong)
			wantStage(t, err, targets.StagePanic)
		}, -1},
		{"kernel that hangs", "", func(t *testing.T) {
			wrong.Cmdline = kernelLine + " lab.fault=spin"
			_, err := bootGuest(t, tg, wrong)
			wantStage(t, err, targets.StageHang)
		}, -1},
	}
	if os.Getenv("KERNSWEEP_LONG") != "1" {
		series = series[:2]
	}
	for _, c := range series {
		t.Run(c.name, func(t *testing.T) {
			before, err := targets.ReadBootID(t.Context(), tg.Held)
			if err != nil {
				t.Fatal(err)
			}
			c.trouble(t)
			offs, begin := m.Offs, time.Now()
			var notes []string
			_, rec, how, err := targets.Return(t.Context(), tg, known, targets.BootLog{Known: before, Note: func(s string) { notes = append(notes, s) }})
			if err != nil || !strings.HasPrefix(how, c.how) || !rec.Proven || rec.BootID == before || !strings.HasPrefix(rec.Release, "6.1.") {
				t.Fatalf("%q, %v, %q, %+v", how, err, notes, rec)
			}
			if c.offs >= 0 && m.Offs-offs != c.offs {
				t.Errorf("the supply was switched off %d times, want %d", m.Offs-offs, c.offs)
			}
			t.Logf("back by %s (%s)", how, time.Since(begin).Round(100*time.Millisecond))
		})
	}
}

// An outlet that feeds another machine: this one lives on, which is found out.
func TestGuestBehindAnotherOutlet(t *testing.T) {
	t.Parallel()
	m, tg := guest(t, guestArgs(t, guestKernel(t, "6.1"), kernelLine)...)
	powerOn(t, m, tg)
	var sets []bool
	_, err := targets.SwitchOff(t.Context(), tg, setFunc(func(on bool) error { sets = append(sets, on); return nil }))
	var wrong *targets.OutletError
	if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Alive, "SSH answers") || len(sets) != 2 || !sets[1] {
		t.Errorf("%v, power %v", err, sets)
	}
	said, err := targets.SwitchOff(t.Context(), tg, m)
	if err != nil || !strings.Contains(said, "power-off is confirmed: SSH answers") {
		t.Errorf("%q, %v", said, err)
	}
}

type setFunc func(on bool) error

func (f setFunc) Set(_ context.Context, on bool) error { return f(on) }

// What the kernel wrote into the machine's error record store (ACPI ERST) when
// it crashed is there after the next start, is kept, and then the store is empty.
func TestGuestKeepsThePanicInPstore(t *testing.T) {
	t.Parallel()
	nvram := filepath.Join(t.TempDir(), "erst")
	m, tg := guest(t, append(guestArgs(t, guestKernel(t, "6.1"), kernelLine),
		"-object", "memory-backend-file,id=nvram,mem-path="+nvram+",size=0x10000,share=on", "-device", "acpi-erst,memdev=nvram")...)
	powerOn(t, m, tg)
	var left targets.Crashes
	dir := filepath.Join(t.TempDir(), "pstore")
	if saved, notes, err := left.Collect(t.Context(), tg.Held, dir, true); err != nil || len(saved) != 0 {
		t.Fatalf("a new store has %q, %q, %v", saved, notes, err)
	}
	inGuest(t, tg, "echo c >/proc/sysrq-trigger")
	powerOn(t, m, tg)
	saved, notes, err := left.Collect(t.Context(), tg.Held, dir, false)
	if err != nil || len(saved) == 0 || len(notes) != 0 {
		t.Fatalf("saved %q, %q, %v", saved, notes, err)
	}
	text := ""
	for _, name := range saved {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	if !strings.Contains(text, "sysrq: Trigger a crash") {
		t.Errorf("%q hold no panic: %.300q", saved, text)
	}
	if saved, notes, err := left.Collect(t.Context(), tg.Held, dir, false); err != nil || len(saved) != 0 {
		t.Errorf("the store still has %q, %q, %v", saved, notes, err)
	}
}
