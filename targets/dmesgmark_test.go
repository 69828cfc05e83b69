package targets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A mark tells the same news as the log it was made of.
func TestMarkTellsTheSameNews(t *testing.T) {
	var long strings.Builder
	for i := range 300 {
		fmt.Fprintf(&long, "[%5d.%06d] line %d\n", i/10, i, i)
	}
	for name, text := range map[string]string{"long": long.String(), "short": "[    0.1] a\n[    0.2] b\n", "untimed": "a\nb\nc\n", "empty": ""} {
		before := KernelLog{Text: []byte(text), Taint: "0"}
		after := KernelLog{Text: []byte(text + "[ 5000.000001] WARNING: new\n[ 5000.000002] more\n"), Taint: "512"}
		want, got := after.Since(before), after.Since(ParseMark(before.Mark()))
		if !slices.Equal(want.New, got.New) || !slices.Equal(want.Signs, got.Signs) || got.TaintBefore != "0" || !slices.Equal(want.Notes, got.Notes) {
			t.Errorf("%s: the log says %+v, its mark %+v", name, want, got)
		}
	}
	missing := KernelLog{Missing: "dmesg exited 1:\nnot permitted"}
	if got := ParseMark(missing.Mark()); got.Missing != "dmesg exited 1: not permitted" {
		t.Errorf("missing became %q", got.Missing)
	}
	for _, odd := range []string{"", "taint 0", "\x00\x00", "taint 0\nfoo\n"} {
		if got := ParseMark([]byte(odd)); got.Missing == "" {
			t.Errorf("%q was taken for a mark: %+v", odd, got)
		}
	}
}
