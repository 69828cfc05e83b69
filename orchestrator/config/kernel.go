package config

import (
	"os"
	"path"
	"reflect"
	"strings"

	"kernsweep/targets"
)

// kernelBlock is the content of a kernel block.
type kernelBlock struct {
	Note      string   `hcl:"note,optional" doc:"free text"`
	Scheduler string   `hcl:"scheduler,optional" doc:"what the probe must find after the boot: cfs, eevdf, bfs, …"`
	Release   string   `hcl:"release,optional" doc:"pattern that uname -r must match, with * and ?"`
	Cmdline   string   `hcl:"cmdline,optional" doc:"additions to the kernel's command line"`
	Images    []*block `hcl:"image,block"`
}

// schedulers are the names the probe can find.
func schedulers() []string {
	return []string{"bfs", "bmq", "bore", "cfs", "eevdf", "muqss", "o1", "pds", "sched_ext", "sd"}
}

func (l *loader) addKernel(b *block) {
	var raw kernelBlock
	l.decode(b, b.body, inBlock("kernel"), false, &raw)
	k := &Kernel{Name: b.name(), Note: raw.Note, Scheduler: raw.Scheduler, Release: raw.Release, Cmdline: raw.Cmdline, Pos: b.pos}
	if a := b.body.attrs["scheduler"]; k.Scheduler != "" && !contains(schedulers(), k.Scheduler) {
		l.warn(a.valuePos(), didYouMean(k.Scheduler, schedulers(), "it knows "+quoted(schedulers())), "the probe never finds a scheduler called %q, so no boot of this kernel can be verified", k.Scheduler)
	}
	if _, err := path.Match(k.Release, ""); err != nil {
		l.atAttr(b.body, "release", "is no pattern: "+err.Error())
	}
	seen := map[string]Pos{}
	for _, in := range raw.Images {
		if !l.labels(in, 1) {
			continue
		}
		name := in.name()
		if first, ok := seen[name]; ok {
			l.err(in.pos, "the first is at "+first.String(), "kernel %q has an image for %q already", k.Name, name)
			continue
		}
		seen[name] = in.pos
		l.imageLabel(in)
		k.Images = append(k.Images, Image{For: name, Image: l.image(in), Pos: in.pos})
	}
	l.lab.Kernels = append(l.lab.Kernels, k)
}

// imageLabel checks that an image is for an architecture or a target.
func (l *loader) imageLabel(in *block) {
	valid, _ := archs()
	name := in.name()
	if contains(valid, name) || l.decl["target"][name] != nil {
		return
	}
	detail := didYouMeanArch(name)
	if near := nearest(name, keys(l.decl["target"])); near != "" && !strings.HasPrefix(detail, "did") {
		detail = "did you mean \"" + near + "\"?"
	}
	l.err(in.labelPos[0], detail, "%q is neither an architecture (GOARCH) nor a target", name)
}

// image decodes an image block, with absolute paths. A file that is missing is
// a warning: an example or another lab's kernels may be without their images.
func (l *loader) image(in *block) targets.Image {
	var i targets.Image
	l.decode(in, in.body, inBlock("image"), false, &i)
	v := reflect.ValueOf(&i).Elem()
	for _, f := range fieldsOf(v.Type()) {
		a := in.body.attrs[f.name]
		if f.name == "cmdline" || a == nil || !a.ok {
			continue
		}
		var files []string
		for _, p := range strings.Split(v.FieldByIndex(f.index).String(), ",") {
			p = l.absolute(strings.TrimSpace(p))
			if p == "" {
				continue
			}
			files = append(files, p)
			if _, err := os.Stat(p); err != nil {
				l.later(a.valuePos(), "image file %s: %v", p, reason(err))
			}
		}
		v.FieldByIndex(f.index).SetString(strings.Join(files, ","))
	}
	return i
}
