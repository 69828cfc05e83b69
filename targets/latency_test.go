package targets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
)

// lateServer is a real sshd whose port begins to answer when open is called.
type lateServer struct {
	ssh  targets.SSH
	addr string
	to   string
}

func newLateServer(t testing.TB) *lateServer {
	d := targetstest.SSHD(t)
	s := &lateServer{ssh: d.SSH, to: fmt.Sprintf("127.0.0.1:%d", d.SSH.Port)}
	s.ssh.Port = targetstest.FreePort(t)
	s.ssh.HostKeys = []string{d.HostKey}
	s.addr = fmt.Sprintf("127.0.0.1:%d", s.ssh.Port)
	return s
}

// open begins to forward the port, until close.
func (s *lateServer) open(t testing.TB) (close func()) {
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				up, err := net.Dial("tcp", s.to)
				if err != nil {
					return
				}
				defer up.Close()
				wg.Go(func() { _, _ = io.Copy(up, c); up.Close() })
				_, _ = io.Copy(c, up)
			})
		}
	})
	return func() { l.Close(); wg.Wait() }
}

// starter is a boot method that starts nothing.
type starter struct{ f func() }

func (s starter) Boot(context.Context, *targets.Target, targets.Kernel) error { s.f(); return nil }

// Emulated: the server's machine is up longer than since the request.
func (starter) Traits() targets.BootTraits { return targets.BootTraits{Emulated: true} }

// firstCommand boots a target whose SSH begins to answer after down, and returns
// the time from then to the end of the first command.
func firstCommand(t testing.TB, s *lateServer, down time.Duration) time.Duration {
	var opened, reached time.Time
	var shut func()
	ready := make(chan struct{})
	tg := &targets.Target{Name: "late", SSH: s.ssh, Dial: sshconn.New(zap.NewNop()).Dial, Timeout: targets.Timeouts{Boot: 60 * time.Second}}
	tg.Boot = starter{func() {
		time.AfterFunc(down, func() {
			shut, opened = s.open(t), time.Now()
			close(ready)
		})
	}}
	conn, _, err := targets.Boot(t.Context(), tg, targets.Kernel{Name: "k"}, targets.BootLog{Phase: func(p targets.Phase) {
		if p == targets.PhaseReachable {
			reached = time.Now()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	shut()
	return reached.Sub(opened)
}

// From SSH answering to the first command's end: under half a second.
func TestFirstCommand(t *testing.T) {
	s := newLateServer(t)
	if took := firstCommand(t, s, 3*time.Second+time.Duration(rand.IntN(700))*time.Millisecond); took > 2*time.Second { // 0.5 s on a quiet machine
		t.Errorf("the first command ended %s after SSH answered", took)
	}
}

func BenchmarkFirstCommand(b *testing.B) {
	s := newLateServer(b)
	var sum, worst time.Duration
	for b.Loop() {
		took := firstCommand(b, s, time.Second+time.Duration(rand.IntN(3000))*time.Millisecond)
		sum, worst = sum+took, max(worst, took)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), "ms/first-command")
	b.ReportMetric(float64(worst.Milliseconds()), "ms/worst")
}
