package orchestrator

import (
	"testing"

	"kernsweep/orchestrator/results"
)

// A metric that may be 0 has no logarithm, and a width all the same: a kernel by
// itself that loses nothing in any boot has enough.
func TestWidthOfACellWithZeros(t *testing.T) {
	var v results.Measured
	for boot := range 5 {
		v.Boots = append(v.Boots, results.BootValues{Boot: boot + 1, Values: []float64{0}})
	}
	if w := alone(v); !w.OK() || w.Value != 0 {
		t.Errorf("%+v", w)
	}
	v.Boots[0].Values[0] = 1
	if w := alone(v); !w.OK() || w.Value < 1 {
		t.Errorf("%+v", w)
	}
}
