package boot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCommandTellsTheProgramWhatToStart(t *testing.T) {
	out := filepath.Join(t.TempDir(), "env")
	c := &Command{Command: []string{"sh", "-c", `env | grep ^KERNSWEEP_ | sort >"$1"`, "sh", out}, Cmdline: true, Image: true}
	k := targets.Kernel{Name: "bfs", Cmdline: "quiet", Nonce: "kernsweep.nonce=0123456789abcdef",
		Image: targets.Image{Kernel: "/i/vmlinuz", Initrd: "/i/rd", DTB: "/i/dtb", Cmdline: "console=ttyS0"}}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if err := c.Boot(t.Context(), &targets.Target{Name: "wl500"}, k); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := `KERNSWEEP_CMDLINE=console=ttyS0 quiet kernsweep.nonce=0123456789abcdef
KERNSWEEP_DTB=/i/dtb
KERNSWEEP_IMAGE=/i/vmlinuz
KERNSWEEP_INITRD=/i/rd
KERNSWEEP_KERNEL=bfs
KERNSWEEP_NONCE=kernsweep.nonce=0123456789abcdef
KERNSWEEP_TARGET=wl500
`
	if string(got) != want {
		t.Errorf("environment:\n%s", got)
	}
	if tr := targets.TraitsOf(c); !tr.Cmdline || !tr.Image || tr.Running {
		t.Errorf("traits %+v", tr)
	}
}

func TestCommandFails(t *testing.T) {
	if (&Command{}).Check() == nil || (&Command{Command: []string{"x"}, Deadline: -1}).Check() == nil {
		t.Error("a senseless block passes its check")
	}
	c := &Command{Command: []string{"sh", "-c", "echo relay 3 does not answer; exit 1"}}
	err := c.Boot(t.Context(), &targets.Target{}, targets.Kernel{})
	if err == nil || !strings.Contains(err.Error(), "relay 3 does not answer") {
		t.Error(err)
	}
	c = &Command{Command: []string{"sleep", "100"}, Deadline: 50 * time.Millisecond}
	if err := c.Boot(t.Context(), &targets.Target{}, targets.Kernel{}); err == nil || !strings.Contains(err.Error(), "not done within 50ms") {
		t.Error(err)
	}
}

// onDaemon runs f against a real sshd and a real Dropbear.
func onDaemon(t *testing.T, f func(t *testing.T, tg *targets.Target)) {
	for name, start := range map[string]func(testing.TB, ...string) *targetstest.Daemon{"openssh": targetstest.SSHD, "dropbear": targetstest.Dropbear} {
		t.Run(name, func(t *testing.T) {
			d := start(t)
			f(t, &targets.Target{Name: name, SSH: d.SSH, Dial: sshconn.New(zap.NewNop()).Dial})
		})
	}
}

// The request comes back at once, and the reboot command runs after the link
// is gone.
func TestSSHRebootIsDetached(t *testing.T) {
	onDaemon(t, func(t *testing.T, tg *targets.Target) {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		conn, err := tg.Dial(ctx, tg.SSH, targets.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tg.Held = conn
		file := filepath.Join(t.TempDir(), "it's rebooted")
		s := &SSHReboot{Command: `echo "done $((1+1))" >"` + file + `"; sleep 20`}
		begin := time.Now()
		if err := s.Boot(ctx, tg, targets.Kernel{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("the request took %s: it waited for the reboot", took)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if b, err := os.ReadFile(file); err == nil && string(b) == "done 2\n" {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatal("the reboot command did not run")
			}
		}
	})
}

// This machine as a target: it is verified over real SSH, and a reboot that does
// nothing is found out.
func TestBootOverSSH(t *testing.T) {
	onDaemon(t, func(t *testing.T, tg *targets.Target) {
		tg.Boot = new(None)
		conn, rec, err := targets.Boot(t.Context(), tg, targets.Kernel{Name: "k"}, targets.BootLog{})
		if err != nil {
			t.Fatal(err)
		}
		if rec.Proven || rec.Unproven == "" || rec.Scheduler.Name == "" || rec.ClientAddr != "127.0.0.1" {
			t.Errorf("%+v", rec)
		}
		if err := targets.Recheck(t.Context(), conn, rec); err != nil {
			t.Error(err)
		}
		if l, err := targets.ReadKernelLog(t.Context(), conn); err != nil || l.Taint == "" {
			t.Errorf("%v %q", err, l.Taint)
		}
		var ue *targets.UnavailableError
		if _, err := targets.SetKnob(t.Context(), conn, "/proc/sys/kernel/no_such_knob", "1"); !errors.As(err, &ue) {
			t.Error(err)
		}
		if err := targets.Recheck(t.Context(), conn, targets.BootRecord{BootID: "b7e40d66-1f0a-4f63-8e2b-5c9d7a90c3f4"}); err == nil {
			t.Error("another boot_id is not noticed")
		}

		tg.Boot, tg.Timeout.Down = &SSHReboot{Command: "true"}, 2*time.Second
		_, _, err = targets.Boot(t.Context(), tg, targets.Kernel{Name: "k"}, targets.BootLog{})
		var nd *targets.NotDownError
		if !errors.As(err, &nd) || nd.BootID != rec.BootID || tg.Held != nil {
			t.Errorf("a reboot that did nothing: %v", err)
		}
	})
}

func TestSSHRebootNeedsALink(t *testing.T) {
	if err := new(SSHReboot).Boot(t.Context(), &targets.Target{}, targets.Kernel{}); err == nil {
		t.Error("it asked nobody and said nothing")
	}
}
