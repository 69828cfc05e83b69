package targets

import (
	"os"
	"path/filepath"
	"testing"
)

// A knob that a daemon set meanwhile is named with both values; one that is gone
// is left to Restore.
func TestDriftedKnob(t *testing.T) {
	f := filepath.Join(t.TempDir(), "knob")
	k := Knob{Path: f, Old: "1", Got: "5", Also: []Knob{{Path: f + "-gone", Got: "5"}}}
	for text, want := range map[string]string{"5\n": "", "6\n": f + " was set to 5 and is 6 at the end"} {
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := k.Drifted(t.Context(), shellConn{[]string{"sh"}})
		if want == "" && got != nil || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := (Knob{}).Drifted(t.Context(), shellConn{[]string{"sh"}}); got != nil {
		t.Errorf("no knob: %q", got)
	}
}
