package agent

import (
	"testing"

	"pgregory.net/rapid"
)

// kernelTest runs one unit at the smallest size and compares the bits.
func kernelTest(name string) bool {
	k := newKernel(name, minKB)
	if k == nil {
		return false
	}
	want := map[string]uint64{"LTMM": 0x7076291e1d50db8b, "LTMB": 0xd024180000000000, "LTBM": 0xa81718fa6f2dbe1e}[name]
	got, ok := crunch(k, k.period())
	return ok && got == want
}

func TestKernelsRepeat(t *testing.T) {
	for _, name := range kernelNames() {
		if !kernelTest(name) {
			t.Errorf("%s: not the bits it must give", name)
		}
		k := newKernel(name, 1024)
		a, ok := crunch(k, 3*k.period())
		b, ok2 := crunch(newKernel(name, 1024), 3*k.period())
		if a != b || !ok || !ok2 {
			t.Errorf("%s: %x and %x for the same work", name, a, b)
		}
		if c, _ := crunch(newKernel(name, 1024), 3*k.period()+1); c == a {
			t.Errorf("%s: more work, same checksum", name)
		}
	}
	if kernelTest("LTMX") {
		t.Error("an unknown program passed")
	}
}

// faulty gives another result once.
type faulty struct{ n int }

func (f *faulty) period() int64 { return 1 }
func (f *faulty) unit() float64 {
	if f.n++; f.n == 5 {
		return 2
	}
	return 1
}

func TestCrunchNoticesWrongResults(t *testing.T) {
	if _, ok := crunch(&faulty{}, 4); !ok {
		t.Error("four equal results refused")
	}
	if _, ok := crunch(&faulty{}, 9); ok {
		t.Error("a wrong result passed")
	}
}

// A walk that closes early would leave part of the memory untouched.
func TestChaseVisitsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newChase(rapid.IntRange(minKB, 4096).Draw(t, "kB"))
		steps, at := 0, uint32(0)
		for steps == 0 || at != 0 {
			at = k.next[at]
			steps++
		}
		if steps != len(k.next) {
			t.Fatalf("back after %d of %d rows", steps, len(k.next))
		}
	})
}
