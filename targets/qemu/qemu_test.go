package qemu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kernsweep/targets"
)

const controllerEnv = "KERNSWEEP_TEST_CONTROLLER"

func TestMain(m *testing.M) {
	if image := os.Getenv(controllerEnv); image != "" {
		controller(image)
	}
	goleak.VerifyTestMain(m)
}

const (
	quiet   = "loglevel=6 cryptomgr.notests"
	x86Args = "mitigations=off no_timer_check tsc=reliable"
)

// gate lets two guests run at once.
var gate = make(chan struct{}, 2)

// lab gives the folder of the lab's images; without them the test fails.
func lab(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../lab")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/img/recipe"); err != nil {
		t.Fatalf("the virtual lab's images are missing; make them with: scripts/lab (%v)", err)
	}
	return dir
}

// guest describes one target of the lab and the kernel to boot on it.
func guest(t *testing.T, arch, version, args string) (*Machine, *targets.Target, targets.Kernel) {
	t.Helper()
	dir := lab(t)
	name := map[string]string{"amd64": "amd64", "mipsle": "mipsel"}[arch]
	m := &Machine{Icount: map[string]string{"amd64": "shift=1", "mipsle": "shift=3"}[arch],
		Ports: []int{5001, 5201}, HostKey: dir + "/keys/host_ed25519.pub"}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	args = quiet + " " + args
	if arch == "amd64" {
		args += " " + x86Args
	}
	img := dir + "/img/"
	return m, &targets.Target{Name: "guest", Arch: arch}, targets.Kernel{Name: "k" + version, Cmdline: strings.TrimSpace(args), Nonce: "kernsweep.boot=cafe",
		Image: targets.Image{Kernel: img + "vmlinuz-" + name + "-" + version,
			Initrd: img + "base-" + name + ".cpio," + img + "tools-" + name + ".cpio," + img + "mods-" + name + "-" + version + ".cpio"}}
}

// transcript gathers a console and lets a test wait for text on it.
type transcript struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	more  chan struct{}
	ended chan struct{} // the stream ended by itself
}

// record opens m's console, as targets.Boot does before it boots.
func record(t *testing.T, m *Machine) *transcript {
	t.Helper()
	s, err := m.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	tr := &transcript{more: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		_, err := io.Copy(tr, s)
		if err == nil {
			close(tr.ended)
		}
	}()
	return tr
}

func (r *transcript) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf.Write(b)
	select {
	case r.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (r *transcript) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

func (r *transcript) await(t *testing.T, text string, limit time.Duration) {
	t.Helper()
	end := time.After(limit)
	for !strings.Contains(r.String(), text) {
		select {
		case <-r.more:
		case <-r.ended:
			if !strings.Contains(r.String(), text) {
				t.Fatalf("the console ended without %q:\n%s", text, r)
			}
		case <-end:
			t.Fatalf("no %q on the console within %v:\n%s", text, limit, r)
		}
	}
}

// login runs a command in the guest with the system's ssh.
func login(t *testing.T, tg *targets.Target, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	known := filepath.Join(t.TempDir(), "known_hosts")
	line := fmt.Sprintf("[%s]:%d %s\n", tg.SSH.Host, tg.SSH.Port, tg.SSH.HostKeys[0])
	if err := os.WriteFile(known, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "ssh", "-F", "none", "-i", lab(t)+"/keys/id_ed25519", "-o", "BatchMode=yes",
		"-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile="+known, "-p", fmt.Sprint(tg.SSH.Port), "root@"+tg.SSH.Host, command)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ssh %q: %v: %s", command, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

func boot(t *testing.T, m *Machine, tg *targets.Target, k targets.Kernel) {
	t.Helper()
	gate <- struct{}{}
	t.Cleanup(func() { <-gate })
	// Cleanups run last first: the guest must go before the gate opens.
	t.Cleanup(func() {
		if err := m.Set(context.Background(), false); err != nil {
			t.Error(err)
		}
	})
	if err := m.Boot(t.Context(), tg, k); err != nil {
		t.Fatal(err)
	}
}

// TestGuests boots the lab's kernels for real and looks at them from inside.
func TestGuests(t *testing.T) {
	for _, c := range []struct{ arch, version, release string }{
		{"amd64", "6.1", "6.1."},
		{"amd64", "6.12", "6.12."},
		{"mipsle", "6.1", "6.1."},
	} {
		t.Run(c.arch+"-"+c.version, func(t *testing.T) {
			t.Parallel()
			m, tg, k := guest(t, c.arch, c.version, "")
			console := record(t, m)
			boot(t, m, tg, k)
			console.await(t, "kernsweep-lab: ready", 100*time.Second)
			if c.arch == "amd64" && !strings.Contains(console.String(), "Linux version "+c.release) {
				t.Errorf("the console lacks the kernel's first line:\n%s", console)
			}
			got := login(t, tg, "uname -r; grep -c kernsweep.boot=cafe /proc/cmdline; ls /sys/kernel/debug | grep -c sched; iperf -v 2>&1 | cut -d' ' -f1-3")
			lines := strings.Split(got, "\n")
			if len(lines) != 4 || !strings.HasPrefix(lines[0], c.release) || lines[1] != "1" || lines[2] != "1" || lines[3] != "iperf version 2.1.8" {
				t.Errorf("the guest says %q", lines)
			}
			n := m.Network()
			if n.Address != "127.0.0.1" || n.Clock != "guest" || n.Ports[5001] == 0 || n.Ports[22] != tg.SSH.Port {
				t.Errorf("network: %+v", n)
			}
		})
	}
}

// TestHostBound boots without icount: KVM where it works, else TCG with a note.
func TestHostBound(t *testing.T) {
	t.Parallel()
	m, tg, k := guest(t, "amd64", "6.1", "lab.fault=reboot")
	m.Icount = ""
	console := record(t, m)
	boot(t, m, tg, k)
	console.await(t, "Linux version 6.1.", 60*time.Second)
	notes := strings.Join(m.Notes(), "\n")
	if strings.Contains(notes, "KVM is not used") == strings.Contains(notes, "accelerator: kvm") || !m.Traits().HostBound || m.Network().Clock != "" {
		t.Errorf("notes %q, traits %+v, network %+v", notes, m.Traits(), m.Network())
	}
	select {
	case <-console.ended:
	case <-time.After(60 * time.Second):
		t.Error("the console goes on after the guest rebooted")
	}
}

// TestPanicEndsConsole: the evidence is on the console, and its end is prompt.
func TestPanicEndsConsole(t *testing.T) {
	t.Parallel()
	m, tg, k := guest(t, "amd64", "6.1", "lab.fault=panic")
	console := record(t, m)
	boot(t, m, tg, k)
	console.await(t, "Kernel panic - not syncing: sysrq triggered crash", 60*time.Second)
	select {
	case <-console.ended:
	case <-time.After(10 * time.Second):
		t.Error("the console goes on after a panic")
	}
}

// TestPowerCycle: a guest that hangs is cut off and another kernel takes its
// place on the same console, and no process is left.
func TestPowerCycle(t *testing.T) {
	t.Parallel()
	m, tg, k := guest(t, "amd64", "6.1", "lab.fault=spin")
	console := record(t, m)
	boot(t, m, tg, k)
	console.await(t, "Linux version 6.1.", 60*time.Second)
	first := m.proc.pid
	_, _, next := guest(t, "amd64", "6.12", "")
	if err := m.Boot(t.Context(), tg, next); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the first guest's process is still there: %v", err)
	}
	console.await(t, "Linux version 6.12.", 60*time.Second)
	second := m.proc.pid
	if err := m.Set(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(second, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("power off left the process: %v", err)
	}
	if err := m.Set(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(m.Notes(), "\n"), "accelerator: tcg") {
		t.Errorf("notes: %q", m.Notes())
	}
	select {
	case <-console.ended:
		t.Error("the console ended although we cut the power ourselves")
	default:
	}
}
