package workloads

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kernsweep/targets"
)

// toolbox is a machine that answers the question for its tools.
type toolbox struct {
	says string
	err  error
}

func (c toolbox) Run(_ context.Context, cmd targets.Cmd) (targets.Exit, error) {
	if c.err == nil {
		_, _ = io.WriteString(cmd.Stdout, c.says)
	}
	return targets.Exit{}, c.err
}
func (toolbox) Put(context.Context, string, fs.FileMode, io.Reader) error {
	return errors.ErrUnsupported
}
func (toolbox) Get(context.Context, string, io.Writer) error { return errors.ErrUnsupported }
func (toolbox) Close() error                                 { return nil }

// rung is an agent of some kind that runs nothing.
type rung string

func (r rung) Kind() string                  { return string(r) }
func (rung) Run(context.Context, Task) error { return errors.ErrUnsupported }

const (
	has205  = "== iperf\niperf version 2.0.5 (08 Jul 2010) pthreads\n"
	has218  = "== iperf\niperf version 2.1.8 (12 August 2022) pthreads\n"
	has3    = "== iperf3\niperf 3.12 (cJSON 1.7.15)\nLinux lab 6.1.0\nOptional features available: CPU affinity setting\n"
	has31   = "== iperf\niperf 3.1.3\nLinux openwrt\n" // iperf3 under the other's name
	hasBoth = has3 + has218
)

func lab(target, peer, targetAgent string) *Env {
	return &Env{
		Target: Side{Conn: toolbox{says: target}, Agent: rung(targetAgent), Network: targets.Network{Address: "192.0.2.1", Peer: "192.0.2.99"}},
		Peer:   Side{Conn: toolbox{says: peer}, Agent: rung("go")}, Deadline: time.Minute,
	}
}

func TestIperfChooses(t *testing.T) {
	for _, c := range []struct {
		name, target, peer, agent string
		w                         Iperf
		tool, server, client      string // versions
		why                       string // why nothing fits
	}{
		{"both have both", hasBoth, hasBoth, "go", Iperf{}, toolIperf3, "3.12", "3.12", ""},
		{"iperf3 on one end only", has218, hasBoth, "go", Iperf{}, toolIperf2, "2.1.8", "2.1.8", ""},
		{"told by what it says, not by its name", has31, has3, "shell", Iperf{}, toolIperf3, "3.1.3", "3.12", ""},
		{"nothing but the agent", "", hasBoth, "go", Iperf{}, toolStream, "", "", ""},
		{"iperf2 and iperf3 do not mix", has31, has218, "shell", Iperf{}, "", "", "", "no iperf3 on the peer; no iperf2 on the target; stream: the target runs the shell agent"},
		{"asked for and missing", has205, has3, "go", Iperf{Tool: toolIperf3}, "", "", "", "no iperf3 on the target"},
		{"on neither", "", "", "go", Iperf{Tool: toolIperf2}, "", "", "", "no iperf2 on target and peer"},
		{"2.0.5 ignores -R", has205, has218, "go", Iperf{Tool: toolIperf2, Direction: fromTarget}, "", "", "",
			"iperf 2.0.5 on the target cannot reverse (it may ignore -R and exit with 0): set server = \"peer\""},
		{"2.0.5 the natural way", has205, has218, "go", Iperf{Tool: toolIperf2, Server: sidePeer}, toolIperf2, "2.1.8", "2.0.5", ""},
		{"2.0.5 paces only UDP", has218, has205, "go", Iperf{Tool: toolIperf2, Bandwidth: "10M"}, "", "", "", "iperf 2.0.5 on the peer takes -b for UDP"},
		{"UDP needs a tool", "", has3, "go", Iperf{UDP: true, Bandwidth: "10M"}, "", "", "", "stream knows only TCP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := c.w.plan(t.Context(), lab(c.target, c.peer, c.agent))
			if c.why != "" {
				var no *UnavailableError
				if !errors.As(err, &no) || !strings.Contains(no.Reason, c.why) {
					t.Errorf("%v, want %q", err, c.why)
				}
				return
			}
			if err != nil || p.Tool != c.tool || p.ServerVersion != c.server || p.ClientVersion != c.client {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	env := lab(hasBoth, hasBoth, "go")
	env.Peer.Conn = toolbox{err: &targets.LinkError{Phase: "exec", Err: io.EOF}}
	var link *targets.LinkError
	if err := (&Iperf{}).Prepare(t.Context(), env); !errors.As(err, &link) || !strings.Contains(err.Error(), "ask the peer") {
		t.Errorf("a lost link: %v", err)
	}
	env.Peer = Side{}
	var no *UnavailableError
	if err := (&Iperf{}).Prepare(t.Context(), env); !errors.As(err, &no) {
		t.Errorf("no peer: %v", err)
	}
}

func TestIperfCommandLines(t *testing.T) {
	forwarded := func(e *Env) { e.Target.Network.Ports = map[int]int{22: 40022, 5001: 45001, 5201: 45201} }
	for _, c := range []struct {
		name           string
		w              Iperf
		change         func(*Env)
		server, client string
	}{
		{"iperf2", Iperf{Tool: toolIperf2, Parallel: 2, Window: "64K"}, nil,
			"exec -- iperf -s -p 5001 -f k -i 1 -P 2 -w 64K", "exec -- iperf -c 192.0.2.1 -p 5001 -f k -i 1 -P 2 -t 10 -w 64K"},
		{"iperf2 UDP from the target", Iperf{Tool: toolIperf2, Server: sidePeer, UDP: true, Bandwidth: "20M", Duration: 5 * time.Second, Port: 7000}, nil,
			"exec -- iperf -s -p 7000 -f k -i 1 -P 1 -u", "exec -- iperf -c 192.0.2.99 -p 7000 -f k -i 1 -P 1 -t 5 -u -b 20000000"},
		{"iperf3 reversed", Iperf{Tool: toolIperf3, Direction: fromTarget, Interval: 500 * time.Millisecond, ClientArgs: []string{"-Z"}, ServerArgs: []string{"-V"}}, nil,
			"exec -- iperf3 -s -p 5201 -1 -J -i 0.5 -V", "exec -- iperf3 -c 192.0.2.1 -p 5201 -J -i 0.5 -P 1 -t 10 -R -Z"},
		{"stream through a forwarded port", Iperf{Tool: toolStream}, forwarded,
			"stream -listen 5001 -once", "stream -connect 192.0.2.1:45001 -direction send -duration 10s -parallel 1"},
		{"iperf3 through a forwarded port", Iperf{Tool: toolIperf3}, forwarded,
			"exec -- iperf3 -s -p 5201 -1 -J -i 1", "exec -- iperf3 -c 192.0.2.1 -p 45201 -J -i 1 -P 1 -t 10"},
		{"only another port is forwarded", Iperf{Tool: toolStream, Direction: fromTarget}, func(e *Env) { e.Target.Network.Ports = map[int]int{22: 1, 9000: 49000} },
			"stream -listen 9000 -once", "stream -connect 192.0.2.1:49000 -direction receive -duration 10s -parallel 1"},
		{"IPv6", Iperf{Tool: toolIperf2}, func(e *Env) { e.Target.Network.Address = "2001:db8::1" },
			"exec -- iperf -s -p 5001 -f k -i 1 -P 1 -V", "exec -- iperf -c 2001:db8::1 -p 5001 -f k -i 1 -P 1 -t 10 -V"},
		{"another target as the peer", Iperf{Tool: toolIperf2, Server: sidePeer}, func(e *Env) { e.Peer.Network.Address = "192.0.2.2" },
			"exec -- iperf -s -p 5001 -f k -i 1 -P 1", "exec -- iperf -c 192.0.2.2 -p 5001 -f k -i 1 -P 1 -t 10"},
	} {
		env := lab(hasBoth, hasBoth, "go")
		if c.change != nil {
			c.change(env)
		}
		if err := c.w.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		p, err := c.w.plan(t.Context(), env)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(p.ServerArgv, " "); got != c.server {
			t.Errorf("%s: server %q, want %q", c.name, got, c.server)
		}
		if got := strings.Join(p.ClientArgv, " "); got != c.client {
			t.Errorf("%s: client %q, want %q", c.name, got, c.client)
		}
	}
	for want, change := range map[string]func(*Env){
		"no port of the target is forwarded":     func(e *Env) { e.Target.Network.Ports = map[int]int{22: 40022} },
		"the address of the target is not known": func(e *Env) { e.Target.Network.Address = "" },
	} {
		env := lab(hasBoth, hasBoth, "go")
		change(env)
		var no *UnavailableError
		if _, err := (&Iperf{}).plan(t.Context(), env); !errors.As(err, &no) || !strings.Contains(no.Reason, want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// script is an agent whose tasks do what the test says.
type script struct {
	rung
	run func(context.Context, Task) error
}

func (s script) Run(ctx context.Context, t Task) error { return s.run(ctx, t) }

func TestIperfOrder(t *testing.T) {
	defer goleak.VerifyNone(t)
	var order []string
	env := lab(hasBoth, hasBoth, "go")
	env.Dir = t.TempDir()
	over := make(chan struct{})
	env.Ended = func(how string) { order = append(order, "ended "+how) }
	env.Target.Agent = script{"go", func(ctx context.Context, task Task) error {
		if task.Listen != 5201 || task.Prefix != "" || task.StopAfter != 40*time.Second || task.UDP {
			t.Errorf("server task %+v", task)
		}
		order = append(order, "server")
		task.Ready()
		task.Ready() // a second word does no harm
		<-over
		task.Ended("ok")
		return nil
	}}
	env.Peer.Agent = script{"go", func(ctx context.Context, task Task) error {
		if task.Listen != 0 || task.Prefix != "peer-" || task.Deadline != 30*time.Second || task.Ended != nil || !slices.Contains(task.Env, "LC_ALL=C") {
			t.Errorf("client task %+v", task)
		}
		order = append(order, "client")
		close(over)
		return nil
	}}
	if err := (&Iperf{}).Run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ", "); got != "server, client, ended ok" {
		t.Errorf("order: %s", got)
	}
	// A server that ends before it is ready keeps the client from starting.
	env.Target.Agent = script{"go", func(context.Context, Task) error { return nil }}
	env.Peer.Agent = script{"go", func(context.Context, Task) error { t.Error("the client ran"); return nil }}
	if err := (&Iperf{}).Run(t.Context(), env); err != nil {
		t.Error(err)
	}
	// The client's lost link ends the server, and both are told.
	env.Target.Agent = script{"go", func(ctx context.Context, task Task) error { task.Ready(); <-ctx.Done(); return context.Cause(ctx) }}
	env.Peer.Agent = script{"go", func(context.Context, Task) error { return &targets.LinkError{Phase: "exec", Err: io.EOF} }}
	var link *targets.LinkError
	if err := (&Iperf{}).Run(t.Context(), env); !errors.As(err, &link) || errors.Is(err, errClientOver) {
		t.Errorf("%v", err)
	}
}

// TestIperfEndsAnIdleServer: a client that never came leaves no server behind.
func TestIperfEndsAnIdleServer(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		env := lab(hasBoth, hasBoth, "go")
		env.Dir = dir
		env.Target.Agent = script{"go", func(ctx context.Context, task Task) error { task.Ready(); <-ctx.Done(); return context.Cause(ctx) }}
		env.Peer.Agent = script{"go", func(context.Context, Task) error { return nil }}
		begun := time.Now()
		if err := (&Iperf{}).Run(t.Context(), env); err != nil || time.Since(begun) != serverGrace {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}
