package config

import (
	"fmt"

	"kernsweep/orchestrator/notify"
)

// notify decodes a notify block: notify "KIND" { … } or notify "KIND" "NAME" { … }.
func (l *loader) notify(b *block, of *Sweep) {
	if len(b.labels) != 1 && !l.labels(b, 2) {
		return
	}
	kind := b.labels[0]
	make := l.drivers.notify[kind]
	if make == nil {
		valid := keys(l.drivers.notify)
		l.err(b.labelPos[0], didYouMean(kind, valid, "there are "+quoted(valid)), "there is no notify kind %q", kind)
		l.lintBody(b.body)
		return
	}
	n := notify.Block{Kind: kind, Driver: make()}
	if len(b.labels) == 2 {
		n.Name = b.labels[1]
	}
	for _, other := range of.Notify {
		if n.Name != "" && other.String() == n.String() {
			l.err(b.pos, "give it another name", "sweep %q has %s already", of.Name, n)
		}
	}
	var choice notify.Choice
	ok := l.decode(b, b.body, fmt.Sprintf("in a notify %q block", kind), false, n.Driver, &choice)
	if ok = l.check(b.pos, b.body, &choice) && ok; ok {
		l.check(b.pos, b.body, n.Driver)
	}
	n.On = choice.On
	of.Notify = append(of.Notify, n)
}
