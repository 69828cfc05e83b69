package targets

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// shellConn runs commands here, with a shell of the test's choice in place of sh.
type shellConn struct{ sh []string }

func (c shellConn) Run(ctx context.Context, cmd Cmd) (Exit, error) {
	argv := cmd.Argv
	if argv[0] == "sh" {
		argv = append(append([]string{}, c.sh...), argv[1:]...)
	}
	p := exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.Stdin, p.Stdout, p.Stderr = cmd.Stdin, cmd.Stdout, cmd.Stderr
	p.Env = append(p.Environ(), "SSH_CONNECTION=192.0.2.7 4000 192.0.2.9 22")
	err := p.Run()
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		return Exit{Code: ee.ExitCode()}, nil
	}
	return Exit{}, err
}

func (shellConn) Put(context.Context, string, fs.FileMode, io.Reader) error { return nil }
func (shellConn) Get(context.Context, string, io.Writer) error              { return nil }
func (shellConn) Close() error                                              { return nil }

var shells = map[string][]string{"dash": {"dash"}, "bash": {"bash", "--posix"}, "ash": {"busybox", "ash"}}

func TestProbeInEveryShell(t *testing.T) {
	want, err := exec.Command("uname", "-r").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, sh := range shells {
		t.Run(name, func(t *testing.T) {
			ev, err := Probe(t.Context(), shellConn{sh})
			if err != nil {
				t.Fatal(err)
			}
			var r BootRecord
			ev.Fill(&r)
			if r.Release != strings.TrimSpace(string(want)) || r.Arch != runtime.GOARCH || !wellFormed(r.BootID) {
				t.Errorf("release %q arch %q boot_id %q", r.Release, r.Arch, r.BootID)
			}
			if r.CPUs < 1 || r.MemoryKB < 1 || r.UptimeS <= 0 || r.ClientAddr != "192.0.2.7" || r.Scheduler.Name == "" {
				t.Errorf("%+v", r)
			}
			for _, tool := range []string{"iperf", "iperf3", "gunzip", "sftp-server"} {
				if r.Tools[tool] == "" {
					t.Errorf("%s is installed but not found: %v", tool, r.Tools)
				}
			}
			const period = "/proc/sys/kernel/sched_deadline_period_max_us"
			if b, err := os.ReadFile(period); err != nil || ev.Sched[period] != strings.TrimSpace(string(b)) {
				t.Errorf("%s = %q, want %q (%v)", period, ev.Sched[period], b, err)
			}
			if err := Recheck(t.Context(), shellConn{sh}, r); err != nil {
				t.Errorf("recheck: %v", err)
			}
		})
	}
}

func TestProbeScriptIsClean(t *testing.T) {
	p := exec.Command("shellcheck", "-s", "sh", "-e", "SC2034,SC2154", "probe.sh")
	if out, err := p.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestProbeCutOff(t *testing.T) {
	if _, err := readProbe([]byte("\n@@m uname\nLinux\n"), "m"); err == nil {
		t.Error("a torn probe was accepted")
	}
	ev, err := readProbe([]byte("motd\n\n@@m uname\nLinux\n\n@@x fake\n\n@@m dmesg\ndmesg: klogctl: Operation not permitted\n\n@@m end\n"), "m")
	if err != nil || string(ev.Files["uname"]) != "Linux\n\n@@x fake\n" {
		t.Errorf("%v %q", err, ev.Files["uname"])
	}
	if why := ev.Missing["dmesg"]; !strings.Contains(why, "not permitted") || ev.Files["dmesg"] != nil {
		t.Errorf("dmesg missing: %q", why)
	}
}
