package targets

import (
	"strings"
	"testing"
)

// How fast a console's lines are judged: a dump of megabytes must not delay the
// verdict that stands at its end.
func BenchmarkConsoleLines(b *testing.B) {
	var lines []string
	n := 0
	for _, tr := range transcripts(b) {
		if tr.stage == "" {
			for _, l := range strings.Split(tr.text, "\r\n") {
				lines = append(lines, l)
				n += len(l)
			}
		}
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		var h bootHistory
		for _, l := range lines {
			h.read(l)
		}
	}
}
