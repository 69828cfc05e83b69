package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"kernsweep/targets"
	"kernsweep/workloads"
)

// controller is the peer that is no target.
const controller = "controller"

// minSample is the shortest interval of samples: one costs a small device some
// milliseconds.
const minSample = 100 * time.Millisecond

// workloadBlock is what config itself takes from a workload block; the rest
// belongs to the kind and to workloads.Common.
type workloadBlock struct {
	Note string `hcl:"note,optional" doc:"free text"`
}

func (l *loader) addWorkload(b *block) {
	kind := b.labels[0]
	make := l.drivers.workloads[kind]
	if make == nil {
		valid := keys(l.drivers.workloads)
		l.err(b.labelPos[0], didYouMean(kind, valid, "there are "+quoted(valid)), "there is no workload kind %q", kind)
		return
	}
	w := &Workload{Kind: kind, Name: b.name(), Pos: b.pos}
	base := &body{attrs: b.body.attrs}
	var scenarios []*block
	for _, in := range b.body.blocks {
		if in.kind == "scenario" {
			scenarios = append(scenarios, in)
		} else {
			base.blocks = append(base.blocks, in)
		}
	}
	if len(scenarios) == 0 {
		scenarios = []*block{{kind: "scenario", labels: []string{"default"}, pos: b.pos, labelPos: []Pos{b.pos}, body: &body{}}}
	}
	seen := map[string]Pos{}
	for _, in := range scenarios {
		if !l.labels(in, 1) {
			continue
		}
		if first, ok := seen[in.name()]; ok {
			l.err(in.pos, "the first is at "+first.String(), "workload %s has a scenario %q already", w.ID(), in.name())
			continue
		}
		seen[in.name()] = in.pos
		w.Scenarios = append(w.Scenarios, l.scenario(w, in, merge(base, in.body), make()))
	}
	l.lab.Workloads = append(l.lab.Workloads, w)
}

// scenario decodes the merged attributes into the kind's own struct and into
// what every workload takes.
func (l *loader) scenario(w *Workload, in *block, m *body, run workloads.Workload) Scenario {
	if v := reflect.ValueOf(run); v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: the workload kind %q is no pointer to a struct", w.Kind))
	}
	s := Scenario{Name: in.name(), Common: workloads.Common{Peer: controller, Sample: time.Second}, Run: run, Pos: in.pos}
	var own workloadBlock
	place := &block{kind: "workload", pos: in.pos}
	ok := l.decode(place, m, fmt.Sprintf("in a workload %q block", w.Kind), false, run, &s.Common, &own)
	w.Note = own.Note
	if p := m.attrs["peer"]; p != nil && p.ok && s.Common.Peer != controller && l.decl["target"][s.Common.Peer] == nil {
		l.value(p.valuePos(), "write \"controller\" or target.NAME", "%q is no peer", s.Common.Peer)
		return s
	}
	if s.Common.Sample > 0 && s.Common.Sample < minSample {
		l.atAttr(m, "sample", fmt.Sprintf("must be \"0s\" or at least %q: sampling itself loads the target", minSample))
	}
	for _, p := range slices.Sorted(maps.Keys(s.Common.Knobs)) {
		if err := targets.CheckKnob(p); err != nil {
			l.atAttr(m, "knobs", "names no knob: "+err.Error())
		}
	}
	if ok {
		l.check(in.pos, m, run)
	}
	return s
}
