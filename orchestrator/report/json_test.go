package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The streamed text is byte for byte what encoding/json prints of the whole.
func TestJSONIsThatOfTheWhole(t *testing.T) {
	for _, run := range []func(*testing.T) *source{
		func(t *testing.T) *source { return loaded(t, hostileRun(t)) },
		func(t *testing.T) *source { return loaded(t, benchRun(t)) },
		func(t *testing.T) *source { return loaded(t, newLab(t, "empty").done()) },
	} {
		src := run(t)
		var got, want bytes.Buffer
		if err := writeJSON(&got, src, Options{}); err != nil {
			t.Fatal(err)
		}
		enc := json.NewEncoder(Inert(&want))
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(src.doc); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Error(diff)
		}
	}
}
