package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets/localproc"
	"kernsweep/targets/targetstest"
)

// programEnv names another QEMU program for the controller that a test kills.
const programEnv = "KERNSWEEP_TEST_PROGRAM"

// shortDir is a private folder whose sockets' paths are short enough.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// stray is a process that a test may end, and that shows argv on its command line.
func stray(t *testing.T, argv ...string) int {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended does not matter
		close(done)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may be gone
		<-done
	})
	return cmd.Process.Pid
}

// sleeper is a process with the record's socket on its command line that does
// not listen there.
func sleeper(t *testing.T, l *left) int {
	t.Helper()
	return stray(t, "/bin/sh", "-c", "while :; do sleep 300; done", "sh", l.rec.path())
}

// monitored is a QEMU without a machine that listens at the trace's socket.
func monitored(t *testing.T, l *left) int {
	t.Helper()
	qemu := targetstest.Tool(t, "qemu-system-x86_64")
	pid := stray(t, append([]string{qemu, "-machine", "none", "-nodefaults", "-display", "none"}, l.args()...)...)
	ctx, stop := context.WithTimeout(t.Context(), startWait)
	defer stop()
	tick := time.NewTicker(gonePoll)
	defer tick.Stop()
	for {
		if _, err := l.rec.listens(ctx); err == nil {
			return pid
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("QEMU does not listen")
		}
	}
}

// TestLeft: what is ended, what is left alone, what becomes of the record.
func TestLeft(t *testing.T) {
	t.Parallel()
	type outcome struct {
		ended, kept bool   // the process; the record
		note        string // "" = none
	}
	for name, c := range map[string]struct {
		process func(*testing.T, *left) int // nil: a sleeper
		change  func(*testing.T, *left)     // of the record of a killed controller's process
		want    outcome
	}{
		"quits":        {process: monitored, want: outcome{ended: true, note: "ended by quit over QMP"}},
		"no number":    {process: monitored, change: func(_ *testing.T, l *left) { l.rec.PID, l.rec.Start = 0, "" }, want: outcome{ended: true, note: "quit"}},
		"no socket":    {want: outcome{ended: true, note: "SIGKILL (QMP: dial"}},
		"never began":  {change: func(_ *testing.T, l *left) { l.rec.PID, l.rec.Start = 0, "" }},
		"number taken": {change: func(_ *testing.T, l *left) { l.rec.Start = "1" }},
		"another's command line": {process: func(t *testing.T, _ *left) int {
			return stray(t, "/bin/sh", "-c", "while :; do sleep 300; done")
		}},
		"controller lives": {change: func(_ *testing.T, l *left) {
			l.rec.Controller.PID, l.rec.Controller.Start = os.Getpid(), localproc.Start(os.Getpid())
		},
			want: outcome{kept: true}},
		"controller's number taken": {change: func(_ *testing.T, l *left) { l.rec.Controller.PID, l.rec.Controller.Start = os.Getpid(), "1" },
			want: outcome{ended: true, note: "left by a killed controller"}},
		"before a reboot":   {change: func(_ *testing.T, l *left) { l.rec.Boot = "other" }},
		"another container": {change: func(_ *testing.T, l *left) { l.rec.PIDs = "pid:[1]" }, want: outcome{kept: true}},
		"number of init":    {change: func(_ *testing.T, l *left) { l.rec.PID, l.rec.Start = 1, localproc.Start(1) }, want: outcome{note: "names no process"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := guests{shortDir(t) + "/g,1"}.leave("qemu", "box")
			if err != nil {
				t.Fatal(err)
			}
			if c.process == nil {
				c.process = sleeper
			}
			pid := c.process(t, l)
			l.rec.PID, l.rec.Start = pid, localproc.Start(pid)
			l.rec.Controller.PID, l.rec.Controller.Start = 1<<22+1, "1" // no process has this number
			if c.change != nil {
				c.change(t, l)
			}
			if err := l.write(); err != nil {
				t.Fatal(err)
			}
			start := localproc.Start(pid)
			var notes []string
			if err := l.g.endLeft(t.Context(), func(s string) { notes = append(notes, s) }); err != nil {
				t.Fatal(err)
			}
			if ended := localproc.Start(pid) != start; ended != c.want.ended {
				t.Errorf("ended %v", ended)
			}
			if _, err := os.Stat(l.record()); (err == nil) != c.want.kept {
				t.Errorf("the record: %v", err)
			}
			if said := strings.Join(notes, "; "); (c.want.note == "") != (said == "") || !strings.Contains(said, c.want.note) {
				t.Errorf("notes %q", said)
			}
		})
	}
}

// TestLeftSocketOfAnother: nothing is said to a program that took the socket's name.
func TestLeftSocketOfAnother(t *testing.T) {
	t.Parallel()
	l, err := guests{shortDir(t) + "/g"}.leave("qemu", "box")
	if err != nil {
		t.Fatal(err)
	}
	pid := sleeper(t, l)
	s, err := net.Listen("unix", l.rec.QMP)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	said := make(chan string, 1)
	go func() {
		c, err := s.Accept()
		if err != nil {
			said <- err.Error()
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c) // until it is closed
		said <- string(b)
	}()
	l.rec.PID, l.rec.Start, l.rec.Controller.Start = pid, localproc.Start(pid), "1"
	if err := l.write(); err != nil {
		t.Fatal(err)
	}
	var note string
	if err := l.g.endLeft(t.Context(), func(s string) { note = s }); err != nil {
		t.Fatal(err)
	}
	if got := <-said; got != "" || !strings.Contains(note, "SIGKILL") || !strings.Contains(note, fmt.Sprintf("process %d listens", os.Getpid())) {
		t.Errorf("told it %q; note %q", got, note)
	}
}

// TestLeftStopped: a process that cannot answer is killed in time.
func TestLeftStopped(t *testing.T) {
	t.Parallel()
	l, err := guests{shortDir(t) + "/g"}.leave("qemu", "box")
	if err != nil {
		t.Fatal(err)
	}
	pid := monitored(t, l)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l.rec.PID, l.rec.Start, l.rec.Controller.Start = pid, localproc.Start(pid), "1"
	if err := l.write(); err != nil {
		t.Fatal(err)
	}
	begin, note := time.Now(), ""
	if err := l.g.endLeft(t.Context(), func(s string) { note = s }); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); localproc.Start(pid) != "" || !strings.Contains(note, "SIGKILL") || took > 2*quitWait+killWait {
		t.Errorf("after %s: %q", took, note)
	}
}

// TestLeftHostileFolder: what lies in the folder is not trusted.
func TestLeftHostileFolder(t *testing.T) {
	t.Parallel()
	g := guests{shortDir(t) + "/g"}
	if err := g.endLeft(t.Context(), nil); err != nil {
		t.Errorf("no folder: %v", err)
	}
	if err := g.open(); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(g.dir, name+".json") }
	other := filepath.Join(shortDir(t), "other")
	for path, text := range map[string]string{file("garbage"): "{]", file("empty"): "", file("array"): "[1]", other: "{}",
		file("long"): strings.Repeat(" ", mostRecord) + "{}"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.Symlink(other, file("link")), syscall.Mkfifo(file("fifo"), 0o600), os.Mkdir(file("folder"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	notes := 0
	if err := g.endLeft(t.Context(), func(string) { notes++ }); err != nil || notes != 7 {
		t.Errorf("%d notes, %v", notes, err)
	}
	if rest, err := os.ReadDir(g.dir); err != nil || len(rest) != 0 {
		t.Errorf("still there: %v, %v", rest, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(g.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := g.endLeft(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "user alone") {
		t.Errorf("a folder that others write: %v", err)
	}
	if _, err := g.leave("qemu", "box"); err == nil {
		t.Error("a trace was left where others write")
	}
	if _, err := (guests{"/tmp/" + strings.Repeat("x", 100)}).leave("qemu", "box"); err == nil {
		t.Error("a path that is too long was taken")
	}
	os.Remove("/tmp/" + strings.Repeat("x", 100))
}

// TestLeftByKilledController: a QEMU process that survives its controller is
// ended by the next one, and its trace goes.
func TestLeftByKilledController(t *testing.T) {
	t.Parallel()
	targetstest.Tool(t, "setpriv")
	dir := shortDir(t)
	program := filepath.Join(dir, "qemu")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec setpriv --pdeathsig clear qemu-system-x86_64 \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), controllerEnv+"="+lab(t)+"/img/vmlinuz-amd64-6.1", programEnv+"="+program, "TMPDIR="+dir)
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
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }() // in case the test fails
	g := guests{filepath.Join(dir, fmt.Sprintf("kernsweep-guests-%d", os.Getuid()))}
	var notes []string
	note := func(s string) { notes = append(notes, s) }
	if err := g.endLeft(t.Context(), note); err != nil || len(notes) > 0 || localproc.Start(pid) == "" {
		t.Fatalf("with a living controller: %v, %q", err, notes)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if localproc.Start(pid) == "" {
		t.Fatal("QEMU went with its controller")
	}
	if err := g.endLeft(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	if localproc.Start(pid) != "" || len(notes) != 1 || !strings.Contains(notes[0], "target orphan") || !strings.Contains(notes[0], "quit over QMP") {
		t.Errorf("notes %q", notes)
	}
	if rest, err := os.ReadDir(g.dir); err != nil || len(rest) != 0 {
		t.Errorf("still there: %v, %v", rest, err)
	}
}

// TestNoTraceStays: a machine that is switched off, and one that does not start,
// leave neither record nor socket.
func TestNoTraceStays(t *testing.T) {
	t.Parallel()
	dir := shortDir(t) + "/g"
	m, tg, k := guest(t, "amd64", "6.1", "")
	m.traces = dir
	gate <- struct{}{}
	defer func() { <-gate }()
	if err := m.Boot(t.Context(), tg, k); err != nil {
		t.Fatal(err)
	}
	records, _ := filepath.Glob(dir + "/*.json") // the pattern is right
	if len(records) != 1 {
		t.Fatalf("records %v", records)
	}
	b, err := os.ReadFile(records[0])
	var r leftRecord
	if err := errors.Join(err, json.Unmarshal(b, &r)); err != nil || r.PID != m.proc.pid || !r.is() || r.Target != "guest" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := m.Set(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	k.Image.Kernel = records[0]
	m.Args = []string{"-nonsense"}
	if err := m.Boot(t.Context(), tg, k); err == nil {
		t.Error("nonsense was started")
	}
	if rest, err := os.ReadDir(dir); len(rest) != 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v, %v", rest, err)
	}
}
