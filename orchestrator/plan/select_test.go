package plan

import (
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
)

// A rerun with another configuration must say so: nothing left to do would be a
// lie, and a kernel that is not there cannot be booted.
func TestSelectWithAnotherConfiguration(t *testing.T) {
	whole := expand(t, lab(2, 2, 2), 1, Filter{})
	failed := func(s results.Slot) bool { return s.Target == "t1" }
	for name, tt := range map[string]struct {
		targets, kernels, workloads int
		f                           Filter
		want                        func(results.Slot) bool
		text                        string // "" = all is well
	}{
		"the same":            {2, 2, 2, Filter{}, nil, ""},
		"no target":           {1, 2, 2, Filter{}, nil, "no target t1"},
		"no kernel":           {2, 1, 2, Filter{}, nil, "no kernel k1"},
		"no workload":         {2, 2, 1, Filter{}, nil, "no workload still.w1"},
		"nothing":             {0, 0, 0, Filter{}, failed, "no target t1, no kernel k"},
		"chosen kernel":       {2, 1, 2, Filter{Kernels: []string{"k0"}}, nil, ""},
		"chosen workload":     {2, 2, 1, Filter{Workloads: []string{"w0"}}, nil, ""},
		"chosen target":       {1, 2, 2, Filter{Targets: []string{"t0"}}, nil, ""},
		"what is gone was ok": {1, 2, 2, Filter{}, func(s results.Slot) bool { return s.Target == "t0" }, ""},
	} {
		p, err := whole.Select(lab(tt.targets, tt.kernels, tt.workloads), tt.f, tt.want)
		switch {
		case tt.text == "" && (err != nil || len(p.Lanes) == 0):
			t.Errorf("%s: %v", name, err)
		case tt.text != "" && (err == nil || !strings.Contains(err.Error(), tt.text)):
			t.Errorf("%s: error %v, want %q", name, err, tt.text)
		}
	}
}
