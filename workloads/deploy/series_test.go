package deploy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
)

// TestKilledAtRandom kills controllers at random points of a trial and takes the
// trials up: each is there in the end, whole, and nothing else is. The longer
// series runs with KERNSWEEP_LONG=1.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	each := 2
	if long() {
		each = 30
	}
	var kills, reattached, repeated, left atomic.Int32
	t.Cleanup(func() {
		t.Logf("kills %d, reattached %d, repeated %d, processes and spools left %d", kills.Load(), reattached.Load(), repeated.Load(), left.Load())
	})
	for i, k := range []scene{
		{Work: "exec", Agent: "go", Script: "echo begun; sleep 1; echo over"},
		{Work: "exec", Agent: "shell", Script: "echo begun; sleep 1; echo over"},
		{Work: "iperf to the target", Agent: "go"},
		{Work: "stream", Agent: "go"},
	} {
		t.Run(k.Work+"/"+k.Agent, func(t *testing.T) {
			t.Parallel()
			var d *targetstest.Daemon
			if i%2 == 0 {
				d = targetstest.SSHD(t)
			}
			for n := range each {
				k := k
				k.Port = targetstest.FreePort(t)
				s := newScene(t, k)
				if d != nil {
					s.SSH = d.SSH
				}
				after := time.Duration(rand.Int64N(int64(4500 * time.Millisecond)))
				c := s.start(t)
				timer := time.NewTimer(after)
				select {
				case <-timer.C:
				case <-t.Context().Done():
				}
				kill9(c)
				kills.Add(1)
				_, _, err := s.resume(t, true)
				var gone *GoneError
				switch {
				case err == nil:
					reattached.Add(1)
				case errors.Is(err, ErrNotBegun), errors.As(err, &gone):
					repeated.Add(1)
					s.repeat(t)
				default:
					t.Errorf("kill %d after %v: %v", n, after, err)
				}
				checkTrial(t, s)
				left.Add(int32(s.left(t, fmt.Sprint("kill ", n, " after ", after))))
			}
		})
	}
}

func long() bool { return os.Getenv("KERNSWEEP_LONG") == "1" }

// repeat runs the trial of a scene as a new attempt in this process.
func (s *scene) repeat(t *testing.T) {
	t.Helper()
	s.Dir = filepath.Join(s.Dir, "attempt-2")
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	target, peer, done, err := s.sides(t.Context(), nil, func(n string) { t.Log(n) })
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := s.workload().Run(t.Context(), s.env(target, peer, target, peer)); err != nil {
		t.Error(err)
	}
	for _, a := range []*Agent{target, peer} {
		if err := a.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// left counts what is left of a scene: marked processes and spools.
func (s *scene) left(t *testing.T, when string) int {
	t.Helper()
	n := len(s.marked())
	for _, dir := range []string{s.Target, s.Peer} {
		files, err := filepath.Glob(dir + "/*")
		if err != nil {
			t.Error(err)
		}
		for _, f := range files {
			if strings.Contains(f, ".spool") {
				n++
			}
		}
	}
	if n > 0 {
		t.Errorf("%s: %d processes or spools are left", when, n)
	}
	return n
}
