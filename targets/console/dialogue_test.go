package console

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// driven is a boot method that does what a test says, and then starts nothing.
type driven func(ctx context.Context, tap *targets.Tap) error

var errDriven = errors.New("the test is over")

func (f driven) Boot(ctx context.Context, t *targets.Target, _ targets.Kernel) error {
	tap, err := t.Tap()
	if err != nil {
		return err
	}
	defer tap.Close()
	if err := f(ctx, tap); err != nil {
		return err
	}
	return errDriven
}

// drive runs f with the console of b, in a bubble of its own time.
func drive(t *testing.T, b *targetstest.BootLoader, f func(t *testing.T, ctx context.Context, d *Dialogue) error) {
	synctest.Test(t, func(t *testing.T) {
		tg := &targets.Target{Name: "wl500", Console: b}
		tg.Dial = func(context.Context, targets.SSH, targets.DialOptions) (targets.Conn, error) {
			return nil, &targets.LinkError{Phase: "connect", Err: errors.New("nobody there")}
		}
		b.FromOff = true
		tg.Boot = driven(func(ctx context.Context, tap *targets.Tap) error {
			if err := b.Set(ctx, true); err != nil {
				return err
			}
			return f(t, ctx, &Dialogue{Channel: tap, Prompt: "=>", Longest: 200})
		})
		_, _, err := targets.Boot(t.Context(), tg, targets.Kernel{Name: "k"}, targets.BootLog{})
		if !errors.Is(err, errDriven) {
			t.Error(err)
		}
		tg.StopConsole()
		b.Close()
	})
}

// uboot is a loader that answers echo.
func uboot() *targetstest.BootLoader {
	return &targetstest.BootLoader{
		Banner: "\r\nU-Boot 2010.06 (Mar 01 2012)\r\n\r\nDRAM:  64 MB\r\nHit any key to stop autoboot:  1 ",
		Prompt: "=> ", CtrlC: "<INTERRUPT>\r\n", Window: 300 * time.Millisecond,
		Flash: "\b\b\b 0 \r\n[    0.000000] Linux version 3.2.1 (flash@lab) #1\r\n",
		Run: func(b *targetstest.BootLoader, line string) bool {
			if rest, ok := strings.CutPrefix(line, "echo "); ok {
				b.Say(rest + "\r\n")
				return true
			}
			b.Say("Unknown command '" + line + "' - try 'help'\r\n")
			return true
		},
	}
}

var (
	begin = regexp.MustCompile(`(?m)^U-Boot \d`)
	keys  = Interruption{Keys: " ", Begin: begin}
)

func stopIt(ctx context.Context, d *Dialogue) error {
	outcome, err := d.Interrupt(ctx, 30*time.Second, keys)
	if err != nil {
		return err
	}
	if outcome != AtPrompt {
		return errors.New(string(outcome))
	}
	return d.Sync(ctx, "echo ks-1234", regexp.MustCompile(`(?m)^ks-1234\s*$`))
}

const long = "setenv bootargs console=ttyS0,115200 root=/dev/mtdblock2 rootfstype=squashfs,jffs2 kernsweep.nonce=0011223344556677"

// A command reaches the loader whole through lost and doubled characters and
// lines that others print between ours, and its answer comes back alone.
func TestCommandThroughNoise(t *testing.T) {
	kernelLine := "[   12.345678] usb 1-1: new high-speed USB device number 2\r\n"
	for name, fault := range map[string]func(b *targetstest.BootLoader){
		"clean":               func(*targetstest.BootLoader) {},
		"lost":                func(b *targetstest.BootLoader) { b.Drop, b.Faults = 37, 3 },
		"doubled":             func(b *targetstest.BootLoader) { b.Double, b.Faults = 41, 3 },
		"last one doubled":    func(b *targetstest.BootLoader) { b.Double, b.Faults = len("echo ks-1234")+len("echo ")+len(long), 1 },
		"foreign lines":       func(b *targetstest.BootLoader) { b.Noise, b.NoiseAt = kernelLine, 23 },
		"foreign line behind": func(b *targetstest.BootLoader) { b.Noise, b.NoiseAt = "\r\neth0: link up\r\n", 7 },
		"escapes":             func(b *targetstest.BootLoader) { b.Prompt = "\x1b[0m=> \x1b[K"; b.Noise, b.NoiseAt = "\x1b[0m", 5 },
		"all": func(b *targetstest.BootLoader) {
			b.Drop, b.Double, b.Faults, b.Noise, b.NoiseAt = 53, 31, 3, kernelLine, 60
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := uboot()
			fault(b)
			drive(t, b, func(t *testing.T, ctx context.Context, d *Dialogue) error {
				if err := stopIt(ctx, d); err != nil {
					return err
				}
				said, err := d.Command(ctx, "echo "+long, 5*time.Second, nil)
				if err == nil && !strings.Contains(said, long+"\n") {
					t.Errorf("the answer is %q", said)
				}
				return err
			})
			for _, c := range b.Typed() {
				if c != "echo "+long && c != "echo ks-1234" {
					t.Errorf("the loader ran %q", c)
				}
			}
		})
	}
}

// Nothing is entered whose echo stays wrong.
func TestCommandGivesUp(t *testing.T) {
	b := uboot()
	var sent error
	drive(t, b, func(t *testing.T, ctx context.Context, d *Dialogue) error {
		if err := stopIt(ctx, d); err != nil {
			return err
		}
		b.Drop = 9
		_, sent = d.Command(ctx, long, time.Second, nil)
		return nil
	})
	var echo *EchoError
	if !errors.As(sent, &echo) || !strings.Contains(sent.Error(), "stays wrong after 4 tries") {
		t.Error(sent)
	}
	if got := b.Typed(); !slices.Equal(got, []string{"echo ks-1234"}) {
		t.Errorf("the loader ran %q", got)
	}
}

// Field case: input is ignored at first, the window is short; and a key that is
// typed while nobody counts down must not be.
func TestInterrupt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *targetstest.BootLoader)
		want   Outcome
	}{
		"deaf at first": {func(b *targetstest.BootLoader) { b.Deaf = 400 * time.Millisecond }, AtPrompt},
		"short window":  {func(b *targetstest.BootLoader) { b.Deaf, b.Window = 400*time.Millisecond, 120*time.Millisecond }, AtPrompt},
		"line behind it": {func(b *targetstest.BootLoader) {
			b.Prompt = "=> "
			b.Noise, b.NoiseAt = "\r\n[ 3.0] eth0: up\r\n", 1
		}, AtPrompt},
		"needed twice":   {func(b *targetstest.BootLoader) { b.Needed = 2 }, AtPrompt},
		"wrong key":      {func(b *targetstest.BootLoader) { b.Stops = "x" }, MissedAutoboot},
		"prompt at once": {func(b *targetstest.BootLoader) { b.Window, b.Banner = 0, "U-Boot 2023.01\r\n" }, AtPrompt},
		"prompt in the log": {func(b *targetstest.BootLoader) {
			b.Banner = strings.Replace(b.Banner, "DRAM", "=> \r\n=> x\r\nDRAM", 1)
			b.Stops = "x"
		}, MissedAutoboot},
	} {
		t.Run(name, func(t *testing.T) {
			b := uboot()
			c.change(b)
			var got Outcome
			drive(t, b, func(t *testing.T, ctx context.Context, d *Dialogue) (err error) {
				got, err = d.Interrupt(ctx, 30*time.Second, keys)
				return err
			})
			if got != c.want {
				t.Errorf("%q", got)
			}
			if n := len(b.Lost()); n > 2 {
				t.Errorf("%d keys were typed at the system that had started", n)
			}
		})
	}
}

// While an old system talks, and when a login prompt shows up, nothing is typed.
func TestInterruptKeepsQuiet(t *testing.T) {
	b := uboot()
	b.Window, b.Banner = time.Nanosecond, ""
	b.Flash = "[  100.000000] reboot soon\r\nlab login: "
	var late *TimeoutError
	drive(t, b, func(t *testing.T, ctx context.Context, d *Dialogue) error {
		_, err := d.Interrupt(ctx, 5*time.Second, keys)
		if !errors.As(err, &late) {
			t.Error(err)
		}
		return nil
	})
	if b.Lost() != "" {
		t.Errorf("typed %q", b.Lost())
	}
	if late != nil && !slices.Contains(late.Last, "lab login:") {
		t.Errorf("%q", late.Last)
	}
}

// What looks like a prompt and does not answer like a loader is none.
func TestSyncIsNotFooled(t *testing.T) {
	b := uboot()
	b.Run = func(b *targetstest.BootLoader, line string) bool { b.Say("sh: echo: not found\r\n"); return true }
	drive(t, b, func(t *testing.T, ctx context.Context, d *Dialogue) error {
		if err := stopIt(ctx, d); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Error(err)
		}
		return nil
	})
}

// An Enter that is lost is pressed again; a loader that restarts in the middle of
// a command, or a transfer that never ends, ends with what was seen.
func TestCommandEndings(t *testing.T) {
	b := uboot()
	b.Run = func(b *targetstest.BootLoader, line string) bool {
		switch line {
		case "tftpboot":
			b.Wait(5 * time.Second)
			b.Say("T ")
			b.Wait(5 * time.Second)
			b.Say("\r\nRetry count exceeded; starting again\r\n")
			return true
		case "hang":
			b.Wait(time.Hour)
		case "restart":
			b.Wait(time.Second)
			b.Say(b.Banner + b.Flash)
			b.Wait(time.Hour)
		case "noisy":
			b.Say("done\r\n=> random: crng init done\r\n")
			b.Prompt = ""
			return true
		}
		return uboot().Run(b, line)
	}
	drive(t, b, func(t *testing.T, ctx context.Context, d *Dialogue) error {
		if err := stopIt(ctx, d); err != nil {
			return err
		}
		said, err := d.Command(ctx, "tftpboot", 20*time.Second, regexp.MustCompile("starting again"))
		if err != nil || !strings.Contains(said, "T ") {
			t.Errorf("%q %v", said, err)
		}
		if _, err = d.Command(ctx, "noisy", 20*time.Second, nil); err == nil {
			t.Error("no prompt, and no error")
		}
		b.Prompt = "=> "
		if err := d.Recover(ctx); err != nil {
			return err
		}
		_, err = d.Command(ctx, "hang", 20*time.Second, nil)
		var late *TimeoutError
		if !errors.As(err, &late) {
			t.Error(err)
		}
		if err := b.Set(ctx, false); err != nil {
			return err
		}
		if err := b.Set(ctx, true); err != nil {
			return err
		}
		if err := stopIt(ctx, d); err != nil {
			return err
		}
		begin := time.Now()
		if _, err = d.Command(ctx, "restart", time.Hour, nil); !errors.Is(err, errStarted) || time.Since(begin) > 3*time.Second {
			t.Error(err)
		}
		return nil
	})
}
