package live

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// What is folded fits, loses no word and breaks none, and a command in it can be
// copied.
func TestFold(t *testing.T) {
	for _, line := range []string{
		"short",
		"kernsweep: ssh://root@127.0.0.1:40022 is in the file already: target plain (testbeds.hcl:595:1) leads to 127.0.0.1:40022; look at it with kernsweep target probe plain, or correct its address there",
		"run 20261201T023036Z-small-11e9: 6 ok, 1 invalid, 1 skipped by hand, 4 not tried; next: kernsweep resume 20261201T023036Z-small-11e9",
		"kernsweep: a target that a run measures now is left alone: a login would dist --anyway logs in all the-same",
		"kernsweep: malta is virtual: it exists while `kernsweep boot malta KERNEL` runs it; leave that open in another terminal, 世界 世界",
	} {
		got := Fold(line, 80, "  ")
		for _, l := range strings.Split(got, "\n") {
			if ansi.StringWidth(l) > 80 {
				t.Errorf("%d columns: %q", ansi.StringWidth(l), l)
			}
		}
		if !slices.Equal(strings.Fields(got), strings.Fields(line)) { // no word is torn, at its hyphen either
			t.Errorf("%q became %q", line, got)
		}
		for _, command := range []string{"kernsweep target probe plain", "kernsweep resume 20261201T023036Z-small-11e9", "kernsweep boot malta KERNEL"} {
			if strings.Contains(line, command) && !strings.Contains(got, command) {
				t.Errorf("the command is torn: %q", got)
			}
		}
	}
	if got := Fold("kernsweep: "+strings.Repeat("a", 100), 80, "  "); strings.Contains(strings.TrimPrefix(got, "kernsweep:"), "a\n") {
		t.Errorf("a word was broken: %q", got)
	}
}
