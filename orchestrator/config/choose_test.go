package config

import (
	"slices"
	"strings"
	"testing"

	"kernsweep/targets"
)

func choosable(names ...string) *Lab {
	lab := &Lab{}
	for _, n := range names {
		name, class, _ := strings.Cut(n, "/")
		class, labels, _ := strings.Cut(class, "/")
		t := &Target{Target: targets.Target{Name: name}, Class: class}
		if labels != "" {
			t.Labels = strings.Split(labels, "+")
		}
		lab.Targets = append(lab.Targets, t)
	}
	return lab
}

func TestChoose(t *testing.T) {
	lab := choosable("ar2317/router/rack1", "wl500/router/rack1+slow", "desk//rack2", "x86/guest", "x64/guest")
	for _, c := range []struct{ words, want string }{ // want: names, or a part of the error
		{"desk", "desk"},
		{"x86 ar2317", "ar2317 x86"}, // in the order of the file
		{"desk,desk desk", "desk"},
		{"x*", "x86 x64"},
		{"x[!8]*", "x64"},
		{"?????", "wl500"},
		{"class:router", "ar2317 wl500"},
		{"class:*", "ar2317 wl500 x86 x64"},
		{"label:rack1", "ar2317 wl500"},
		{"label:rack?", "ar2317 wl500 desk"},
		{"all", "ar2317 wl500 desk x86 x64"},
		{"all,!desk", "ar2317 wl500 x86 x64"},
		{"all !class:guest !slow-one", `no target "slow-one"`},
		{"all, !class:guest", "ar2317 wl500 desk"},
		{"label:rack1,!label:slow", "ar2317"},
		{"all,!all", "chooses no target"},
		{"!desk", "chooses no target"},
		{"all,!desk,desk", "ar2317 wl500 desk x86 x64"},
		{"Desk", `no target "Desk"; there are ar2317, wl500, desk, x86, x64, class:router, class:guest, label:rack1, label:slow, label:rack2`},
		{"class:", `no target "class:"`},
		{"class:none", `no target "class:none"`},
		{"label:", `no target "label:"`},
		{"rack:1", "write NAME, a glob, class:NAME, label:NAME or all"},
		{"[", `"[" is no pattern`},
		{"label:[", `"label:[" is no pattern`},
		{"", `no target ""`},
		{"desk,", `no target ""`},
		{"!", `no target ""`},
		{"../desk", `no target "../desk"`},
	} {
		list, err := lab.Choose(strings.Fields(strings.ReplaceAll(c.words, ", ", ","))...)
		if c.words == "" {
			list, err = lab.Choose("")
		}
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: %v, want %s", c.words, err, c.want)
			}
			continue
		}
		var got []string
		for _, t := range list {
			got = append(got, t.Name)
		}
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: %s, want %s", c.words, got, c.want)
		}
	}
}

// A target that somebody named "all" stays reachable, and so do the others.
func TestChooseATargetNamedAll(t *testing.T) {
	lab := choosable("all", "b")
	for words, want := range map[string]int{"all": 1, "*": 2, "*,!all": 1} {
		if list, err := lab.Choose(words); err != nil || len(list) != want {
			t.Errorf("%s: %d targets, %v", words, len(list), err)
		}
	}
	if _, err := (&Lab{}).Choose("all"); err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Error(err)
	}
}
