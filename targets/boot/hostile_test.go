package boot

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

// supply is a power driver that tells when it cuts.
type supply struct {
	*targetstest.BootLoader
	cut func()
}

func (s *supply) Set(ctx context.Context, on bool) error {
	if !on {
		s.cut()
	}
	return s.BootLoader.Set(ctx, on)
}

// legacyImage is a kernel that bootm takes.
func legacyImage(t *testing.T) targets.Kernel { return image(t, 0, "\x27\x05\x19\x56", 100_000) }

func staticUBoot() *UBoot {
	return &UBoot{Netload: Netload{TFTP: "10.0.2.2"}, KernelAddr: "0x82000000"}
}

// quietLoader is a U-Boot that does what it is told in few words.
func quietLoader() *targetstest.BootLoader {
	env := map[string]string{}
	return &targetstest.BootLoader{
		Banner: "\r\nU-Boot 2010.06 (Mar 01 2012)\r\n\r\nDRAM:  64 MB\r\nHit any key to stop autoboot:  1 ",
		Prompt: "=> ", CtrlC: "<INTERRUPT>\r\n", Window: 300 * time.Millisecond,
		Run: func(b *targetstest.BootLoader, line string) bool {
			word, rest, _ := strings.Cut(line, " ")
			switch word {
			case "version":
				b.Say("U-Boot 2010.06 (Mar 01 2012)\r\n")
			case "setenv":
				name, value, _ := strings.Cut(rest, " ")
				env[name] = strings.Trim(value, "'")
			case "printenv":
				b.Say(rest + "=" + env[rest] + "\r\n")
			case "tftpboot":
				b.Say("Bytes transferred = 100000 (186a0 hex)\r\n")
			case "bootm":
				b.Say("## Booting kernel from Legacy Image at 82000000 ...\r\nStarting kernel ...\r\n" + panics)
				return false
			case "go":
				b.Wait(5 * time.Second)
				b.Say(panics)
				return false
			default:
				b.Say("Unknown command '" + word + "' - try 'help'\r\n")
			}
			return true
		},
	}
}

// A shell whose prompt looks like a loader's, and that knows echo, is no loader.
func TestShellIsNoLoader(t *testing.T) {
	b := quietLoader()
	b.Banner, b.Window, b.Prompt, b.CtrlC = "", 0, "router # ", "^C\r\n"
	b.Run = func(b *targetstest.BootLoader, line string) bool {
		if said, ok := strings.CutPrefix(line, "echo "); ok {
			b.Say(said + "\r\n")
		} else {
			b.Say("-sh: " + line + ": not found\r\n")
		}
		return true
	}
	said, _ := scripted(t, b, staticUBoot(), legacyImage(t))
	has(t, said, "gave up after 3 tries")
	for _, c := range b.Typed() {
		if !regexp.MustCompile(`^ks\d+$`).MatchString(c) && c != "#" && !strings.Contains(c, "/proc/sysrq-trigger") { // a restart's
			t.Errorf("the shell ran %q", c)
		}
	}
}

// begins makes b's first power-on a system that says words and then takes keys.
// It returns the supply, and what is typed at that system, and when it is cut.
func begins(b *targetstest.BootLoader, words string) (s *supply, typed *string, on *time.Duration) {
	banner, flash := b.Banner, b.Flash
	b.Banner, b.Flash, b.Stops, b.Window = "", words, "\x00", 500*time.Millisecond
	typed, on = new(string), new(time.Duration)
	var begun time.Time
	first := true
	s = &supply{BootLoader: b}
	s.cut = func() {
		if first {
			*typed, *on = b.Lost(), time.Since(begun)
			b.Banner, b.Flash, b.Stops, b.Window, first = banner, flash, "", 300*time.Millisecond, false
		}
	}
	begun = time.Now()
	return s, typed, on
}

// No key that breaks off is typed at the shell, the login or the flash write of
// what runs, and a flash write is not cut off.
func TestRunningSystemIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		says  string
		least time.Duration
	}{
		"shell":          {"\r\nBusyBox v1.36.1 () built-in shell (ash)\r\n\r\nroot@OpenWrt:/# ", 0},
		"shell alone":    {"\r\nroot@OpenWrt:~# ", 0},
		"login begun":    {"\r\nlab login: ope", 0},
		"its last words": {"\r\nType 'help' to stop guessing\r\nsystemd[1]: Stopping autoboot helper\r\nlab login: ", 0},
		"flash write":    {"\r\nErasing sector 12 ", 2 * time.Minute},
		"upgrade":        {"\r\nFirmware upgrade started, do NOT power off\r\n", 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := quietLoader()
				s, typed, on := begins(b, c.says)
				err := hostile(t, b, s, staticUBoot(), legacyImage(t), targets.Timeouts{})
				if stageOf(t, err) != targets.StageNoRoot {
					t.Error(err)
				}
				if strings.ContainsAny(*typed, "\x03") || *on < c.least { // a restart may look for a shell
					t.Errorf("%q was typed at it, and it was cut off after %s", *typed, *on)
				}
			})
		})
	}
}

// A loader that is not heard, and then a shell: it gets no more keys.
func TestShellAfterTheDark(t *testing.T) {
	b := quietLoader()
	b.Banner, b.Stops, b.Window = "", "\x00", 12*time.Second
	b.Flash = "\r\nroot@OpenWrt:/# "
	said, _ := scripted(t, b, staticUBoot(), legacyImage(t))
	has(t, said, "missed autoboot window")
	if n := strings.Count(b.Lost(), "\x03"); n > b.Sessions {
		t.Errorf("%q was typed at the shell in %d starts", b.Lost(), b.Sessions)
	}
}

// hostile boots k on b, in the bubble of its test.
func hostile(t *testing.T, b *targetstest.BootLoader, power targets.Power, method targets.Booter, k targets.Kernel, limits targets.Timeouts) error {
	t.Helper()
	tg := &targets.Target{Name: "wl500", Console: b, Power: power, Boot: method, Timeout: limits, Serve: serveNothing}
	tg.Dial = func(context.Context, targets.SSH, targets.DialOptions) (targets.Conn, error) {
		return nil, &targets.LinkError{Phase: "connect", Err: errors.New("nobody there")}
	}
	_, rec, err := targets.Boot(t.Context(), tg, k, targets.BootLog{})
	t.Logf("boot: %v\nnotes: %q\ntyped: %q", err, rec.Notes, b.Typed())
	tg.StopConsole()
	b.Close()
	if c, ok := method.(targets.Closer); ok {
		c.Close()
	}
	return err
}

// A loader that restarts while it is typed at has forgotten its variables: the
// last command alone would start the kernel without its arguments.
func TestRestartWhileTyping(t *testing.T) {
	b := quietLoader()
	run, glitch := b.Run, false
	b.Run = func(b *targetstest.BootLoader, line string) bool {
		if line == "printenv bootargs" && !glitch {
			glitch = true
			b.Noise, b.NoiseAt = "\r\n\r\nU-Boot 2010.06 (Mar 01 2012)\r\n\r\nDRAM:  64 MB\r\n=> ", 1
		}
		return run(b, line)
	}
	u := staticUBoot()
	s := &supply{BootLoader: b, cut: func() { b.NoiseAt = 0 }}
	said, judged := scriptedWith(t, b, s, u, legacyImage(t))
	if said != nil || stageOf(t, judged) != targets.StageNoRoot {
		t.Error(said, judged)
	}
	typed := b.Typed()
	if n := len(typed); typed[n-1] != "bootm 0x82000000" || b.Sessions < 2 {
		t.Errorf("%d starts, typed %q", b.Sessions, typed)
	}
	if !strings.Contains(strings.Join(u.Notes(), "\n"), "restarted while a command was typed") {
		t.Errorf("%q", u.Notes())
	}
}

// A kernel that says nothing at first gets no second Enter.
func TestOneEnter(t *testing.T) {
	b := quietLoader()
	u := staticUBoot()
	u.How = "go"
	said, judged := scripted(t, b, u, legacyImage(t))
	if said != nil || stageOf(t, judged) != targets.StageNoRoot || strings.Contains(b.Lost(), "\r") {
		t.Errorf("%v; %v; typed at the kernel: %q", said, judged, b.Lost())
	}
}

// A flash write goes on when the time for the boot is over, and is not done twice.
func TestFlashWriteIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := cfe(starts(panics))
		run, whole := b.Run, 0
		b.Run = func(b *targetstest.BootLoader, line string) bool {
			if strings.HasPrefix(line, "flash ") {
				b.Say("Programming...")
				for range 3 {
					if !b.Wait(time.Minute) {
						return false
					}
					b.Say(".")
				}
				whole++
			}
			if line == "go" && whole == 1 {
				b.Restart()
				return false
			}
			return run(b, line)
		}
		c := newCFE()
		c.Flash, c.FlashCommand = true, "flash -noheader FILE flash1.trx"
		err := hostile(t, b, b, c, image(t, 0, "\x1f\x8b\x08", 100_000), targets.Timeouts{Boot: time.Minute})
		if err == nil || whole != 1 || slices.Contains(b.Typed(), "\x03") {
			t.Errorf("%v; %d whole writes", err, whole)
		}
	})
}
