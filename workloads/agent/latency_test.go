package agent

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kernsweep/workloads/wire"
)

// fast is a schedule that gives many wakeups in a short test.
func fast(more ...string) []string {
	return append([]string{"latency", "-period-min", "2ms", "-period-max", "4ms"}, more...)
}

// checkWakeups looks at the series of a probe: times rise, nothing is negative.
func checkWakeups(t *testing.T, s *wire.Spool, atLeast int) [][]int64 {
	t.Helper()
	if s.End["status"] != "ok" {
		t.Fatalf("%v %s", s.End, s.Stderr)
	}
	w := s.Points["wakeup"]
	if len(w) < atLeast {
		t.Fatalf("%d wakeups, want at least %d", len(w), atLeast)
	}
	for i, p := range w {
		if len(p) != 5 || p[1] < 0 || p[2] < 0 || p[3] < 0 || p[4] < 0 {
			t.Fatalf("wakeup %d: %v", i, p)
		}
		if i > 0 && p[0]-w[i-1][0] < 2e6 {
			t.Fatalf("wakeup %d is %d ns after the one before", i, p[0]-w[i-1][0])
		}
	}
	if s.Values["skipped_periods"]["value"] == "" {
		t.Error("skipped periods are not counted")
	}
	return w
}

func count(s *wire.Spool, name string) (n int) {
	for _, t := range s.Tasks {
		if t.Name == name {
			n++
		}
	}
	return n
}

func TestLatency(t *testing.T) {
	bin := realAgent(t, "amd64")
	t.Run("idle, for a time", func(t *testing.T) {
		s := runReal(t, bin, fast("-duration", "500ms")...)
		checkWakeups(t, s, 5)
		if count(s, "load") != 0 {
			t.Error("a load ran")
		}
	})
	t.Run("a looped load is started again, and ends with the probe", func(t *testing.T) {
		s := runReal(t, bin, fast("-duration", "1s", "-load", "2", "-work", "1")...)
		checkWakeups(t, s, 5)
		if n := count(s, "load"); n < 4 {
			t.Errorf("%d runs of the load", n)
		}
	})
	t.Run("until the load ends", func(t *testing.T) {
		s := runReal(t, bin, fast("-until-load", "-load", "2", "-work", "300")...)
		checkWakeups(t, s, 1)
		if n := count(s, "load"); n != 2 {
			t.Errorf("%d runs of the load", n)
		}
	})
	t.Run("a command that is told the number", func(t *testing.T) {
		s := runReal(t, bin, fast("-until-load", "-load", "3", "--", "sh", "-c", "echo {jobs} $0 $(cut -d' ' -f6 /proc/$$/stat) $$", "-until-load")...)
		f := strings.Fields(string(s.Stdout))
		if count(s, "load") != 1 || len(f) != 4 || f[0] != "3" || f[1] != "-until-load" {
			t.Fatalf("%q, %v", s.Stdout, names(s))
		}
		if f[2] != f[3] {
			t.Errorf("the load runs in session %s, not its own, %s", f[2], f[3])
		}
	})
	t.Run("placement", func(t *testing.T) {
		for place, same := range map[string]bool{"same": true, "other": false} {
			s := runReal(t, bin, fast("-duration", "100ms", "-place", place)...)
			for _, p := range checkWakeups(t, s, 1) {
				if (p[3] == p[4]) != same {
					t.Fatalf("%s: CPUs %d and %d", place, p[3], p[4])
				}
			}
		}
	})
	t.Run("no program of the load survives", func(t *testing.T) {
		mark := filepath.Join(t.TempDir(), "pid")
		s := runReal(t, bin, fast("-duration", "300ms", "-load", "1", "--", "sh", "-c", "sleep 300 & echo $! >"+mark+"; wait")...)
		checkWakeups(t, s, 1)
		pid, err := os.ReadFile(mark)
		if err != nil {
			t.Fatal(err)
		}
		if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat"); err == nil && !bytes.Contains(stat, []byte(") Z ")) {
			t.Errorf("the load's child still runs: %s", stat)
		}
	})
}

func TestLatencyFails(t *testing.T) {
	bin := realAgent(t, "amd64")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"load: exited with status 1", fast("-duration", "20s", "-load", "1", "--", "false")},
		{"load: exited with status 1", fast("-until-load", "-load", "2", "--", "false")},
		{"load: exited with status 1", fast("-duration", "20s", "-load", "1", "--", "no-such-program")},
		{"either -duration or -until-load", fast("-load", "1")},
		{"at least 1", fast("-until-load")},
		{"periods", []string{"latency", "-period-min", "4ms", "-period-max", "2ms", "-duration", "1s"}},
		{"-place", fast("-duration", "1s", "-place", "here")},
		{"unknown option -hurry", fast("-hurry", "1")},
	} {
		s := runReal(t, bin, c.args...)
		if s.End["status"] != "failed" || !strings.Contains(s.End["reason"], c.want) {
			t.Errorf("%v: %v, want %q", c.args, s.End, c.want)
		}
	}
}

// The agent's own deadline ends probe and load, and both leave no process.
func TestLatencyDeadline(t *testing.T) {
	bin := realAgent(t, "amd64")
	for _, args := range [][]string{fast("-duration", "1m", "-load", "2"), fast("-until-load", "-load", "1", "--", "sleep", "300")} {
		argv := append([]string{"run", "-spool", filepath.Join(t.TempDir(), "spool"), "-deadline", "300ms"}, args...)
		out, _ := exec.CommandContext(t.Context(), bin, argv...).Output()
		s, err := wire.Read(bytes.NewReader(out))
		if err != nil || s.End["status"] != "timeout" {
			t.Errorf("%v: %v %v", args, err, s.End)
		}
	}
}

func TestScheduleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Int64Range(1, 1e10).Draw(t, "min")
		span := rapid.Int64Range(1, 1e10).Draw(t, "span")
		seed := randomizer(rapid.Uint32Range(1, 1<<32-1).Draw(t, "seed"))
		a, b := schedule{low, span, seed}, schedule{low, span, seed}
		var drawn []int64
		for range 50 {
			v := a.next()
			if v < low || v >= low+span {
				t.Fatalf("%d is outside [%d, %d)", v, low, low+span)
			}
			if v != b.next() {
				t.Fatal("the same seed gives another schedule")
			}
			drawn = append(drawn, v)
		}
		if slices.Sort(drawn); span > 1000 && drawn[49]-drawn[0] < span/10 {
			t.Fatalf("50 periods within %d of %d", drawn[49]-drawn[0], span)
		}
	})
}
