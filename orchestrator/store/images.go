package store

import (
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
)

// pair is a kernel on a target.
type pair struct{ kernel, target string }

// pairs lists the kernels that a plan boots on each target, and those that the
// way back needs, each once.
func pairs(lab *config.Lab, p *plan.Plan) []pair {
	var out []pair
	seen := map[pair]bool{}
	add := func(kernel, target string) {
		if c := (pair{kernel, target}); kernel != "" && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	for _, l := range p.Lanes {
		for _, b := range l.Boots {
			add(b.Kernel, l.Target)
		}
		if t := lab.Target(l.Target); t != nil && !targets.TraitsOf(t.Boot).Local {
			add(t.KnownGood, l.Target)
		}
	}
	return out
}

// parts are the files of an image in order.
func parts(i targets.Image) []Image {
	var out []Image
	add := func(part, list string) {
		for _, f := range strings.Split(list, ",") {
			if f = strings.TrimSpace(f); f != "" {
				out = append(out, Image{Part: part, Path: f})
			}
		}
	}
	add("kernel", i.Kernel)
	add("initrd", i.Initrd)
	add("dtb", i.DTB)
	return out
}

// current is what the lab says of the images of a plan, without hashes.
func current(lab *config.Lab, pairs []pair) []Image {
	var out []Image
	for _, c := range pairs {
		k, t := lab.Kernel(c.kernel), lab.Target(c.target)
		if k == nil || t == nil {
			continue
		}
		i := k.ImageFor(t)
		if i == nil {
			continue
		}
		for _, f := range parts(i.Image) {
			f.Kernel, f.Target = c.kernel, c.target
			out = append(out, f)
		}
	}
	return out
}

func paths(images []Image) []string {
	var out []string
	seen := map[string]bool{}
	for _, i := range images {
		if !seen[i.Path] {
			seen[i.Path] = true
			out = append(out, i.Path)
		}
	}
	return out
}

// of are the parts of one kernel on one target.
func of(images []Image, c pair) []Image {
	var out []Image
	for _, i := range images {
		if i.Kernel == c.kernel && i.Target == c.target {
			out = append(out, i)
		}
	}
	return out
}
