package qemu

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
)

// start is one kind of start in a series, and what must be said of it.
type start struct {
	name  string
	args  string
	bare  bool   // without an initial RAM disk
	want  string // release that is asked for
	stage string // "" is a good boot
	says  string
}

// stamp is a console's record that keeps only when the last byte came.
type stamp struct {
	mu sync.Mutex
	at time.Time
}

func (s *stamp) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Now()
	return len(b), nil
}

func (s *stamp) since() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.at)
}

var starts = []start{
	{name: "panic", args: "lab.fault=panic", stage: targets.StagePanic, says: "sysrq triggered crash"},
	{name: "good", want: "6.1.*"},
	{name: "wrong kernel", want: "5.4.*", stage: targets.StageWrongKernel, says: `wanted "5.4.*"`},
	{name: "no root", args: "root=/dev/vda1", bare: true, stage: targets.StageNoRoot, says: "root"},
	{name: "restart", args: "lab.fault=reboot", stage: targets.StageRestart, says: "went down without having been asked"},
	{name: "hang", args: "lab.fault=spin", stage: targets.StageHang, says: "silent for"},
	{name: "good again", want: "6.1.*"},
}

// TestSeries boots kernels that panic, hang, restart and are the wrong ones, one
// after the other on one machine: each is told apart, and the next one starts.
// KERNSWEEP_LONG=1 makes it 50 starts.
func TestSeries(t *testing.T) {
	t.Parallel()
	n := len(starts)
	if os.Getenv("KERNSWEEP_LONG") != "" {
		n = 50
	}
	m, tg, k := guest(t, "amd64", "6.1", "")
	gate <- struct{}{}
	t.Cleanup(func() { <-gate })
	t.Cleanup(func() {
		if err := m.Set(context.Background(), false); err != nil {
			t.Error(err)
		}
	})
	tg.Boot, tg.Console, tg.Power = m, m, m
	tg.Ready = "kernsweep-lab: ready"
	tg.SSH.User, tg.SSH.Key, tg.SSH.ConfigFile = "root", lab(t)+"/keys/id_ed25519", "none"
	tg.Dial = sshconn.New(zap.NewNop()).Dial
	tg.Timeout = targets.Timeouts{Boot: 3 * time.Minute, Silence: 15 * time.Second}
	for i := range n {
		s := starts[i%len(starts)]
		try := k
		try.Name, try.Release = s.name, s.want
		try.Cmdline = strings.TrimSpace(try.Cmdline + " " + s.args)
		if s.bare {
			try.Image.Initrd = ""
		}
		begin := time.Now()
		var heard stamp
		conn, rec, err := targets.Boot(t.Context(), tg, try, targets.BootLog{Console: &heard})
		took := time.Since(begin).Round(100 * time.Millisecond)
		after := heard.since().Round(time.Millisecond)
		var be *targets.BootError
		switch {
		case s.stage == "" && (err != nil || !rec.Proven):
			t.Fatalf("start %d, %s: %v, proven %v", i, s.name, err, rec.Proven)
		case s.stage != "" && (!errors.As(err, &be) || be.Stage != s.stage || !strings.Contains(err.Error(), s.says)):
			t.Fatalf("start %d, %s: %v, want %s", i, s.name, err, s.stage)
		}
		if conn != nil {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			tg.Held = nil
		}
		t.Logf("start %d, %s: %s, %s after the last console byte: %v", i, s.name, took, after, err)
		if s.stage == targets.StagePanic && after > 3*time.Second { // 1 s on a quiet machine
			t.Errorf("the verdict came %s after the last console byte", after)
		}
	}
	tg.StopConsole()
}
