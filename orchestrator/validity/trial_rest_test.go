package validity

import (
	"fmt"
	"testing"

	"kernsweep/workloads/wire"
)

// One task on two CPUs: the one at rest sleeps at a low frequency, which is no
// news; the one at work must not.
func TestFrequencyOfACPUAtRest(t *testing.T) {
	for _, c := range []struct {
		what          string
		user0, user1  int // ticks of each CPU meanwhile
		speaksAgainst bool
	}{
		{"cpu1 at rest", 950, 20, false},
		{"cpu1 at work", 950, 900, true},
		{"both nearly at rest", 12, 10, true},
	} {
		e := sound()
		e.Spool.States, e.Spool.Snapshots = nil, nil
		stat := func(a, b int) []byte {
			return fmt.Appendf(nil, "cpu %d 0 0 %d\ncpu0 %d 0 0 %d\ncpu1 %d 0 0 %d\n", a+b, 2000-a-b, a, 1000-a, b, 1000-b)
		}
		for i, khz := range []int{1400000, 800000, 1400000, 1400000, 600000, 1400000} {
			s := wire.Snapshot{MonoNS: int64(i) * second, Freq: fmt.Appendf(nil, "cpu0 1400000\ncpu1 %d\n", khz)}
			switch i {
			case 0:
				s.Stat = []byte("cpu 0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\n")
			case 5:
				s.Stat = stat(c.user0, c.user1)
			}
			e.Spool.Snapshots = append(e.Spool.Snapshots, s)
		}
		if a := frequencySteady(e); (a.text != "") != c.speaksAgainst {
			t.Errorf("%s: %+v", c.what, a)
		}
	}
}
