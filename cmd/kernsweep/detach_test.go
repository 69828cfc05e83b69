package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kernsweep/orchestrator/results"
	"kernsweep/targets/localproc"
)

// longer makes the night last until it is stopped.
func (n *night) longer(t *testing.T) {
	n.change(t, `["payload", "long", "0.15"]`, `["sleep", "1000"]`)
	n.change(t, `duration = "1s"`, `duration = "60s"`)
}

// A detached run needs neither its terminal nor its parent, and stop ends it.
func TestDetachAndStop(t *testing.T) {
	program := build(t)
	n, p := newNight(t, program, 1, 1, 1), newPlace(t)
	n.longer(t)
	parent := n.start(t, p, "run", "night", "--detach")
	if status := parent.wait(t); status != 0 {
		t.Fatalf("status %d:\n%s", status, parent.err.String())
	}
	run := p.run(t)
	for _, want := range []string{"safe to leave", "watch " + run.Name(), "stop " + run.Name()} {
		if !strings.Contains(parent.err.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, parent.err.String())
		}
	}
	h, ok := run.HeldBy()
	if !ok {
		t.Fatal("nobody executes the run")
	}
	t.Cleanup(func() {
		if now, ok := run.HeldBy(); ok && now.PID == h.PID {
			_ = syscall.Kill(h.PID, syscall.SIGKILL)
		}
	})
	independent(t, h.PID, run.Dir())
	if err := syscall.Kill(h.PID, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await(t, "the workload does not begin", func() bool {
		return strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000")
	})
	held := n.start(t, place{filepath.Join(t.TempDir(), "runs"), p.leases}, "run", "night", "--detach")
	if status := held.wait(t); status != exitInfra || !strings.Contains(held.err.String(), "sim1") {
		t.Errorf("a held target: status %d:\n%s", status, held.err.String())
	}
	stop := n.start(t, p, "stop", "latest")
	if status := stop.wait(t); status != 0 || !strings.Contains(stop.out.String(), "interrupted") {
		t.Errorf("stop: status %d:\n%s%s", status, stop.out.String(), stop.err.String())
	}
	n.nothingHeld(t, p)
	again := n.start(t, p, "stop", "latest")
	if status := again.wait(t); status != 0 || !strings.Contains(again.err.String(), "is not running") {
		t.Errorf("stop of a stopped run: status %d:\n%s", status, again.err.String())
	}
	b, err := os.ReadFile(filepath.Join(run.Dir(), outputFile))
	if err != nil || !bytes.Contains(b, []byte("Ctrl-C (SIGINT)")) {
		t.Errorf("output.log (%v):\n%s", err, b)
	}
}

// independent checks that a process has a session of its own and nothing of the
// test's open.
func independent(t *testing.T, pid int, dir string) {
	t.Helper()
	sid, err := unix.Getsid(pid)
	if mine, _ := unix.Getsid(0); err != nil || sid == mine {
		t.Errorf("its session is %d, ours %d (%v)", sid, mine, err)
	}
	await(t, "it does not let go of what its parent had open", func() bool { // pipes to its own children come and go
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		return !slices.ContainsFunc(files, func(f string) bool {
			to, _ := os.Readlink(f) // one that is closed meanwhile is none
			return strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "/dev/pts") || strings.HasPrefix(to, "/dev/tty")
		})
	})
	for _, fd := range []string{"1", "2"} {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd)); to != filepath.Join(dir, outputFile) {
			t.Errorf("its output goes to %s (%v)", to, err)
		}
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s within a minute", what)
		}
	}
}

// Problems before the run is on its way are the parent's.
func TestDetachSaysWhatIsWrong(t *testing.T) {
	n, p := newNight(t, build(t), 1, 1, 1), newPlace(t)
	for args, want := range map[string]int{"run nosuch --detach": exitUsage, "rerun latest --detach": exitUsage} {
		c := n.start(t, p, strings.Fields(args)...)
		if status := c.wait(t); status != want || c.err.Len() == 0 {
			t.Errorf("%s: status %d, want %d:\n%s", args, status, want, c.err.String())
		}
	}
}

// stop --now, and stop of a run whose controller was killed, of another machine's
// and of another user's.
func TestStopOfOthers(t *testing.T) {
	program := build(t)
	n, p := newNight(t, program, 1, 1, 1), newPlace(t)
	n.longer(t)
	c := n.start(t, p, "run", "night")
	c.until(t, "the workload does not begin", func() bool {
		return strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000")
	})
	run := p.run(t)
	if os.Getuid() == 0 {
		other := exec.Command(program, "--runs", p.runs, "stop", run.Dir())
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		for dir := p.runs; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Dir(program), 0o755); err != nil {
			t.Fatal(err)
		}
		for dir := filepath.Dir(program); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		out, err := other.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitInfra || !bytes.Contains(out, []byte("another user's")) {
			t.Errorf("another user's stop: %v\n%s", err, out)
		}
	}
	begin := time.Now()
	stop := n.start(t, p, "stop", "latest", "--now")
	if status := stop.wait(t); status != 0 {
		t.Errorf("stop --now: status %d:\n%s", status, stop.err.String())
	}
	if status := c.wait(t); status != exitInterrupted {
		t.Errorf("the run ends with status %d", status)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("stop --now took %s", took)
	}
	if said := c.err.String(); !strings.Contains(said, "quitting at once") || !strings.Contains(said, "resume "+run.Name()) {
		t.Errorf("the run says:\n%s", said)
	}
	h := results.Holder{Owner: "ada", Host: "elsewhere", PID: 1, Start: "1", BootID: "00000000-0000-4000-8000-000000000000"}
	if _, err := findController(run, h); err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Errorf("another machine's: %v", err)
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	h.BootID = strings.TrimSpace(string(boot)) // 1 is another process now
	if p, err := findController(run, h); p != nil || err != nil {
		t.Errorf("a number that is another's now: %v, %v", p, err)
	}
}

// A reader that goes away, and one that takes nothing, are no reason to stop.
func TestRunOutlivesItsReaders(t *testing.T) {
	program := build(t)
	t.Run("closed pipes", func(t *testing.T) {
		n, p := newNight(t, program, 1, 1, 1), newPlace(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		c := exec.Command(program, "-f", n.file, "--runs", p.runs, "run", "night")
		c.Env = append(os.Environ(), "KERNSWEEP_LEASES="+p.leases)
		c.Stdout, c.Stderr = w, w
		if err := c.Run(); err != nil {
			t.Errorf("it ends with %v", err)
		}
		w.Close()
		s, err := p.run(t).State()
		if err != nil {
			t.Fatal(err)
		}
		if s.Model.Sessions[0].Interrupted || s.Model.Count()[results.OK] != 4 {
			t.Errorf("%+v, %v", s.Model.Sessions, s.Model.Count())
		}
		if notes := fmt.Sprint(s.Model.Notes); strings.Count(notes, "progress is shown no more") != 1 {
			t.Errorf("the journal says of it: %s", notes)
		}
	})
	t.Run("a terminal that is stopped", func(t *testing.T) {
		n, p := newNight(t, program, 1, 1, 1), newPlace(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 4096)); err != nil { // full from the beginning
			t.Fatal(err)
		}
		c := exec.Command(program, "-f", n.file, "--runs", p.runs, "run", "night")
		c.Env = append(os.Environ(), "KERNSWEEP_LEASES="+p.leases)
		c.Stderr = w
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		await(t, "the run does not end", func() bool {
			b, _ := filepath.Glob(filepath.Join(p.runs, "*", "report.txt"))
			return len(b) == 1
		})
		if _, err := io.Copy(io.Discard, r); err != nil { // now it is read
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestLogindFate(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		kills bool
	}{
		"nothing":              {nil, false},
		"built in no":          {map[string]string{"etc/systemd/logind.conf": "[Login]\n#KillUserProcesses=no\n"}, false},
		"built in yes":         {map[string]string{"etc/systemd/logind.conf": "[Login]\n#KillUserProcesses=yes\n"}, true},
		"a file of the admin":  {map[string]string{"etc/systemd/logind.conf": "#KillUserProcesses=no\n", "etc/systemd/logind.conf.d/x.conf": "KillUserProcesses=yes\n"}, true},
		"the later name":       {map[string]string{"etc/systemd/logind.conf.d/a.conf": "KillUserProcesses=yes\n", "usr/lib/systemd/logind.conf.d/b.conf": "KillUserProcesses=no\n"}, false},
		"etc before usr":       {map[string]string{"etc/systemd/logind.conf.d/a.conf": "KillUserProcesses=yes\n", "usr/lib/systemd/logind.conf.d/a.conf": "KillUserProcesses=no\n"}, true},
		"something else there": {map[string]string{"etc/systemd/logind.conf": "HandleLidSwitch=suspend\n"}, false},
	} {
		root := t.TempDir()
		for f, text := range c.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, f), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := (logind{root: root, env: os.LookupEnv}).configured(); got != c.kills {
			t.Errorf("%s: kills is %v", name, got)
		}
	}
}

// The inhibitor is a child that ends when we do.
func TestSleepless(t *testing.T) {
	root, bin := t.TempDir(), t.TempDir()
	for f, text := range map[string]string{"sys/power/state": "freeze mem\n", "run/systemd/seats/seat0": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, f), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(text string) {
		if err := os.WriteFile(filepath.Join(bin, "systemd-inhibit"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	said := make(chan string, 4)
	s := sleepless{root: root, warn: func(line string) { said <- line }}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))

	asked := filepath.Join(bin, "asked")
	tool(fmt.Sprintf("echo $$ \"$@\" >%s.new; mv %s.new %s; shift 4; exec \"$@\"\n", asked, asked, asked))
	release := s.hold("run x")
	await(t, "no inhibitor", func() bool { _, err := os.Stat(asked); return err == nil })
	line, _ := os.ReadFile(asked)
	for _, want := range []string{"--what=sleep:idle:handle-lid-switch", "--mode=block", "--why=run x"} {
		if !strings.Contains(string(line), want) {
			t.Errorf("it is asked %s", line)
		}
	}
	var pid int
	if _, err := fmt.Sscan(string(line), &pid); err != nil {
		t.Fatal(err)
	}
	release()
	if localproc.Start(pid) != "" {
		t.Error("the inhibitor outlives its release")
	}
	tool("echo 'Failed to inhibit: Access denied' >&2; exit 1\n")
	release = s.hold("run x")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	select {
	case line := <-said:
		if !strings.Contains(line, "Access denied") {
			t.Errorf("it says %q", line)
		}
	case <-ctx.Done():
		t.Error("nothing is said of an inhibitor that fails")
	}
	release()
	t.Setenv("PATH", t.TempDir())
	s.hold("run x")()
	if line := <-said; !strings.Contains(line, "not installed") {
		t.Errorf("it says %q", line)
	}
	if err := os.WriteFile(filepath.Join(root, "sys/power/state"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.hold("run x")() // a machine that cannot suspend: nothing to say
	if len(said) > 0 {
		t.Errorf("it says %q", <-said)
	}
}
