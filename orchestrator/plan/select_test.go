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

// One kernel's failure repeats its block with all kernels, in the plan's order;
// alone, it is the slot and its warm-up.
func TestRepeatedWholeBlocks(t *testing.T) {
	l := lab(2, 3, 2)
	whole := expand(t, l, 3, Filter{}) // 4 blocks, repeat 2, warm-up 1
	failed := func(s results.Slot) bool {
		return s.Target == "t1" && s.Kernel == "k2" && s.Workload == "still.w0" && s.Repeat == 2 && (s.Block == 1 || s.Block == 3)
	}
	for name, tt := range map[string]struct {
		s                       Selection
		lanes, blocks, measured int
	}{
		"a failure in two blocks": {Selection{Want: failed}, 1, 2, 2 * 3 * 2 * 2},
		"of one workload":         {Selection{Want: failed, Filter: Filter{Workloads: []string{"w0"}}}, 1, 2, 2 * 3 * 2},
		"another workload":        {Selection{Want: failed, Filter: Filter{Workloads: []string{"w1"}}}, 0, 0, 0},
		"its kernel":              {Selection{Want: failed, Filter: Filter{Kernels: []string{"k2"}}}, 1, 2, 2 * 3 * 2 * 2},
		"another kernel":          {Selection{Want: failed, Filter: Filter{Kernels: []string{"k0"}}}, 0, 0, 0},
		"the slots alone":         {Selection{Want: failed, Alone: true}, 1, 2, 2},
		"a kernel":                {Selection{Filter: Filter{Kernels: []string{"k0"}}}, 2, 4, 4 * 3 * 2 * 2},
		"a kernel alone":          {Selection{Filter: Filter{Kernels: []string{"k0"}}, Alone: true}, 2, 4, 4 * 2 * 2},
		"a target":                {Selection{Filter: Filter{Targets: []string{"t0"}}}, 1, 4, 4 * 3 * 2 * 2},
		"everything":              {Selection{}, 2, 4, 4 * 3 * 2 * 2},
	} {
		p, err := whole.Repeated(l, tt.s)
		if err != nil || len(p.Lanes) != tt.lanes {
			t.Errorf("%s: %d lanes, %v", name, len(p.Lanes), err)
			continue
		}
		for _, lane := range p.Lanes {
			if lane.Rounds() != tt.blocks || lane.Measured() != tt.measured {
				t.Errorf("%s: %d blocks, %d trials", name, lane.Rounds(), lane.Measured())
			}
			if lane.Estimate <= 0 || !inOrder(whole, lane) {
				t.Errorf("%s: not the plan's order, or no estimate", name)
			}
		}
	}
	if p, _ := whole.Repeated(l, Selection{Want: failed, Alone: true}); p.Trials() != 4 { // two warm-ups
		t.Errorf("%d trials alone", p.Trials())
	}
}

// inOrder says that lane's trials stand in whole in the same order.
func inOrder(whole *Plan, lane Lane) bool {
	var all, some []results.Slot
	for _, l := range whole.Lanes {
		for _, b := range l.Boots {
			all = append(all, b.Trials...)
		}
	}
	for _, b := range lane.Boots {
		some = append(some, b.Trials...)
	}
	for _, s := range all {
		if len(some) > 0 && s == some[0] {
			some = some[1:]
		}
	}
	return len(some) == 0
}

func TestRepeatedRefusesUnknownNames(t *testing.T) {
	l := lab(2, 2, 2)
	whole := expand(t, l, 1, Filter{})
	l.Targets = append(l.Targets, lab(3, 1, 1).Targets[2]) // the lab has it, the run does not
	for _, tt := range []struct {
		f    Filter
		text string
	}{
		{Filter{Targets: []string{"t2"}}, `the run has no target "t2"; did you mean t0? It has t0, t1`},
		{Filter{Targets: []string{"nothing"}}, `the run has no target "nothing"; it has t0, t1`},
		{Filter{Kernels: []string{"k"}}, `no kernel "k"; did you mean k0?`},
		{Filter{Workloads: []string{"still.w"}}, `no workload "still.w"; did you mean still.w0?`},
		{Filter{Workloads: []string{"w9"}}, `did you mean still.w0?`},
		{Filter{Workloads: []string{"stll"}}, `no workload "stll"`},
		{Filter{Targets: []string{""}}, `no target ""`},
	} {
		if _, err := whole.Repeated(l, Selection{Filter: tt.f}); err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%v: %v", tt.f, err)
		}
	}
	l.Workloads[0].Scenarios[0].Name = "other"
	if _, err := whole.Repeated(l, Selection{}); err == nil || !strings.Contains(err.Error(), "no scenario still.w0.default") {
		t.Errorf("a scenario that is gone: %v", err)
	}
}
