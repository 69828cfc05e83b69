package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestInert(t *testing.T) {
	text := "a\u202eb\u009b31m\x7f\u2066\x1b[2J ü ± 日本 " + strings.Repeat("x", 100)
	var out bytes.Buffer
	if err := json.NewEncoder(Inert(&out)).Encode(map[string]string{text: text}); err != nil {
		t.Fatal(err)
	}
	if i := bytes.IndexFunc(out.Bytes(), func(r rune) bool { return r != '\n' && (r < ' ' || driving(r)) }); i >= 0 {
		t.Errorf("a terminal would obey %q", out.Bytes()[i:min(i+8, out.Len())])
	}
	back := map[string]string{}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[text] != text {
		t.Errorf("%v: %q", err, back)
	}
	x := newIndenter(1)
	if b, err := x.text([]string{text}); err != nil || bytes.IndexFunc(b, driving) >= 0 {
		t.Errorf("%q, %v", b, err)
	}
}
