package live

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// A reason stands once above the lanes, a line is torn at no word, and a record
// that is worth no line makes none.
func TestScreenSaysAReasonOnce(t *testing.T) {
	var out bytes.Buffer
	tr := NewTracker(at(0), []Lane{{Name: "a", Trials: 4, Estimate: time.Minute}})
	s := NewScreen(&out, tr, func() int { return 60 }, func() time.Time { return at(5) })
	const why = "connection lost: the machine went down, or the network broke"
	s.Observe(judged("a", 1, 1, results.Lost, why))
	s.Observe(results.Record{Lane: "a", At: at(2), Kind: results.KindNote, Note: "infrastructure failure 1 of 3: " + why})
	ended := judged("a", 2, 1, results.Failed, "killed")
	ended.Kind = results.KindEnded
	s.Observe(ended)
	s.Observe(judged("a", 3, 2, results.Skipped, "nobody is there"))
	s.Observe(judged("a", 3, 3, results.Skipped, "nobody is there"))
	s.Close()
	var above []string
	for _, drawn := range strings.Split(out.String(), "\x1b[J") {
		if said, _, ok := strings.Cut(drawn, "a      "); ok && said != "" {
			above = append(above, said)
		}
	}
	if got := strings.Join(above, ""); strings.Count(got, "went") != 1 || strings.Count(got, "as above") != 1 || strings.Count(got, "nobody is there") != 1 {
		t.Errorf("above the lanes stands %q", got)
	} else if strings.Count(got, "machine\n") != 1 && strings.Count(got, "the\n") != 1 {
		t.Errorf("words are torn: %q", got)
	}
	for _, l := range strings.Split(out.String(), "\n") {
		if len(l) == len("15:04:05 ") && strings.HasSuffix(l, " ") {
			t.Errorf("a line without a word: %q", l)
		}
	}
}
