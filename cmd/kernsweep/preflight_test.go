package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"kernsweep/orchestrator"
)

// A preflight ends with exactly one of three things.
func TestLeave(t *testing.T) {
	warn := orchestrator.Finding{Target: "ar2317", Level: orchestrator.Warning}
	bad := orchestrator.Finding{Target: "box", Level: orchestrator.Unsafe}
	for want, c := range map[string]struct {
		found  []orchestrator.Finding
		things int
	}{
		"safe to leave": {[]orchestrator.Finding{{Target: "box", Level: orchestrator.Fine}}, 0},
		"safe to leave, but: 2 things to look at, above":                     {nil, 2},
		"safe to leave, but: 1 warning (ar2317)":                             {[]orchestrator.Finding{warn}, 0},
		"safe to leave, but: 2 warnings (ar2317); 1 thing to look at, above": {[]orchestrator.Finding{warn, warn}, 1},
		"safe to leave, but: 1 warning":                                      {[]orchestrator.Finding{{Level: orchestrator.Warning}}, 0},
		"NOT safe to leave: 1 thing":                                         {[]orchestrator.Finding{warn, bad}, 3},
		"NOT safe to leave: 2 things":                                        {[]orchestrator.Finding{bad, bad}, 0},
	} {
		if got := leave(c.found, c.things); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A finding is folded at 80 characters, but for a command, which is to be pasted;
// no name or output of a target drives the terminal.
func TestFindingsFitTheScreen(t *testing.T) {
	var b strings.Builder
	writeFinding(&b, orchestrator.Finding{Target: "a_target_with_a_rather_long_name", Level: orchestrator.Unsafe,
		Text: "not reached: " + strings.Repeat("words \x1b[31m ", 30), Do: strings.Repeat("do this, ", 20), Command: "kernsweep " + strings.Repeat("x", 90)})
	if strings.ContainsRune(b.String(), '\x1b') {
		t.Errorf("%q", b.String())
	}
	for _, l := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(l) > screenWidth && !strings.Contains(l, "kernsweep xxx") {
			t.Errorf("too wide: %q", l)
		}
	}
}
