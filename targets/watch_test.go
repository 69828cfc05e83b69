package targets

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watched feeds chunks to a watcher and returns its verdict with the time from
// the last byte to it; nil when there is none within 30 s.
func watched(t *testing.T, chunks []string, o watchOptions) (v *ConsoleEvent, after time.Duration, w *watch) {
	t.Helper()
	c := newPipeConsole()
	var failed time.Time
	o.Fail = func() { failed = time.Now() }
	w = startWatch(c, o)
	w.arm(time.Hour)
	for _, p := range chunks {
		io.WriteString(c.w, p)
	}
	last := time.Now()
	<-time.After(30 * time.Second)
	v = w.state().Verdict
	w.stop()
	return v, failed.Sub(last), w
}

// ways to cut a transcript: whole, byte by byte, in odd pieces.
func ways(s string) map[string][]string {
	var odd []string
	for i, n := 0, 1; i < len(s); i, n = i+n, n%7+1 {
		odd = append(odd, s[i:min(i+n, len(s))])
	}
	return map[string][]string{"whole": {s}, "bytes": strings.Split(s, ""), "odd": odd}
}

const boot1 = "[    0.000000] Linux version 6.1.0-49 (b@d) #1 SMP\r\n[    1.0] x\r\n"

var verdicts = []struct{ name, text, stage, says string }{
	{"panic", boot1 + "[    2.100000] Kernel panic - not syncing: Attempted to kill init!\r\n[    2.100100] ---[ end Kernel panic - not syncing ]---\r\n", StagePanic, "Attempted to kill init"},
	{"panic without end of line", boot1 + "[    2.100000] Kernel panic - not syncing: out of luck", StagePanic, "luck"},
	{"panic behind a program's words", boot1 + "Starting net...[    2.100000] Kernel panic - not syncing: Fatal exception\n", StagePanic, "Fatal"},
	{"panic in two", boot1 + "[    2.100000] Ker[    2.100010] cpu2: parked\n[    2.100020] usb 1-1: new\nnel panic - not syncing: stack-protector\n", StagePanic, "stack-protector"},
	{"panic in colour", boot1 + "[    2.100000] Kernel \x1b[1;31mpanic\x1b[0m - not syncing: x\n", StagePanic, "panic"},
	{"panic without times", "Linux version 2.6.30.5 (x) #7\nKernel panic - not syncing: No init\n", StagePanic, ""},
	{"no root", boot1 + "[    1.900000] VFS: Cannot open root device \"sda1\" or unknown-block(0,0)\n[    1.900001] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n", StageNoRoot, "root"},
	{"no init", boot1 + "[    1.900001] Kernel panic - not syncing: No working init found.  Try passing init= option to kernel.\n", StageNoInit, "No working init"},
	{"oops x86", boot1 + "[    3.000000] BUG: kernel NULL pointer dereference, address: 0000000000000000\n[    3.000100] Oops: 0002 [#1] PREEMPT SMP\n", StageOops, "NULL"},
	{"oops mips", boot1 + "CPU 0 Unable to handle kernel paging request at virtual address 00000000, epc == 80123456, ra == 80123450\nOops[#1]:\n", StageOops, "epc"},
	{"oops arm", boot1 + "[    3.0] a\n[    3.000000] Internal error: Oops: 17 [#1] ARM\n", StageOops, "17"},
	{"oops with caller", boot1 + "[    3.000000][    T1] BUG: unable to handle page fault for address: 1\n", StageOops, "fault"},
	{"lockup", boot1 + "[   48.000000] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [swapper/0:1]\n", StageLockup, "26s"},
	{"hung task", boot1 + "[  242.000000] INFO: task init:1 blocked for more than 120 seconds.\n", StageHungTask, "120"},
	{"rcu", boot1 + "[   21.000000] rcu: INFO: rcu_sched self-detected stall on CPU\n", StageRCU, "stall"},
	{"loop", boot1 + "[    2.900000] Run /init as init process\n" + boot1, StageLoop, "6.1.0-49"},
	{"third time", boot1 + boot1 + boot1, StageLoop, "again"},
	{"another kernel", boot1 + "\n\nU-Boot 2021.07\n[    0.000000] Linux version 5.15.137-stock (b) #0 Mon\nlogin: ", StageRestart, "running 5.15.137-stock #0 instead of 6.1.0-49 #1"},
	{"uboot prompt", "U-Boot 2021.07 (lab)\nHit any key to stop autoboot:  0 \n=> ", StageLoader, "=> "},
	{"grub prompt", "\x1b[2J\x1b[1;1Hgrub> ", StageLoader, "grub"},
	{"cfe prompt", "CFE version 1.0.37\nBoot failed\nCFE> ", StageLoader, "CFE"},
	{"initramfs", boot1 + "Gave up waiting for root file system device.\n(initramfs) ", StageNoRoot, "waiting"},

	{"a word is none", boot1 + "[  150.000000] random: WARNING is only a word here, as is BUG in this sentence\n", "", ""},
	{"panic= is none", boot1 + "[    0.100000] Kernel command line: console=ttyS0 panic=1 oops=panic\n", "", ""},
	{"quoted is none", boot1 + "watchdogd: will reboot after \"Kernel panic - not syncing\" in the log\n", "", ""},
	{"quoted in another language is none", boot1 + "[    4.000000] systemd[1]: „Kernel panic - not syncing“ wird protokolliert\n", "", ""},
	{"quoted at the end is none", boot1 + "watchdogd: reboots after \"Kernel panic - not syncing\"\nnext: line\nqemu[vm1]: [    1.200000] Kernel panic - not syncing\nnext: line\n", "", ""},
	{"warning is none", boot1 + "[    9.120000] WARNING: CPU: 0 PID: 88 at drivers/net/foo.c:120\n", "", ""},
	{"doubled banner", boot1 + boot1 + "[    2.9] Run /init as init process\nlogin: ", "", ""},
	{"printed by a program", boot1 + "[   12.000000] eth0 up\nLinux version 5.4.0 (other) #3\n", "", ""},
	{"counting down", "U-Boot 2021.07\nHit any key to stop autoboot:  3 ", "", ""},
	{"a shell", boot1 + "root@OpenWrt:/# ", "", ""},
	{"garbage", strings.Repeat("\xff\x00\x1b]\x80", 5000), "", ""},
	{"endless line", strings.Repeat("x", 100_000), "", ""},
}

func TestConsoleVerdicts(t *testing.T) {
	for _, c := range verdicts {
		for way, chunks := range ways(c.text) {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var rec bytes.Buffer
					v, after, _ := watched(t, chunks, watchOptions{Record: &rec})
					if rec.String() != c.text {
						t.Error("the record differs from what was sent")
					}
					if c.stage == "" {
						if v != nil {
							t.Fatalf("verdict %+v, want none", *v)
						}
						return
					}
					if v == nil || v.Stage != c.stage || !strings.Contains(v.Line, c.says) {
						t.Fatalf("verdict %+v, want %s %q", v, c.stage, c.says)
					}
					if after >= time.Second {
						t.Errorf("%s after the last byte", after)
					}
				})
			})
		}
	}
}

func TestConsoleFixtures(t *testing.T) {
	for name, stage := range map[string]string{"restart.log": StageRestart, "doubled_banner.log": "", "interleaved.log": StagePanic} {
		b, err := os.ReadFile(filepath.Join("testdata/console", name))
		if err != nil {
			t.Fatal(err)
		}
		for way, chunks := range ways(string(b)) {
			synctest.Test(t, func(t *testing.T) {
				v, _, w := watched(t, chunks, watchOptions{Wanted: "6.9.3-ks-preempt", Ready: regexp.MustCompile(`login: $`)})
				if v == nil && stage != "" || v != nil && v.Stage != stage {
					t.Errorf("%s %s: verdict %+v, want %q", name, way, v, stage)
				}
				if stage == "" && !w.state().Ready {
					t.Errorf("%s %s: the login prompt was not seen", name, way)
				}
			})
		}
	}
}

// A kernel that loads the wanted one is no restart; the way back is.
func TestChainedKernel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := strings.ReplaceAll(boot1, "6.1.0-49", "6.12.3")
		v, _, _ := watched(t, []string{boot1, "[    3.0] Run /init as init process\n", next}, watchOptions{Wanted: "6.12.*"})
		if v != nil {
			t.Errorf("verdict %+v", *v)
		}
	})
}

func TestTolerantOfStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _, w := watched(t, []string{boot1, "[   21.000000] rcu: INFO: rcu_sched self-detected stall on CPU\n"}, watchOptions{Tolerant: true})
		if v != nil || len(w.events) != 1 {
			t.Errorf("verdict %+v, events %v", v, w.events)
		}
	})
}

func TestWatchKeepsTheLastLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, w := watched(t, []string{strings.Repeat("line\n", 500), "sda: sda1 sda2\nhalf"}, watchOptions{})
		l := w.lastLines()
		if len(l) != keepLines || l[keepLines-1] != "half" || l[keepLines-2] != "sda: sda1 sda2" {
			t.Errorf("%d lines, %q", len(l), l[max(0, len(l)-2):])
		}
	})
}

// badWriter refuses to record.
type badWriter struct{}

func (badWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestRecordFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes []string
		v, _, _ := watched(t, []string{boot1, "Kernel panic - not syncing: x\n"},
			watchOptions{Record: badWriter{}, Note: func(s string) { notes = append(notes, s) }})
		if v == nil || len(notes) != 1 {
			t.Errorf("verdict %v, notes %q", v, notes)
		}
	})
}

func FuzzConsole(f *testing.F) {
	for _, c := range verdicts {
		f.Add([]byte(c.text), uint8(3))
	}
	for _, tr := range transcripts(f) {
		f.Add([]byte(tr.text), uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		run := func(n int) (string, []ConsoleEvent) {
			w := newWatch(nil, watchOptions{Wanted: "6.*"})
			w.arm(time.Hour)
			defer func() { w.idle.Stop(); w.quiet.Stop() }()
			for p := b; len(p) > 0; p = p[min(n, len(p)):] {
				w.feed(p[:min(n, len(p))])
			}
			if len(w.scan.buf) > maxLine || len(w.last) > keepLines || len(w.hist.tail) > maxTail || len(w.hist.loaders) > maxLoaders {
				t.Fatal("grows")
			}
			if part := w.scan.partial(); part != "" {
				w.peek(part)
			}
			w.conclude(false)
			s := w.scan.partial()
			for _, l := range w.last {
				s += "\n" + l
			}
			if w.verdict != nil {
				s += "\n" + w.verdict.Stage + w.verdict.Line
			}
			return s, w.events
		}
		a, ea := run(len(b) + 1)
		c, ec := run(int(step) + 1)
		if a != c || len(ea) != len(ec) {
			t.Fatalf("split reads differ:\n%q\n%q", a, c)
		}
	})
}
