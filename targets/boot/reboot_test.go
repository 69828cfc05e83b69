package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
)

// box is a machine that can really be rebooted over SSH: an sshd that is process
// 1 of its own namespace, with a boot_id and an uptime of its own. When process
// 1 ends, everything in it dies, and after a pause it starts again.
type box struct {
	ssh   targets.SSH
	ended chan struct{}
}

// newBox starts a box whose boots have the given boot_ids, the last for ever.
func newBox(t *testing.T, ids ...string) *box {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	file("authorized_keys", targetstest.KeyFile(t, filepath.Join(dir, "client"))+"\n")
	hostKey := targetstest.KeyFile(t, filepath.Join(dir, "host"))
	port := targetstest.FreePort(t)
	config := file("sshd_config", fmt.Sprintf(`ListenAddress 127.0.0.1:%d
HostKey %s/host
AuthorizedKeysFile %s/authorized_keys
StrictModes no
UsePAM no
PidFile none
`, port, dir, dir))
	uptime := file("uptime", "1.50 1.00\n")
	namespace := []string{"-mpf", "--mount-proc", "--kill-child"}
	if os.Geteuid() != 0 {
		namespace = append(namespace, "-r")
	} else if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	// The home is an empty one: a shell's start files that are killed with the
	// box could leave a lock behind.
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	script := `mount --bind "$1" /proc/sys/kernel/random/boot_id && mount --bind "$2" /proc/uptime &&
mount --bind "$5" "$6" && exec "$3" -D -e -f "$4"`
	unshare, sshd := targetstest.Tool(t, "unshare"), targetstest.Tool(t, "sshd", "/usr/sbin/sshd")
	b := &box{ended: make(chan struct{}), ssh: targets.SSH{Host: "127.0.0.1", Port: port, Key: filepath.Join(dir, "client"),
		ConfigFile: "none", HostKeys: []string{hostKey}}}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); <-b.ended })
	go func() {
		defer close(b.ended)
		runtime.LockOSThread() // the box dies with the thread that started it
		for i := 0; ctx.Err() == nil; i++ {
			id := filepath.Join(dir, "boot_id")
			_ = os.Remove(id) // the old one is still mounted in a dying namespace
			if err := os.WriteFile(id, []byte(ids[min(i, len(ids)-1)]+"\n"), 0o600); err != nil {
				t.Error(err)
				return
			}
			c := exec.CommandContext(ctx, unshare, append(namespace, "/bin/sh", "-c", script, "sh", id, uptime, sshd, config, home, u.HomeDir)...)
			c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			out, err := c.CombinedOutput()
			if ctx.Err() == nil && err != nil {
				t.Logf("boot %d ended: %v\n%s", i, err, out)
			}
			select {
			case <-ctx.Done():
			case <-time.After(1500 * time.Millisecond):
			}
		}
	}()
	b.await(t)
	return b
}

// await waits until the box answers.
func (b *box) await(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := b.dial(ctx, b.ssh, targets.DialOptions{})
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

func (b *box) dial(ctx context.Context, s targets.SSH, o targets.DialOptions) (targets.Conn, error) {
	return sshconn.New(zap.NewNop()).Dial(ctx, s, o)
}

const (
	id1 = "11111111-1111-4111-8111-111111111111"
	id2 = "22222222-2222-4222-8222-222222222222"
)

// A machine that takes its time to shut down is rebooted over real SSH: nothing
// counts before the new boot_id is read.
func TestSSHRebootWhole(t *testing.T) {
	b := newBox(t, id1, id2)
	tg := &targets.Target{Name: "box", SSH: b.ssh, Dial: b.dial, Boot: &SSHReboot{Command: "sleep 3; kill 1"}}
	var phases []targets.Phase
	var notes []string
	begin := time.Now()
	conn, rec, err := targets.Boot(t.Context(), tg, targets.Kernel{Name: "k"}, targets.BootLog{
		Phase: func(p targets.Phase) { phases = append(phases, p) },
		Note:  func(s string) { notes = append(notes, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if rec.BootID != id2 || !rec.Proven || time.Since(begin) < 4*time.Second {
		t.Errorf("after %s: %+v", time.Since(begin), rec)
	}
	want := []targets.Phase{targets.PhaseAsked, targets.PhaseDown, targets.PhaseReachable, targets.PhaseVerified}
	if !slices.Equal(phases, want) || len(notes) == 0 {
		t.Errorf("phases %v, notes %q", phases, notes)
	}
}

// The machine goes down and comes back with the boot_id it had: no reboot.
func TestSSHRebootSameID(t *testing.T) {
	b := newBox(t, id1)
	tg := &targets.Target{Name: "box", SSH: b.ssh, Dial: b.dial, Boot: &SSHReboot{Command: "kill 1"},
		Timeout: targets.Timeouts{Boot: 20 * time.Second, Down: 3 * time.Second}}
	_, _, err := targets.Boot(t.Context(), tg, targets.Kernel{Name: "k"}, targets.BootLog{})
	var nd *targets.NotDownError
	if !errors.As(err, &nd) || nd.BootID != id1 {
		t.Fatal(err)
	}
}
