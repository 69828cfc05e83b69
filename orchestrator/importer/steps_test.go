package importer

import (
	"strings"
	"testing"
)

// A table's values have the step of their column, not of their own last digit:
// who wrote it may leave zeros away.
func TestStepOfAColumn(t *testing.T) {
	for _, c := range []struct {
		name, column string
		want         []float64
	}{
		{"zeros left away", "0.993\n1\n1.01\n0.9\n", []float64{0.001, 0.01, 0.01, 0.001}},
		{"whole numbers", "100\n250\n99\n", []float64{1, 1, 1}},
		{"three digits", "9.55\n94.1\n101\n", []float64{0.01, 0.1, 1}},
		{"a zero", "0\n0.25\n10\n", []float64{0.01, 0.01, 1}},
		{"fixed places", "10.00\n250.25\n0.50\n", []float64{0.01, 0.01, 0.01}},
		{"whole beside parts", "1200\n1250.5\n1300\n", []float64{0.1, 0.1, 0.1}},
	} {
		m := &Import{}
		n := int32(0)
		for i, line := range strings.Fields(c.column) {
			v, step, err := number(line)
			if err != nil {
				t.Fatal(err)
			}
			m.vals = append(m.vals, val{v: v, res: step})
			m.trials = append(m.trials, trial{from: n, to: n + 1, line: int32(i)})
			n++
		}
		m.steps(0)
		for i, v := range m.vals {
			if r := v.res / c.want[i]; r < 0.999 || r > 1.001 {
				t.Errorf("%s: value %v has step %v, want %v", c.name, v.v, v.res, c.want[i])
			}
		}
	}
}
