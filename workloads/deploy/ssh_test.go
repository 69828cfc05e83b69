package deploy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/localconn"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
	"kernsweep/workloads"
)

// servers are the real ones that agents meet.
func servers() map[string]func(t *testing.T) *targetstest.Daemon {
	return map[string]func(t *testing.T) *targetstest.Daemon{
		"OpenSSH":  func(t *testing.T) *targetstest.Daemon { return targetstest.SSHD(t) },
		"Dropbear": func(t *testing.T) *targetstest.Daemon { return targetstest.Dropbear(t) },
	}
}

// links dials a server and closes what it dialled when the test is over, after
// everything that was registered later.
type links struct {
	d     *targetstest.Daemon
	conns []targets.Conn
}

func newLinks(t *testing.T, d *targetstest.Daemon) *links {
	l := &links{d: d}
	t.Cleanup(func() {
		for _, c := range l.conns {
			c.Close()
		}
	})
	return l
}

func (l *links) dial(ctx context.Context) (targets.Conn, error) {
	conn, err := sshconn.New(zap.NewNop()).Dial(ctx, l.d.SSH, targets.DialOptions{})
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// TestKilledServer kills the server's processes in the middle of a task: the
// spool comes over a second link, whole.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	for name, start := range servers() {
		for _, kind := range []string{"go", "shell"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				d := start(t)
				l := newLinks(t, d)
				conn, err := l.dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				a := install(t, conn, Options{Want: kind, Redial: l.dial})
				plain := t.TempDir()
				task := workloads.Task{Argv: []string{"exec", "--", "sh", "-c", "echo 'it works'"}, Dir: plain, Prefix: "x-", Deadline: time.Minute}
				if err := a.Run(t.Context(), task); err != nil {
					t.Fatal(err)
				}
				if out := read(t, plain, "x-stdout"); out != "it works\n" {
					t.Errorf("stdout %q", out)
				}
				dir := t.TempDir()
				mark := filepath.Join(dir, "mark")
				go func() {
					tick := time.NewTicker(20 * time.Millisecond)
					defer tick.Stop()
					for range tick.C {
						if _, err := os.Stat(mark); err == nil || t.Context().Err() != nil {
							break
						}
					}
					for _, pid := range d.Children() {
						syscall.Kill(pid, syscall.SIGKILL)
					}
				}()
				task = workloads.Task{Argv: []string{"exec", "--", "sh", "-c", ": >" + mark + "; sleep 2; echo survived"}, Dir: dir, Deadline: time.Minute}
				if err := a.Run(t.Context(), task); err != nil {
					t.Fatal(err)
				}
				if s := spool(t, dir); s.End["status"] != "ok" || string(s.Stdout) != "survived\n" {
					t.Errorf("end %v, stdout %q", s.End, s.Stdout)
				}
			})
		}
	}
}

func TestReadyIsCalledOverARealLink(t *testing.T) {
	for name, start := range servers() {
		t.Run(name, func(t *testing.T) {
			conn, err := newLinks(t, start(t)).dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			a := install(t, conn, Options{})
			port := targetstest.FreePort(t)
			ready := make(chan struct{})
			dir := t.TempDir()
			err = a.Run(t.Context(), workloads.Task{Argv: []string{"exec", "--", "iperf", "-s", "-p", itoa(port)}, Listen: port,
				Ready: func() { close(ready) }, StopAfter: 300 * time.Millisecond, Dir: dir, Deadline: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-ready:
			default:
				t.Error("Ready was not called")
			}
			if s := spool(t, dir); s.End["status"] != "stopped" || !strings.Contains(string(s.Stdout), "listening") {
				t.Errorf("end %v, stdout %q", s.End, s.Stdout)
			}
		})
	}
}

// TestInterruptionOverARealLink: a Conn ends what it ran by KILL when its
// context ends, so the agent has to be asked first. Else the task would outlive
// it, without an end record, and hold its port for ever.
//
// It runs beside no other test: ten seconds are given to a shell that forks for
// each step, and a machine full of tests takes them.
func TestInterruptionOverARealLink(t *testing.T) {
	dials := map[string]func(t *testing.T) targets.Conn{
		"controller": func(t *testing.T) targets.Conn {
			conn := localconn.New()
			t.Cleanup(func() { conn.Close() })
			return conn
		},
	}
	for name, start := range servers() {
		dials[name] = func(t *testing.T) targets.Conn {
			conn, err := newLinks(t, start(t)).dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
	}
	for name, dial := range dials {
		for _, kind := range []string{"go", "shell"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				a := install(t, dial(t), Options{Want: kind})
				dir := t.TempDir()
				pids := filepath.Join(dir, "pids")
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					defer cancel()
					tick := time.NewTicker(20 * time.Millisecond)
					defer tick.Stop()
					for range tick.C {
						if b, err := os.ReadFile(pids); t.Context().Err() != nil || err == nil && strings.Count(string(b), "\n") == 2 {
							return
						}
					}
				}()
				script := "trap '' TERM; sleep 300 & echo $! >" + pids + ".new; echo $$ >>" + pids + ".new; mv " + pids + ".new " + pids + "; wait; sleep 300"
				err := a.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "sh", "-c", script}, Dir: dir, Sample: time.Second, Deadline: time.Minute})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				if s := spool(t, dir); s.End["status"] != "failed" || len(s.Tasks) != 1 || s.Tasks[0].Signal != 9 {
					t.Errorf("end %v, tasks %+v", s.End, s.Tasks)
				}
				for _, pid := range strings.Fields(read(t, dir, "pids")) {
					// A zombie is dead; it waits for the machine's init.
					if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
						t.Errorf("process %s of the task still runs: %s", pid, stat)
					}
				}
			})
		}
	}
}
