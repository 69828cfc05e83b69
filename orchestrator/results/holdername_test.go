package results

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// Whoever holds a journal is named in one line that drives no terminal.
func TestHolderOfHostileName(t *testing.T) {
	run := newRun(t)
	evil := "kim\n== forged \x1b[2J\u202e\u009b\r"
	raw, err := json.Marshal(Holder{Owner: evil, Host: evil, PID: 7, BootID: "of another machine"})
	if err == nil {
		err = os.WriteFile(filepath.Join(run.Dir(), ownerFile), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, ok := run.HeldBy()
	if s := h.String(); !ok || !strings.Contains(s, "kim") || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%v %q", ok, s)
	}
}
