package main

import (
	"slices"
	"strings"
	"testing"
)

// What is proposed exists, no word stands for two things, and none is a command.
func TestOtherWords(t *testing.T) {
	root := helpRoot()
	var seen []string
	for _, o := range otherWords() {
		for _, line := range strings.Split(o.do, " or ") {
			if c, rest, err := root.Find(strings.Fields(line)[1:]); err != nil || len(rest) > 0 || c == root {
				t.Errorf("there is no %q", line)
			}
		}
		for _, w := range o.words {
			if slices.Contains(seen, w) || child(root, w) != nil {
				t.Errorf("%q means something already", w)
			}
			seen = append(seen, w)
			err := wrongArgs(root, []string{w}, nil)
			if !strings.Contains(err.Error(), "did you mean "+o.do+"?") {
				t.Errorf("%s: %v", w, err)
			}
		}
	}
	target := child(root, "target")
	for _, w := range []string{"rm", "show", "ls", "rehearse", "new"} {
		if err := wrongArgs(target, []string{w}, nil); !strings.Contains(err.Error(), "kernsweep ") || strings.Contains(err.Error(), "--help") {
			t.Errorf("target %s: %v", w, err)
		}
		if child(target, w) != nil {
			t.Errorf("target %s is a command", w)
		}
	}
}
