package qemu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kernsweep/targets"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		m    *Machine
		want string
	}{
		{&Machine{}, ""},
		{&Machine{Icount: "shift=1", Accel: "auto", CPUs: 1, Ports: []int{5001}}, ""},
		{&Machine{Accel: "xen"}, `accel is "xen"`},
		{&Machine{Icount: "shift=1", Accel: "kvm"}, "cannot go with"},
		{&Machine{Icount: "shift=1", CPUs: 2}, "one thread"},
		{&Machine{Memory: -1}, "negative"},
		{&Machine{Ports: []int{70000}}, "70000"},
		{&Machine{Ports: []int{22}}, "always forwarded"},
	} {
		err := c.m.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.m, err, c.want)
		}
	}
}

func TestArgv(t *testing.T) {
	image := filepath.Join(t.TempDir(), "vmlinuz")
	if err := os.WriteFile(image, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	k := targets.Kernel{Cmdline: "b", Nonce: "c", Image: targets.Image{Kernel: image, Cmdline: "a"}}
	for _, c := range []struct {
		m         *Machine
		arch      string
		want, not []string
	}{
		{&Machine{Icount: "shift=1"}, "amd64", []string{"qemu-system-x86_64 ", "-machine q35", "-cpu max,-cx16", "-m 256", "-smp 1", "-icount shift=1 -rtc clock=vm",
			"virtio-net-pci,netdev=net0,romfile=", "-append console=ttyS0 panic=-1 nokaslr a b c"}, []string{"-initrd"}},
		{&Machine{CPUs: 64, Memory: 1024, Args: []string{"-extra", "1"}}, "amd64", []string{"-smp 64", "-m 1024", "-extra 1"}, []string{"-icount"}},
		{&Machine{NIC: "e1000", CPU: "24Kf"}, "mipsle", []string{"qemu-system-mipsel ", "-machine malta", "-cpu 24Kf", "-device e1000,netdev=net0", "-m 128"}, []string{"romfile"}},
		{&Machine{}, "mips", []string{"qemu-system-mips ", "pcnet"}, nil},
	} {
		e, err := c.m.emulated(c.arch)
		if err != nil {
			t.Fatal(err)
		}
		argv, err := c.m.argv(e, "tcg", k, false)
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Join(argv, " ")
		for _, w := range c.want {
			if !strings.Contains(line, w) {
				t.Errorf("%s: no %q in %s", c.arch, w, line)
			}
		}
		for _, w := range c.not {
			if strings.Contains(line, w) {
				t.Errorf("%s: %q in %s", c.arch, w, line)
			}
		}
	}
}

// TestLongCommandLine: a MIPS kernel would cut it and lose the boot's proof.
func TestLongCommandLine(t *testing.T) {
	k := targets.Kernel{Cmdline: strings.Repeat("x", 200), Image: targets.Image{Kernel: os.Args[0]}}
	for arch, want := range map[string]string{"amd64": "", "mips": "cut it after 210"} {
		e, err := new(Machine).emulated(arch)
		if err != nil {
			t.Fatal(err)
		}
		_, err = new(Machine).argv(e, "tcg", k, false)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", arch, err, want)
		}
	}
}

// TestCannotStart: each error names what to do.
func TestCannotStart(t *testing.T) {
	image := filepath.Join(t.TempDir(), "vmlinuz")
	if err := os.WriteFile(image, []byte("no kernel"), 0o644); err != nil {
		t.Fatal(err)
	}
	some := targets.Image{Kernel: image}
	for _, c := range []struct {
		m     *Machine
		arch  string
		image targets.Image
		want  string
	}{
		{&Machine{Accel: "tcg"}, "", some, "needs its arch"},
		{&Machine{Accel: "tcg"}, "arm64", some, "amd64, mipsle and mips"},
		{&Machine{Accel: "tcg"}, "amd64", targets.Image{}, "no image"},
		{&Machine{Accel: "tcg"}, "amd64", targets.Image{Kernel: "/nonexistent"}, "scripts/lab"},
		{&Machine{Accel: "tcg"}, "amd64", targets.Image{Kernel: image, Initrd: image + ",/nonexistent"}, "scripts/lab"},
		{&Machine{Accel: "tcg", Program: "qemu-system-none"}, "amd64", some, "apt-get install qemu-system-x86"},
		{&Machine{Accel: "tcg", Args: []string{"-no-such-option"}}, "amd64", some, "-no-such-option: invalid option"},
		{&Machine{Accel: "tcg", Type: "nosuchmachine"}, "mipsle", some, "unsupported machine type"},
	} {
		err := c.m.Boot(t.Context(), &targets.Target{Name: "lonely", Arch: c.arch}, targets.Kernel{Name: "k", Image: c.image})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "lonely") {
			t.Errorf("error %v lacks %q", err, c.want)
		}
		var boot *targets.BootError
		if errors.As(err, &boot) {
			t.Errorf("%v blames the kernel", err)
		}
		if c.m.proc != nil {
			t.Errorf("%v left a process", err)
		}
	}
	if err := new(Machine).Set(t.Context(), true); err == nil {
		t.Error("a machine without a kernel was switched on")
	}
}

// TestRefusedImage: an image that QEMU can make nothing of is the kernel's
// failure to boot; the machine and its other kernels are as good as before.
func TestRefusedImage(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(bad, []byte(strings.Repeat("no kernel", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "mipsle"} {
		m := &Machine{Accel: "tcg"}
		err := m.Boot(t.Context(), &targets.Target{Name: "box", Arch: arch}, targets.Kernel{Name: "k", Image: targets.Image{Kernel: bad, Initrd: bad}})
		var boot *targets.BootError
		if !errors.As(err, &boot) || boot.Kernel != "k" || boot.Stage != "loading" || !strings.Contains(err.Error(), "kernel") {
			t.Errorf("%s: %v", arch, err)
		}
		if m.proc != nil {
			t.Errorf("%s: it left a process", arch)
		}
	}
}

func TestBrokenKVM(t *testing.T) {
	program := filepath.Join(t.TempDir(), "qemu")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho broken\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	m := &Machine{Program: program}
	e, err := m.emulated("amd64")
	if err != nil {
		t.Fatal(err)
	}
	e.kvm = true
	if got := m.accelerator(t.Context(), e, targets.Kernel{}); got != "tcg" {
		t.Errorf("accelerator %q", got)
	}
	if n := m.Notes(); len(n) != 1 || !strings.HasPrefix(n[0], "KVM is not used: ") {
		t.Errorf("notes %q", n)
	}
}

func TestInitrdPadding(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, text := range []string{"12345", "1234", "1"} {
		paths = append(paths, filepath.Join(dir, strconv.Itoa(i)))
		if err := os.WriteFile(paths[i], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := openInitrd(targets.Image{Initrd: strings.Join(paths, ", ")})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := io.ReadAll(io.NewSectionReader(f, 0, 100))
	if err != nil || string(got) != "12345\x00\x00\x0012341\x00\x00\x00" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSlowReader: a stream nobody reads is bounded, and says what it lost.
func TestSlowReader(t *testing.T) {
	var m Machine
	s, err := m.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.hub.deliver(make([]byte, backlog))
	m.hub.deliver([]byte("lost"))
	if _, err := io.ReadFull(s, make([]byte, backlog)); err != nil {
		t.Fatal(err)
	}
	m.hub.end()
	rest, err := io.ReadAll(s)
	if err != nil || !strings.Contains(string(rest), "[4 console bytes lost") {
		t.Errorf("%q, %v", rest, err)
	}
	if _, err := s.Write([]byte("x")); err == nil {
		t.Error("typed into a machine that is off")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosedStream(t *testing.T) {
	var m Machine
	s, err := m.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := s.Read(make([]byte, 1))
		done <- err
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// controller is what the test binary does instead of testing when the variable
// controllerEnv names a kernel: it boots it, prints QEMU's pid and waits.
func controller(image string) {
	m := &Machine{Accel: "tcg", Program: os.Getenv(programEnv)}
	if err := m.Boot(context.Background(), &targets.Target{Name: "orphan", Arch: "amd64"}, targets.Kernel{Image: targets.Image{Kernel: image}}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(m.proc.pid)
	select {}
}

// TestKilledController: QEMU does not outlive a controller killed by SIGKILL.
func TestKilledController(t *testing.T) {
	t.Parallel()
	image := lab(t) + "/img/vmlinuz-amd64-6.1"
	gate <- struct{}{}
	defer func() { <-gate }()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), controllerEnv+"="+image)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, bad := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || bad != nil {
		t.Fatalf("the controller said %q, %v", line, err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	gone := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(10 * time.Second); ; {
		n, err := unix.Poll(gone, int(time.Until(end).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != 1 {
			t.Fatalf("QEMU (pid %d) outlives its controller: %v", pid, err)
		}
		return
	}
}
