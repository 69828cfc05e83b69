package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"

	"kernsweep/targets/console"
)

// consoleWait bounds each wait of these tests.
const consoleWait = 60 * time.Second

// fakeLine is a machine at a raw console port: it says that it is up and echoes.
type fakeLine struct {
	addr string
	l    net.Listener
	mu   sync.Mutex
	got  []byte
	conn []net.Conn
}

func newFakeLine(t testing.TB) *fakeLine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeLine{addr: l.Addr().String(), l: l}
	var wg sync.WaitGroup
	t.Cleanup(func() { f.hangup(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conn = append(f.conn, c)
			f.mu.Unlock()
			wg.Go(func() { f.serve(c) })
		}
	})
	return f
}

func (f *fakeLine) serve(c net.Conn) {
	defer c.Close()
	io.WriteString(c, "\r\n\x1b[31mlogin: ")
	buf := make([]byte, 1000)
	for {
		n, err := c.Read(buf)
		f.mu.Lock()
		f.got = append(f.got, buf[:n]...)
		f.mu.Unlock()
		c.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

func (f *fakeLine) typed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.got)
}

func (f *fakeLine) hangup() {
	f.l.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conn {
		c.Close()
	}
}

// TestConsole runs the scripts in testdata/console.
func TestConsole(t *testing.T) {
	lines := map[string]*fakeLine{}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/console",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fakeconsole": func(ts *testscript.TestScript, _ bool, args []string) {
				lines[args[0]] = newFakeLine(t)
				ts.Setenv("CONSOLE_"+args[0], lines[args[0]].addr)
			},
			"hangup": func(_ *testscript.TestScript, _ bool, args []string) { lines[args[0]].hangup() },
			"typed": func(ts *testscript.TestScript, neg bool, args []string) {
				if got := lines[args[0]].typed(); regexp.MustCompile(args[1]).MatchString(got) == neg {
					ts.Fatalf("typed at %s: %q", args[0], got)
				}
			},
			"waitfile": func(ts *testscript.TestScript, _ bool, args []string) {
				if !eventually(func() bool { _, err := os.Stat(ts.MkAbs(args[0])); return err == nil }) {
					ts.Fatalf("%s does not appear", args[0])
				}
			},
			"attached": func(ts *testscript.TestScript, _ bool, args []string) {
				if !eventually(func() bool { // the listening socket, and a connection
					b, err := os.ReadFile("/proc/net/unix")
					return err == nil && strings.Count(string(b), "/"+args[0]+".sock") >= 2
				}) {
					ts.Fatalf("nobody watches %s", args[0])
				}
			},
			"fill": func(ts *testscript.TestScript, _ bool, args []string) {
				text := ts.ReadFile(args[0] + ".in")
				for name := range lines {
					text = strings.ReplaceAll(text, "$CONSOLE_"+name, lines[name].addr)
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
			},
		},
	})
}

func eventually(f func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(consoleWait); time.Now().Before(end); <-tick.C {
		if f() {
			return true
		}
	}
	return false
}

// terminal is kernsweep at a person's terminal.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File
	before *term.State

	mu   sync.Mutex
	said []byte
}

func atTerminal(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: exec.Command("kernsweep", args...), master: master, slave: slave}
	if x.before, err = term.GetState(int(slave.Fd())); err != nil {
		t.Fatal(err)
	}
	x.cmd.Dir = dir
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1000)
		for {
			n, err := master.Read(buf)
			x.mu.Lock()
			x.said = append(x.said, buf[:n]...)
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill() // it may have ended
		slave.Close()
		<-done
		master.Close()
	})
	return x
}

// await waits until the terminal has shown text.
func (x *terminal) await(text string) {
	x.t.Helper()
	if !eventually(func() bool { return strings.Contains(x.shown(), text) }) {
		x.t.Fatalf("%q is not shown:\n%q", text, x.shown())
	}
}

func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.said)
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// ends waits for the end and looks whether the terminal is as before.
func (x *terminal) ends(status int) {
	x.t.Helper()
	limit := time.AfterFunc(consoleWait, func() { _ = x.cmd.Process.Kill() })
	defer limit.Stop()
	_ = x.cmd.Wait() // the status is looked at
	if got := x.cmd.ProcessState.ExitCode(); got != status {
		x.t.Errorf("status %d, want %d:\n%q", got, status, x.shown())
	}
	after, err := term.GetState(int(x.slave.Fd()))
	if err != nil {
		x.t.Fatal(err)
	}
	if stateText(x.before) != stateText(after) {
		x.t.Errorf("the terminal was %s and is %s", stateText(x.before), stateText(after))
	}
}

func stateText(s *term.State) string { return fmt.Sprintf("%+v", *s) }

const labOf = `target "t" {
  ssh { host = "127.0.0.1" }
  console "tcp" { address = "ADDRESS" }
}
`

func consoleLab(t *testing.T, f *fakeLine) string {
	t.Helper()
	dir := t.TempDir()
	text := strings.ReplaceAll(labOf, "ADDRESS", f.addr)
	if err := os.WriteFile(filepath.Join(dir, "testbeds.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Keys arrive as they are pressed, Ctrl-C too; ~ commands work after Enter only;
// the terminal is left as it was.
func TestConsoleKeys(t *testing.T) {
	f := newFakeLine(t)
	x := atTerminal(t, consoleLab(t, f), "console", "t")
	x.await("you have the console of t")
	x.await("login: ")
	x.press("~?")
	x.await("send a break")
	x.press("~b")
	x.await("this console cannot send a break")
	x.press("ls ~.\x03\x1b[A\r~~.\r~xy\r")
	x.await("~xy\r")
	x.press("~.")
	x.ends(0)
	if got, want := f.typed(), "ls ~.\x03\x1b[A\r~.\r~xy\r"; got != want {
		t.Errorf("typed %q, want %q", got, want)
	}
}

// Signals, and a console that closes, leave the terminal clean.
func TestConsoleIsEnded(t *testing.T) {
	for sig, status := range map[syscall.Signal]int{syscall.SIGTERM: exitInterrupted, syscall.SIGHUP: exitInterrupted, syscall.SIGQUIT: exitInfra} {
		f := newFakeLine(t)
		x := atTerminal(t, consoleLab(t, f), "console", "t")
		x.await("login: ")
		if err := x.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		x.ends(status)
	}
	f := newFakeLine(t)
	x := atTerminal(t, consoleLab(t, f), "console", "t")
	x.await("login: ")
	f.hangup()
	x.ends(exitInfra)
	x.await("its console closed")
}

// A console that a run records is only watched, over the run's boots, and the
// end of the recording is said.
func TestConsoleOfARun(t *testing.T) {
	f := newFakeLine(t)
	dir := consoleLab(t, f)
	runs := filepath.Join(dir, "runs")
	share, err := console.Offer(runs, "t", "run x, boot 1")
	if err != nil {
		t.Fatal(err)
	}
	share.Write([]byte("earlier\r\n"))
	x := atTerminal(t, dir, "console", "t")
	x.await("watching what run x, boot 1 records; read-only")
	x.await("earlier")
	x.press("rm -rf /\r~b")
	x.await("read-only: no break is sent")
	share.Close()
	if share, err = console.Offer(runs, "t", "run x, boot 2"); err != nil {
		t.Fatal(err)
	}
	defer share.Close()
	x.await("now recorded by run x, boot 2")
	share.Write([]byte("second boot"))
	x.await("second boot")
	share.Close()
	x.await("the recording has ended")
	x.ends(0)
	if f.typed() != "" {
		t.Errorf("typed: %q", f.typed())
	}
	if share, err = console.Offer(runs, "t", "run y"); err != nil {
		t.Fatal(err)
	}
	defer share.Close()
	x = atTerminal(t, dir, "console", "t")
	x.await("run y")
	x.press("\x03")
	x.ends(0)
}

// panicking is a terminal's input that breaks the program.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("broken") }

// A panic comes out after the terminal was restored.
func TestConsolePanics(t *testing.T) {
	_, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	before, err := term.GetState(int(slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	defer b.Close()
	s := &screen{target: "t", in: panicking{}, out: io.Discard, errw: io.Discard, tty: int(slave.Fd())}
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("recovered %v", p)
		}
		after, err := term.GetState(int(slave.Fd()))
		if err != nil || stateText(before) != stateText(after) {
			t.Errorf("the terminal was %s and is %s (%v)", stateText(before), stateText(after), err)
		}
	}()
	err = s.drive(context.Background(), a, io.Discard, false)
	t.Errorf("no panic: %v", err)
}
