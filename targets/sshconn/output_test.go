package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// servers are the real ones, each with an ordinary log-in.
func servers(t *testing.T) map[string]*targetstest.Daemon {
	return map[string]*targetstest.Daemon{"sshd": targetstest.SSHD(t), "dropbear": targetstest.Dropbear(t)}
}

// A server left in the background with its descriptors open: the command ends
// when its shell does, with a warning, and the server lives on.
func TestHelpersThatHoldTheOutput(t *testing.T) {
	t.Parallel()
	iperf3 := targetstest.Tool(t, "iperf3")
	for name, d := range servers(t) {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var notes []string
			c := dial(t, d.SSH, targets.DialOptions{Note: func(n string) { notes = append(notes, n) }})
			defer c.Close()
			var out bytes.Buffer
			port := fmt.Sprint(targetstest.FreePort(t))
			begin := time.Now()
			exit, err := c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", iperf3 + " -s -p " + port + " & echo $!; exit 4"}, Stdout: &out})
			if took := time.Since(begin); err != nil || exit.Code != 4 || took > drainTime+5*time.Second {
				t.Errorf("after %s: %v, %v", took, exit, err)
			}
			pid, _, _ := strings.Cut(out.String(), "\n")
			// Dropbear ends the output by itself when the shell ends.
			if name == "sshd" && (len(notes) != 1 || !strings.Contains(notes[0], "something it left behind holds its output open")) {
				t.Errorf("notes %q", notes)
			}
			if got := targetstest.Output(t, ctx, c, "sh", "-c", `kill -0 "$1" && kill -9 "$1" && echo lived`, "sh", pid); got != "lived\n" {
				t.Errorf("the server is gone: %q", got)
			}
		})
	}
}

// zeros counts what is written to it and keeps nothing.
type zeros struct{ n atomic.Int64 }

func (z *zeros) Write(p []byte) (int, error) {
	z.n.Add(int64(len(p)))
	return len(p), nil
}

// 10 MiB on each output at once, one line of 5 MiB, and output without end: all
// of it passes, and none of it is kept in memory.
func TestMuchOutputTakesNoMemory(t *testing.T) {
	const size = 10 << 20
	for name, d := range servers(t) {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			c := dial(t, d.SSH, targets.DialOptions{})
			defer c.Close()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var out, errs zeros
			exit, err := c.Run(ctx, targets.Cmd{Stdout: &out, Stderr: &errs, Argv: []string{"sh", "-c",
				fmt.Sprintf("head -c %d /dev/zero & head -c %d /dev/zero >&2; wait", size, size)}})
			if err != nil || !exit.OK() || out.n.Load() != size || errs.n.Load() != size {
				t.Errorf("%v, %v: %d and %d bytes", exit, err, out.n.Load(), errs.n.Load())
			}
			full := errors.New("truncated at 20971520 bytes")
			_, err = c.Run(ctx, targets.Cmd{Argv: []string{"cat", "/dev/zero"}, Stdout: &capped{left: 2 * size, full: full}})
			if !errors.Is(err, full) {
				t.Errorf("endless output: %v", err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 8<<20 {
				t.Errorf("memory grew by %d bytes", grown)
			}
			if got := targetstest.Output(t, ctx, c, "echo", "on"); got != "on\n" {
				t.Errorf("afterwards: %q", got)
			}
		})
	}
}

type capped struct {
	left int64
	full error
}

func (c *capped) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, c.full
	}
	return len(p), nil
}

// A command that exits, one that is killed, one whose server process is killed
// while the link lives or with the link, and a cut connection: four outcomes, and
// only the first can be a pass.
func TestFourEndingsOfRealServers(t *testing.T) {
	for name, d := range servers(t) {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			c := dial(t, d.SSH, targets.DialOptions{})
			defer c.Close()
			for script, want := range map[string]targets.Exit{
				"exit 3": {Code: 3}, "exit 137": {Code: 137}, "kill -9 $$": {Signal: "KILL"}, "kill -SEGV $$": {Signal: "SEGV"},
			} {
				got, err := c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", script}})
				if err != nil || got != want {
					t.Errorf("%s: %+v, %v", script, got, err)
				}
			}
			exit, err := c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "kill -9 $PPID; sleep 5"}})
			var link *targets.LinkError
			if exit.OK() && err == nil || err != nil && !errors.As(err, &link) {
				t.Errorf("server process killed: %+v, %v", exit, err)
			}
		})
	}
}

// A program that runs is replaced in one step; one that is being written to
// cannot be run, and that is said.
func TestRunningProgramsAreReplaced(t *testing.T) {
	t.Parallel()
	for name, d := range servers(t) {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			c := dial(t, d.SSH, targets.DialOptions{})
			defer c.Close()
			sleep, err := os.ReadFile(targetstest.Tool(t, "busybox"))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "busybox")
			if err := c.Put(ctx, path, 0o755, bytes.NewReader(sleep)); err != nil {
				t.Fatal(err)
			}
			running := exec.Command(path, "sleep", "60")
			if err := running.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = running.Process.Kill()
				_ = running.Wait()
			}()
			if err := c.Put(ctx, path, 0o755, bytes.NewReader(sleep)); err != nil {
				t.Errorf("over a running program: %v", err)
			}
			open, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
			var errs bytes.Buffer
			exit, err := c.Run(ctx, targets.Cmd{Argv: []string{path, "true"}, Stderr: &errs})
			if err != nil || exit.Code != 126 && exit.Code != 2 || !strings.Contains(errs.String(), "usy") {
				t.Errorf("%v, %v, %q", exit, err, errs.String())
			}
		})
	}
}

// A tmpfs that is full, a mount that is read-only and one without execution, at
// Dropbear, which has no sftp server.
func TestUnfitFoldersAtDropbear(t *testing.T) {
	t.Parallel()
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for mount, c := range map[string]struct {
		mode os.FileMode
		say  string
	}{
		"mount -t tmpfs -o size=32k none DIR":                    {0o600, "no room is left there"},
		"mount --bind DIR DIR; mount -o remount,bind,ro DIR":     {0o600, "the file system is read-only"},
		"mount --bind DIR DIR; mount -o remount,bind,noexec DIR": {0o700, "mounted noexec"},
		"mount -t tmpfs -o size=1m,nr_inodes=1 none DIR":         {0o600, "no room is left there"},
		"chmod 755 DIR; cd DIR; mkdir file":                      {0o600, "it is a directory"},
		"rmdir DIR":                                              {0o600, "the folder it should be in, does not exist"},
	} {
		dir := t.TempDir()
		script := strings.ReplaceAll(mount, "DIR", dir)
		d := targetstest.Dropbear(t, "-c", "unshare "+flags+` sh -c '(`+script+`) 2>/dev/null; exec sh -c "$SSH_ORIGINAL_COMMAND"'`)
		conn := dial(t, d.SSH, targets.DialOptions{})
		err := conn.Put(ctx, filepath.Join(dir, "file"), c.mode, io.LimitReader(endless{}, 200_000))
		conn.Close()
		var link *targets.LinkError
		if err == nil || errors.As(err, &link) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v; want %q", mount, err, c.say)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// slow takes 32 KiB in 50 ms.
type slow struct{ n int }

func (s *slow) Write(p []byte) (int, error) {
	<-time.After(time.Duration(len(p)) * 50 * time.Millisecond / (32 << 10))
	s.n += len(p)
	return len(p), nil
}

// What a command wrote arrives whole, also when its end is known long before.
func TestOutputAfterTheExitStatus(t *testing.T) {
	t.Parallel()
	const size = 2_500_000
	for name, d := range servers(t) {
		var notes []string
		c := dial(t, d.SSH, targets.DialOptions{Note: func(n string) { notes = append(notes, n) }})
		var out slow
		begin := time.Now()
		exit, err := c.Run(t.Context(), targets.Cmd{Argv: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}, Stdout: &out})
		c.Close()
		if err != nil || !exit.OK() || out.n != size || len(notes) > 0 || time.Since(begin) < drainTime {
			t.Errorf("%s: %v, %v, %d of %d bytes in %s, notes %q", name, exit, err, out.n, size, time.Since(begin), notes)
		}
	}
}

// A child in the background that goes on printing does not hold the command for
// ever either.
func TestChattyChildInTheBackground(t *testing.T) {
	t.Parallel()
	d := targetstest.SSHD(t)
	c := dial(t, d.SSH, targets.DialOptions{})
	defer c.Close()
	begin := time.Now()
	var out zeros
	exit, err := c.Run(t.Context(), targets.Cmd{Argv: []string{"sh", "-c", "cat /dev/zero & exit 5"}, Stdout: &out})
	if took := time.Since(begin); err != nil || exit.Code != 5 || took > time.Minute {
		t.Errorf("after %s: %v, %v", took, exit, err)
	}
}
