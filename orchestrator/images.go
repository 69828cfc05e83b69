package orchestrator

import (
	"slices"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
)

// ImageFiles are the files of the controller that a plan boots, those of the way
// back included, each once.
func ImageFiles(lab *config.Lab, p *plan.Plan) []string {
	var out []string
	for _, l := range p.Lanes {
		if t := lab.Target(l.Target); t != nil {
			for _, k := range laneKernels(lab, l, t) {
				out = append(out, imageFiles(k.Image)...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// laneKernels are the kernels with an image that a lane boots, and the one that it
// goes back to, as its target boots them.
func laneKernels(lab *config.Lab, l plan.Lane, t *config.Target) []targets.Kernel {
	var names []string
	for _, b := range l.Boots {
		names = append(names, b.Kernel)
	}
	if t.KnownGood != "" && !targets.TraitsOf(t.Boot).Local {
		names = append(names, t.KnownGood)
	}
	slices.Sort(names)
	var out []targets.Kernel
	for _, n := range slices.Compact(names) {
		if k := lab.Kernel(n); k != nil {
			if r, ok := k.For(t); ok {
				out = append(out, r)
			}
		}
	}
	return out
}
