package config

import (
	"reflect"
	"sort"

	"kernsweep/orchestrator/notify"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// placesOf says in which blocks an attribute is valid, for "does not belong
// here" messages.
func (l *loader) placesOf(name string) []string {
	if l.places == nil {
		l.places = map[string][]string{}
		for place, attrs := range l.schema() {
			for _, a := range attrs {
				l.places[a] = append(l.places[a], place)
			}
		}
		for _, list := range l.places {
			sort.Strings(list)
		}
	}
	return l.places[name]
}

// validIn lists the attributes and blocks of a top-level kind of block.
func (l *loader) validIn(kind string) []string { return l.schema()[kind] }

// schema lists the attributes of each kind of block, made once: a file may have
// thousands of unknown blocks.
func (l *loader) schema() map[string][]string {
	if l.kinds != nil {
		return l.kinds
	}
	m := map[string][]string{
		"target":   names(reflect.TypeOf(targetBlock{})),
		"class":    names(reflect.TypeOf(targetBlock{})),
		"ssh":      names(reflect.TypeOf(targets.SSH{})),
		"network":  names(reflect.TypeOf(targets.Network{})),
		"timeouts": names(reflect.TypeOf(targets.Timeouts{})),
		"kernel":   names(reflect.TypeOf(kernelBlock{})),
		"image":    names(reflect.TypeOf(targets.Image{})),
		"sweep":    names(reflect.TypeOf(sweepBlock{})),
		"matrix":   names(reflect.TypeOf(matrixBlock{})),
		"variable": names(reflect.TypeOf(variableBlock{})),
		"workload": append(names(reflect.TypeOf(workloads.Common{})), names(reflect.TypeOf(workloadBlock{}))...),
	}
	for kind, make := range l.drivers.boot {
		m["boot \""+kind+"\""] = names(reflect.TypeOf(make()).Elem())
	}
	for kind, make := range l.drivers.power {
		m["power \""+kind+"\""] = names(reflect.TypeOf(make()).Elem())
	}
	for kind, make := range l.drivers.console {
		m["console \""+kind+"\""] = names(reflect.TypeOf(make()).Elem())
	}
	for kind, make := range l.drivers.notify {
		m["notify \""+kind+"\""] = append(names(reflect.TypeOf(make()).Elem()), names(reflect.TypeOf(notify.Choice{}))...)
	}
	for kind, make := range l.drivers.workloads {
		m["workload \""+kind+"\""] = names(reflect.TypeOf(make()).Elem())
	}
	l.kinds = m
	return m
}
