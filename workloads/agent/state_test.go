package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/workloads/wire"
)

func TestStateHasThisMachinesFiles(t *testing.T) {
	var spool bytes.Buffer
	w, err := wire.NewWriter(&spool, 0)
	if err != nil {
		t.Fatal(err)
	}
	writeState(w)
	w.Write(wire.TypeEnd, Now(), "", []byte("status=ok\n"))
	s, err := wire.Read(&spool)
	if err != nil || len(s.States) != 1 || s.States[0].MonoNS <= 0 {
		t.Fatalf("%v, %d states", err, len(s.States))
	}
	stat, err := os.ReadFile("/proc/schedstat")
	if got := s.States[0].Files["/proc/schedstat"]; err == nil && (strings.Contains(got, "domain") || !strings.Contains(got, "\ncpu0 ")) {
		t.Errorf("of %q was kept %q", stat, got)
	}
}

func TestStateOfOneFile(t *testing.T) {
	f := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(f, []byte("a 1\ndomain0 2\nb 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := string(appendState(nil, f, "domain")); got != f+"=a 1;b 3\n" {
		t.Errorf("%q", got)
	}
	if got := appendState([]byte("x\n"), f+"-not", ""); string(got) != "x\n" {
		t.Errorf("a file that is not there: %q", got)
	}
}

func TestFrequenciesAreSampledWithTheCounters(t *testing.T) {
	f := filepath.Join(t.TempDir(), "scaling_cur_freq")
	if err := os.WriteFile(f, []byte("1400000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(f, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := newSampler()
	defer s.close()
	s.freqs = append(s.freqs, freqFile{name: []byte("cpu9 "), fd: fd})
	var spool bytes.Buffer
	w, err := wire.NewWriter(&spool, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.sample(w)
	if err := os.WriteFile(f, []byte("900000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sample(w)
	w.Write(wire.TypeEnd, Now(), "", []byte("status=ok\n"))
	got, err := wire.Read(&spool)
	if err != nil || len(got.Snapshots) != 2 {
		t.Fatalf("%v, %d snapshots", err, len(got.Snapshots))
	}
	for i, want := range []string{"cpu9 1400000\n", "cpu9 900000\n"} {
		if !strings.HasSuffix(string(got.Snapshots[i].Freq), want) {
			t.Errorf("sample %d: %q", i, got.Snapshots[i].Freq)
		}
	}
}

func TestBothClocksAreOfOneMoment(t *testing.T) {
	before := Now()
	mono, wall := clocks()
	if after := Now(); mono < before || mono > after || wall == "" {
		t.Errorf("%d is not between %d and %d, or no wall clock: %q", mono, before, after, wall)
	}
	now := itoa(time.Now().UnixNano())
	if len(wall) != len(now) || wall > now {
		t.Errorf("wall clock %s, it is %s", wall, now)
	}
}
