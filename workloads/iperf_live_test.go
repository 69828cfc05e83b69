package workloads_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/workloads"
)

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
			got, err := steady(t, env, &w)
			if err != nil {
				t.Fatal(err)
			}
			want, least := 50.0*max(1, float64(w.Parallel)), 0.9
			if w.UDP { // datagrams do get lost on a busy machine; the two figures must agree
				loss, jitter := named(t, got, "loss"), named(t, got, "jitter")
				if loss.Missing != "" || jitter.Missing != "" || loss.Value < 0 || loss.Value > 50 {
					t.Errorf("loss %+v, jitter %+v", loss, jitter)
				}
				want *= 1 - loss.Value/100
				least = 0.7 // a busy sender also sends less than it was asked to
			}
			if v := named(t, got, "throughput"); v.Value < want*least || v.Value > want*1.1 {
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
		{Server: "target"}, {Server: "target", Direction: "from_target", Parallel: 2}, {Server: "peer", Clock: "target"},
	} {
		w.Tool, w.Duration, w.Port = "stream", 2*time.Second, freePort(t)
		got, err := steady(t, env, &w)
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
	got, err := steady(t, env, &w)
	if err != nil {
		t.Fatal(err)
	}
	if v := named(t, got, "throughput"); v.Value < 18 || v.Value > 22 {
		t.Errorf("throughput %+v", v)
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
