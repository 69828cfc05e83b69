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
	"syscall"
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

func TestIperfLive(t *testing.T) {
	env := both(t, "go")
	for _, c := range []struct {
		name string
		w    workloads.Iperf
	}{
		{"iperf2 to the target", workloads.Iperf{Tool: "iperf2", Server: "target"}},
		{"iperf2 from the target", workloads.Iperf{Tool: "iperf2", Server: "peer", Parallel: 2}},
		{"iperf2 reversed", workloads.Iperf{Tool: "iperf2", Server: "target", Direction: "from_target"}},
		{"iperf3 to the target", workloads.Iperf{Tool: "iperf3", Server: "target", Parallel: 2}},
		{"iperf3 from the target", workloads.Iperf{Tool: "iperf3", Server: "peer"}},
		{"iperf3 reversed", workloads.Iperf{Tool: "iperf3", Server: "target", Direction: "from_target"}},
		{"iperf2 UDP", workloads.Iperf{Tool: "iperf2", UDP: true}},
		{"iperf3 UDP", workloads.Iperf{Tool: "iperf3", UDP: true}},
		{"iperf3 UDP reversed", workloads.Iperf{Tool: "iperf3", UDP: true, Direction: "from_target"}},
		{"only the target's clock", workloads.Iperf{Tool: "iperf3", Server: "peer", Clock: "target"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env, w := copyOf(env), c.w
			w.Duration, w.Bandwidth, w.Port = 3*time.Second, "50M", freePort(t) // slower, a block of 128 KiB would make the end late
			got, err := once(t, env, &w)
			if err != nil {
				t.Fatal(err)
			}
			want := 50.0 * max(1, float64(w.Parallel))
			if w.UDP { // datagrams do get lost on a busy machine; the two figures must agree
				loss, jitter := named(t, got, "loss"), named(t, got, "jitter")
				if loss.Missing != "" || jitter.Missing != "" || loss.Value < 0 || loss.Value > 50 {
					t.Errorf("loss %+v, jitter %+v", loss, jitter)
				}
				want *= 1 - loss.Value/100
			}
			if v := named(t, got, "throughput"); v.Value < want*0.9 || v.Value > want*1.1 {
				t.Errorf("throughput %+v, want about %v", v, want)
			}
			for _, f := range []string{"stdout", "spool", "vmstat.csv", "peer-stdout", "peer-spool", "peer-vmstat.csv", "iperf.json"} {
				if st, err := os.Stat(filepath.Join(env.Dir, f)); err != nil || st.Size() == 0 {
					t.Errorf("%s: %v, or empty", f, err)
				}
			}
			if len(got.Warnings) > 0 {
				t.Errorf("warnings %q", got.Warnings)
			}
		})
	}
}

// TestStreamLive: the agent's own transfer, also where the clock is the target's.
func TestStreamLive(t *testing.T) {
	env := both(t, "go")
	for _, w := range []workloads.Iperf{
		{Server: "target"}, {Server: "target", Direction: "from_target", Parallel: 2}, {Server: "peer"}, {Server: "peer", Clock: "target"},
	} {
		w.Tool, w.Duration, w.Port = "stream", time.Second, freePort(t)
		got, err := once(t, env, &w)
		if err != nil {
			t.Errorf("%+v: %v", w, err)
			continue
		}
		if v := named(t, got, "throughput"); v.Value < 10 {
			t.Errorf("%+v: throughput %+v", w, v)
		}
		if len(got.Warnings) > 0 {
			t.Errorf("%+v: warnings %q", w, got.Warnings)
		}
	}
}

func TestIperfShellAgent(t *testing.T) {
	env := both(t, "shell")
	w := workloads.Iperf{Tool: "iperf2", Duration: 4 * time.Second, Bandwidth: "20M", Port: freePort(t)}
	got, err := once(t, env, &w)
	if err != nil {
		t.Fatal(err)
	}
	if v := named(t, got, "throughput"); v.Value < 18 || v.Value > 22 {
		t.Errorf("throughput %+v", v)
	}
}

func failedWith(t *testing.T, err error, want string) {
	t.Helper()
	var f *workloads.FailedError
	if !errors.As(err, &f) || !strings.Contains(f.Reason, want) {
		t.Errorf("error %v, want a FailedError with %q", err, want)
	}
}

// TestIperfForeignListener: a stray server on the port is named, and no client
// talks to it.
func TestIperfForeignListener(t *testing.T) {
	env := both(t, "go")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tool := range []string{"iperf2", "iperf3"} {
		w := workloads.Iperf{Tool: tool, Duration: time.Second, Port: l.Addr().(*net.TCPAddr).Port}
		_, err := once(t, env, &w)
		failedWith(t, err, "is already taken by pid "+strconv.Itoa(os.Getpid()))
		if _, err := os.Stat(filepath.Join(env.Dir, "peer-spool")); err == nil {
			t.Errorf("%s: the client was started", tool)
		}
	}
}

// TestIperfServerKilled: the server dies in the middle.
func TestIperfServerKilled(t *testing.T) {
	env := both(t, "go")
	for _, tool := range []string{"iperf2", "iperf3"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			env := copyOf(env)
			w := workloads.Iperf{Tool: tool, Duration: 4 * time.Second, Bandwidth: "20M", Port: freePort(t)}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			killed := make(chan error, 1)
			go func() { killed <- killServer(ctx, w.Port) }()
			got, err := once(t, env, &w)
			if kerr := <-killed; kerr != nil {
				t.Fatal(kerr)
			}
			if err == nil || len(got.Values) > 0 {
				t.Fatalf("a figure from a dead server: %+v", got)
			}
			failedWith(t, err, "")
			t.Log(err)
		})
	}
}

// killServer kills the server on port as soon as a client is connected to it.
func killServer(ctx context.Context, port int) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if pids := serversOn(port); len(pids) > 0 && connected(port) {
			return syscall.Kill(pids[0], syscall.SIGKILL)
		}
		select {
		case <-ctx.Done():
			return errors.New("no client was seen")
		case <-tick.C:
		}
	}
}

// connected looks for an established connection to a local port.
func connected(port int) bool {
	for _, f := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(f)
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) > 3 && f[3] == "01" && strings.HasSuffix(f[1], ":"+strings.ToUpper(strconv.FormatInt(int64(port), 16))) {
				return true
			}
		}
	}
	return false
}

func TestExecLive(t *testing.T) {
	for _, kind := range []string{"go", "shell"} {
		env := both(t, kind)
		w := &workloads.Exec{Script: `echo "$GREETING" >&2; echo "Time: 0.25"; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done`,
			Env: map[string]string{"GREETING": "good $HOME 'day'"}, Primary: "time",
			Sources: map[string]string{"time": `regexp:^Time: (\S+)`, "user": "rusage:user", "elapsed": "rusage:elapsed", "switches": "rusage:nivcsw"},
			Units:   map[string]string{"time": "s"}, Better: map[string]string{"time": "lower"}}
		got, err := once(t, env, w)
		if err != nil {
			t.Fatal(err)
		}
		if v := named(t, got, "time"); v.Value != 0.25 || v.Unit != "s" || v.Better != workloads.LowerIsBetter || !v.Primary {
			t.Errorf("%s: %+v", kind, v)
		}
		if user, elapsed := named(t, got, "user"), named(t, got, "elapsed"); user.Value <= 0 || elapsed.Value < user.Value*0.8 {
			t.Errorf("%s: user %v, elapsed %v", kind, user.Value, elapsed.Value)
		}
		if v := named(t, got, "switches"); (v.Missing != "") != (kind == "shell") {
			t.Errorf("%s: %+v", kind, v)
		}
		if b, err := os.ReadFile(filepath.Join(env.Dir, "stderr")); err != nil || string(b) != "good $HOME 'day'\n" {
			t.Errorf("%s: stderr %q, %v", kind, b, err)
		}
		one := map[string]string{"m": "rusage:user"}
		for want, w := range map[string]*workloads.Exec{
			"status 3; its last words: \"broken\"": {Script: "echo broken >&2; exit 3", Sources: one},
			"signal 9":                             {Script: "kill -9 $$", Sources: one},
			"/no/such/program":                     {Command: []string{"/no/such/program"}, Sources: one},
		} {
			_, err := once(t, env, w)
			failedWith(t, err, want)
		}
	}
	env := both(t, "go")
	env.Deadline = time.Second
	_, err := once(t, env, &workloads.Exec{Script: "sleep 60", Sources: map[string]string{"m": "rusage:user"}})
	failedWith(t, err, "deadline")
}
