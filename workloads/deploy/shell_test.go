package deploy

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

// shells are those the shell agent must run under.
func shells() map[string][]string {
	return map[string][]string{"dash": {"dash"}, "ash": {"busybox", "ash"}, "bash": {"bash", "--posix"}}
}

// script runs the shell agent under a shell and reads its spool.
func script(t *testing.T, shell []string, args ...string) (s *wire.Spool, stdout string) {
	t.Helper()
	file := t.TempDir() + "/agent.sh"
	if err := os.WriteFile(file, []byte(shellAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	argv := append(append([]string{}, shell...), file, "run", "-spool", t.TempDir()+"/spool")
	argv = append(argv, args...)
	var out, errs strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.WaitDelay = time.Second
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %v: %s", argv, err, errs.String())
	}
	s, err := wire.Read(strings.NewReader(strings.TrimPrefix(out.String(), "ready\n")))
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out.String())
	}
	return s, out.String()
}

func ended(t *testing.T, s *wire.Spool, status, reason string) {
	t.Helper()
	if s.End["status"] != status || !strings.Contains(s.End["reason"], reason) {
		t.Errorf("end %v, want status %s, reason %q; notes %q, stderr %q", s.End, status, reason, s.Notes, s.Stderr)
	}
}

func TestShellAgent(t *testing.T) {
	t.Parallel()
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := script(t, shell, "-sample", "1s", "-env", "X=a  b", "exec", "--", "sh", "-c",
				`printf '%s|' "$X" "$@"; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 1.2`, "sh", "it's", "", "a\nb", "*")
			ended(t, s, "ok", "")
			if got := string(s.Stdout); got != "a  b|it's||a\nb|*|" {
				t.Errorf("stdout %q", got)
			}
			if len(s.Snapshots) < 3 || s.Snapshots[0].Stat == nil || s.Snapshots[0].VMStat == nil || s.Snapshots[0].Mem == nil || s.Snapshots[0].Load == nil {
				t.Errorf("snapshots %v", s.Snapshots)
			}
			task := s.Tasks[0]
			if task.UserUS < 10000 || task.UserUS > 60e6 || task.EndNS-task.StartNS < 1e9 || strings.Join(task.Missing, " ") != "nvcsw nivcsw maxrss_kb" {
				t.Errorf("task %+v", task)
			}
			for _, key := range []string{"pid", "start", "boot_id", "wall", "argv", "agent"} {
				if s.Begin[key] == "" {
					t.Errorf("begin record has no %s: %v", key, s.Begin)
				}
			}
			s, _ = script(t, shell, "exec", "--", "sh", "-c", "exit 7")
			ended(t, s, "failed", "exec: exit=7")
			s, _ = script(t, shell, "exec", "--", "sh", "-c", "kill -9 $$")
			ended(t, s, "failed", "exec: signal=9")
			s, _ = script(t, shell, "exec", "--", "no-such-tool")
			ended(t, s, "failed", "not found in PATH")
			s, _ = script(t, shell, "crunch", "-work", "1")
			ended(t, s, "failed", "no task crunch")
		})
	}
}

func TestShellAgentCaps(t *testing.T) {
	t.Parallel()
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for size, cut := range map[int]bool{1000: false, 1001: true, 1500: true, 900000: true} {
				s, _ := script(t, shell, "-cap", "1000", "exec", "--", "head", "-c", itoa(size), "/dev/zero")
				ended(t, s, "ok", "")
				noted := strings.Contains(strings.Join(s.Notes, "\n"), "stdout truncated at 1000 bytes")
				if len(s.Stdout) != 1000 || noted != cut {
					t.Errorf("%d bytes: kept %d, notes %q", size, len(s.Stdout), s.Notes)
				}
			}
		})
	}
}

func TestShellAgentDeadlines(t *testing.T) {
	t.Parallel()
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			s, _ := script(t, shell, "-deadline", "1s", "exec", "--", "sh", "-c", "trap '' TERM; echo begun; sleep 66 & sleep 67; sleep 68")
			ended(t, s, "timeout", "still running after 1s")
			if d := time.Since(start); d > 15*time.Second || !s.Tasks[0].TimedOut || string(s.Stdout) != "begun\n" {
				t.Errorf("after %v: %+v, stdout %q", d, s.Tasks[0], s.Stdout)
			}
			s, _ = script(t, shell, "-stop-after", "500ms", "exec", "--", "sleep", "60")
			ended(t, s, "stopped", "")
			if task := s.Tasks[0]; !task.Stopped || task.Signal != 15 {
				t.Errorf("task %+v", task)
			}
			start = time.Now()
			s, _ = script(t, shell, "exec", "--", "sh", "-c", "sleep 69 & echo started")
			ended(t, s, "ok", "")
			if d := time.Since(start); d > 15*time.Second || !strings.Contains(strings.Join(s.Notes, "\n"), "left running") {
				t.Errorf("after %v: notes %q", d, s.Notes)
			}
		})
	}
}

func TestShellAgentServers(t *testing.T) {
	t.Parallel()
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			port := itoa(l.Addr().(*net.TCPAddr).Port)
			s, _ := script(t, shell, "-listen", port, "exec", "--", "iperf", "-s", "-p", port)
			ended(t, s, "failed", "port "+port+" is already taken by pid "+itoa(os.Getpid())+" (")
			l.Close()
			s, out := script(t, shell, "-listen", port, "-stop-after", "1s", "exec", "--", "iperf", "-s", "-p", port)
			ended(t, s, "stopped", "")
			if !strings.HasPrefix(out, "ready\n") {
				t.Errorf("no ready line: %.40q", out)
			}
			udp := itoa(targetstest.FreePort(t))
			s, out = script(t, shell, "-listen", udp, "-udp", "-stop-after", "1s", "exec", "--", "iperf", "-s", "-u", "-p", udp)
			ended(t, s, "stopped", "")
			if !strings.HasPrefix(out, "ready\n") {
				t.Errorf("no ready line: %.40q", out)
			}
			s, _ = script(t, shell, "-listen", port, "exec", "--", "true")
			ended(t, s, "failed", "ended before port "+port+" was open")
		})
	}
}

func TestTheScriptsAreClean(t *testing.T) {
	for _, f := range []string{"agent.sh", "place.sh", "leftover.sh"} {
		out, err := exec.Command(targetstest.Tool(t, "shellcheck"), "-s", "sh", f).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", f, err, out)
		}
	}
}

func TestTheShellAgentRefusesWhatItCannotDo(t *testing.T) {
	a := install(t, &fakeConn{}, Options{Want: "shell"})
	err := a.Run(t.Context(), workloads.Task{Argv: []string{"crunch", "-work", "1"}, Dir: t.TempDir()})
	var no *workloads.UnavailableError
	if !errors.As(err, &no) || no.Reason != "crunch needs the Go agent, and this machine runs the shell agent" {
		t.Errorf("error %v", err)
	}
}

// A shell agent that is killed (by a system short of memory, or by hand) takes
// its task along: nobody else would ever end it.
func TestAKilledShellAgentTakesItsTaskAlong(t *testing.T) {
	t.Parallel()
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(dir+"/agent.sh", []byte(shellAgent), 0o600); err != nil {
				t.Fatal(err)
			}
			argv := append(append([]string{}, shell...), dir+"/agent.sh", "run", "-spool", dir+"/spool", "-sample", "1s",
				"exec", "--", "sh", "-c", "echo $$ >"+dir+"/new; mv "+dir+"/new "+dir+"/pid; exec sleep 300")
			c := exec.Command(argv[0], argv[1:]...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer c.Wait()
			defer c.Process.Kill()
			until := time.After(30 * time.Second)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			killed, pid := false, ""
			for {
				if b, err := os.ReadFile(dir + "/pid"); err == nil && !killed {
					killed, pid = true, strings.TrimSpace(string(b))
					if err := c.Process.Kill(); err != nil {
						t.Fatal(err)
					}
				}
				if killed {
					stat, err := os.ReadFile("/proc/" + pid + "/stat")
					if err != nil || strings.Contains(string(stat), ") Z ") {
						return
					}
				}
				select {
				case <-tick.C:
				case <-until:
					t.Fatalf("killed: %v; the task, pid %s, still runs", killed, pid)
				}
			}
		})
	}
}

// TestShellAgentMakesNoSpoolAnew: whoever removed the spool under it has left, and
// nobody would come for another.
func TestShellAgentMakesNoSpoolAnew(t *testing.T) {
	t.Parallel()
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, spool := dir+"/agent.sh", dir+"/kernsweep-x.spool"
			if err := os.WriteFile(file, []byte(shellAgent), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			argv := append(append([]string{}, shell...), file, "run", "-spool", spool, "-sample", "1s", "exec", "--",
				"sh", "-c", "rm "+spool+"; sleep 1.5; echo over; kill -TERM $$")
			if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output(); err == nil || strings.Contains(string(out), "end ") {
				t.Errorf("%v: %q", err, out)
			}
			if b, err := os.ReadFile(spool); err == nil {
				t.Errorf("the spool is back:\n%s", b)
			}
		})
	}
}
