package workloads_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/localconn"
	"kernsweep/workloads"
	"kernsweep/workloads/deploy"
)

// privateConn keeps this test's agents away from those of other processes on
// this machine: what would lie in /dev/shm lies in a folder of the test.
type privateConn struct {
	targets.Conn
	dir string
}

func (c privateConn) Run(ctx context.Context, cmd targets.Cmd) (targets.Exit, error) {
	if r, ok := cmd.Stdin.(*strings.Reader); ok { // the script that looks for places
		script, err := io.ReadAll(r)
		if err != nil {
			return targets.Exit{}, err
		}
		cmd.Stdin = strings.NewReader(strings.ReplaceAll(string(script), "/dev/shm", c.dir))
	}
	return c.Conn.Run(ctx, cmd)
}

// both is an Env whose target and peer are this machine, under real agents.
func both(t *testing.T, want string) *workloads.Env {
	t.Helper()
	conn := privateConn{localconn.New(), t.TempDir()}
	side := func(want string) workloads.Side {
		a, err := deploy.Install(t.Context(), conn, deploy.Options{Arch: runtime.GOARCH, Want: want, Note: func(s string) { t.Log(s) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := a.Remove(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return workloads.Side{Conn: conn, Agent: a, Network: targets.Network{Address: "127.0.0.1", Peer: "127.0.0.1"}}
	}
	return &workloads.Env{Target: side(want), Peer: side("go"), Scale: 1, CPUs: 2, Deadline: 2 * time.Minute, Sample: time.Second}
}

// copyOf lets trials run side by side.
func copyOf(env *workloads.Env) *workloads.Env {
	e := *env
	return &e
}

// freePort is a port that nobody holds.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// once runs one trial and parses it; nothing may run on afterwards.
func once(t *testing.T, env *workloads.Env, w workloads.Workload) (workloads.Parsed, error) {
	t.Helper()
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	env.Dir = t.TempDir()
	if p, ok := w.(workloads.Preparer); ok {
		if err := p.Prepare(ctx, env); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Run(ctx, env); err != nil {
		t.Fatal(err)
	}
	got, err := w.Parse(os.DirFS(env.Dir))
	if f, ok := w.(*workloads.Iperf); ok {
		if pids := serversOn(f.Port); len(pids) > 0 {
			t.Errorf("a server outlives its trial: pids %v", pids)
		}
	}
	return got, err
}

// steady is once, again while a busy machine makes transfers last too long:
// such a trial is rightly invalid, and says nothing about the code.
func steady(t *testing.T, env *workloads.Env, w *workloads.Iperf) (workloads.Parsed, error) {
	t.Helper()
	for try := 1; ; try++ {
		got, err := once(t, env, w)
		var late *workloads.InvalidError
		if try == 6 || !errors.As(err, &late) || !strings.Contains(late.Reason, "the transfer lasted") {
			return got, err
		}
		t.Logf("try %d: %v", try, err)
	}
}

// serversOn finds the iperf servers that were told to listen on port.
func serversOn(port int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, err := os.ReadFile(f)
		args := strings.Split(string(b), "\x00")
		if err != nil || !strings.HasPrefix(filepath.Base(args[0]), "iperf") ||
			!bytes.Contains(b, []byte("\x00-s\x00-p\x00"+strconv.Itoa(port)+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func named(t *testing.T, p workloads.Parsed, name string) workloads.Value {
	t.Helper()
	for _, v := range p.Values {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no value %s in %+v", name, p)
	return workloads.Value{}
}

func failedWith(t *testing.T, err error, want string) {
	t.Helper()
	var f *workloads.FailedError
	if !errors.As(err, &f) || !strings.Contains(f.Reason, want) {
		t.Errorf("error %v, want a FailedError with %q", err, want)
	}
}
