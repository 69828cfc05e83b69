package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"kernsweep/workloads"
)

// Orders of a sweep's boots.
const (
	Interleaved = "interleaved" // block after block, each with every kernel once
	Blocked     = "blocked"     // all boots of one kernel, then those of the next
)

// MinBoots of each kernel are made by boots = "auto", whatever the widths.
const MinBoots = 5

// MaxBoots bounds boots = "auto" unless max_boots does.
const MaxBoots = 15

// widest is the largest half width that can be asked for, as a share: an interval
// of twice that says nothing.
const widest = 0.5

// autoBoots stands for boots = "auto".
const autoBoots blocks = -1

// blocks is a number of blocks, or autoBoots.
type blocks int

// percent is a share (0.01), written "1%".
type percent float64

// percentText is what a percentage looks like: no sign, no exponent, at most one
// space.
var percentText = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?%$`)

func (c converter) blocks(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	switch {
	case v.Type() == cty.String && v.AsString() == "auto":
		to.SetInt(int64(autoBoots))
		return true
	case v.Type() != cty.Number:
		hint := ""
		if v.Type() == cty.String {
			hint = `write boots = 5 or boots = "auto"`
		}
		c.l.value(posOf(e.Range()), hint, `%q takes a whole number without quotes, or "auto"; this is %s`, c.attr.name, c.kind(v))
		return false
	case !c.integer(to, v, e):
		return false
	case to.Int() < 1 || to.Int() > maxCount:
		c.l.value(posOf(e.Range()), "", "%q must be from 1 to %d", c.attr.name, maxCount)
		return false
	}
	return true
}

func (c converter) percent(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	p := posOf(e.Range())
	switch {
	case v.Type() == cty.Number:
		c.l.value(p, `a share of 0.01 is written "1%"`, `%q needs a percent sign, write "1%%"`, c.attr.name)
		return false
	case v.Type() != cty.String:
		return c.wrong(e, v, `a percentage such as "1%"`)
	}
	m := percentText.FindStringSubmatch(v.AsString())
	if m == nil {
		c.l.value(p, `write a number and a percent sign, such as "1%" or "0.5%"`, "%q is no percentage", c.attr.name)
		return false
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if share := f / 100; err == nil && share > 0 && share <= widest {
		to.SetFloat(share)
		return true
	}
	c.l.value(p, "", "%q must be more than 0%% and at most %g%%", c.attr.name, math.Round(widest*100))
	return false
}

// design checks how a sweep measures, and fills it in.
func (l *loader) design(b *block, raw *sweepBlock, s *Sweep) {
	s.Boots, s.Order, s.HalfWidth, s.Effect = int(raw.Boots), raw.Order, float64(raw.HalfWidth), float64(raw.Effect)
	l.oneOf(b.body, "order", s.Order, Interleaved, Blocked)
	most := b.body.attrs["max_boots"]
	if raw.Boots == autoBoots {
		s.Auto, s.Boots = true, raw.MaxBoots
		if raw.MaxBoots < MinBoots || raw.MaxBoots > maxCount {
			l.atAttr(b.body, "max_boots", fmt.Sprintf("must be from %d to %d", MinBoots, maxCount))
		}
		if s.Order == Blocked {
			l.atAttr(b.body, "order", `must be "interleaved" with boots = "auto": after each block all kernels are looked at`)
		}
	} else if most != nil {
		l.value(most.pos, `write boots = "auto", or take it out`, `"max_boots" is of use only with boots = "auto"`)
	}
}

// primaries checks the declared primary comparisons of a sweep whose matrices are
// known. Workloads with mistakes of their own are left alone.
func (l *loader) primaries(b *block, declared []string, s *Sweep) {
	a := b.body.attrs["primary"]
	if a == nil {
		return
	}
	if t := a.val.Type(); a.ok && t.IsTupleType() && a.val.LengthInt() == 0 {
		l.atAttr(b.body, "primary", "is empty: leave it out for the primary metric of every workload")
	}
	var ids []string
	for _, m := range s.Matrices {
		for _, id := range m.Workloads {
			if !contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for i, text := range declared {
		p := posOf(element(a.expr, i).Range())
		if slices.Contains(declared[:i], text) {
			l.value(p, "take one of them out", "%q stands twice in the list", text)
			continue
		}
		l.primary(p, text, ids)
	}
	s.Primary = declared
}

func (l *loader) primary(p Pos, text string, ids []string) {
	cells, metric, named := strings.Cut(text, ":")
	w, scenarios, valid := l.meant(cells, ids)
	if w == nil {
		if len(valid) > 0 {
			l.value(p, didYouMean(cells, valid, "there are "+quoted(valid)), "primary names %q, which is no workload or scenario of this sweep", cells)
		}
		return
	}
	for _, sc := range scenarios {
		var have []string
		found, info, first := false, false, false
		for _, m := range sc.Run.Metrics() {
			first = first || m.Primary
			if m.Name == metric {
				found, info = true, m.Better == workloads.Informative
			}
			if m.Better != workloads.Informative {
				have = append(have, m.Name)
			}
		}
		switch {
		case !named && !first:
			l.value(p, "name one: "+quoted(prefixed(cells+":", have)), "workload %s has no primary metric of its own", w.ID())
		case named && info:
			l.value(p, didYouMean(metric, have, "compared are "+quoted(have)), "metric %q of %s is informative: it is never compared", metric, w.ID())
		case named && !found:
			l.value(p, didYouMean(metric, have, "it has "+quoted(have)), "%s has no metric %q", w.ID(), metric)
		}
	}
}

// meant are the workload and the scenarios that "KIND.NAME" or
// "KIND.NAME.SCENARIO" stands for, among ids; else what could be written. Both are
// empty where a workload has mistakes of its own.
func (l *loader) meant(text string, ids []string) (w *Workload, scenarios []Scenario, valid []string) {
	sound := true
	for _, id := range ids {
		w := l.lab.Workload(id)
		if w == nil {
			sound = false
			continue
		}
		if text == id {
			return w, w.Scenarios, nil
		}
		valid = append(valid, id)
		for _, sc := range w.Scenarios {
			if text == id+"."+sc.Name {
				return w, []Scenario{sc}, nil
			}
			if len(w.Scenarios) > 1 {
				valid = append(valid, id+"."+sc.Name)
			}
		}
	}
	if !sound {
		return nil, nil, nil
	}
	return nil, nil, valid
}

func prefixed(prefix string, list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = prefix + s
	}
	return out
}
