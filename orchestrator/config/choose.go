package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Choose finds the targets that people name, in the order of the files and each
// once: by name ("ar2317"), glob ("ar*"), class ("class:router"), label
// ("label:rack2"), "all", or several of them with commas between. A "!" before
// one takes its targets away again ("all,!ar2317"). What names nothing is an
// error that says what there is.
func (l *Lab) Choose(names ...string) ([]*Target, error) {
	chosen := map[*Target]bool{}
	for _, list := range names {
		for word := range strings.SplitSeq(list, ",") {
			word = strings.TrimSpace(word)
			pattern, not := strings.CutPrefix(word, "!")
			hits, err := l.matching(pattern)
			if err != nil {
				return nil, err
			}
			for _, t := range hits {
				chosen[t] = !not
			}
		}
	}
	var out []*Target
	for _, t := range l.Targets {
		if chosen[t] {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s chooses no target", strings.Join(names, " "))
	}
	return out, nil
}

func (l *Lab) matching(pattern string) ([]*Target, error) {
	match := func(t *Target) bool { return pattern == "all" }
	kind, name, special := strings.Cut(pattern, ":")
	switch {
	case special && kind == "class":
		match = func(t *Target) bool { return glob(name, t.Class) }
	case special && kind == "label":
		match = func(t *Target) bool {
			return slices.ContainsFunc(t.Labels, func(s string) bool { return glob(name, s) })
		}
	case special:
		return nil, fmt.Errorf("%q: write NAME, a glob, class:NAME, label:NAME or all", pattern)
	case l.Target(pattern) != nil || pattern != "all":
		match = func(t *Target) bool { return glob(pattern, t.Name) }
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("%q is no pattern: %w", pattern, err)
	}
	var hits []*Target
	for _, t := range l.Targets {
		if match(t) {
			hits = append(hits, t)
		}
	}
	if len(hits) == 0 {
		return nil, fmt.Errorf("no target %q; there are %s", pattern, l.choices())
	}
	return hits, nil
}

// glob is a shell's pattern; an empty name matches nothing.
func glob(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return ok && err == nil && name != ""
}

// choices lists what Choose knows.
func (l *Lab) choices() string {
	var names, classes, labels []string
	for _, t := range l.Targets {
		names = append(names, t.Name)
		if c := "class:" + t.Class; t.Class != "" && !slices.Contains(classes, c) {
			classes = append(classes, c)
		}
		for _, s := range t.Labels {
			if !slices.Contains(labels, "label:"+s) {
				labels = append(labels, "label:"+s)
			}
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(slices.Concat(names, classes, labels), ", ")
}
