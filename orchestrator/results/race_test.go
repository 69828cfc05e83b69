package results

import (
	"strings"
	"testing"
)

// Of fifty controllers that resume one run at the same moment exactly one wins,
// with flock and without, after a clean end and after a kill.
func TestOneOfFiftyWins(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	disk, err := Create(t.TempDir(), "s", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := faulty(t)
	shared, err := Create(dir, "s", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]*Run{"flock": disk, "no flock": shared} {
		for _, killed := range []bool{false, true} {
			if killed {
				c := startChild(t, "race", "JOURNAL_RUN="+run.Dir())
				c.line(t)
				c.tell(t, "go")
				if s := c.line(t); s != "won" {
					t.Fatal(s)
				}
				if err := c.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = c.cmd.Wait() // killed
			}
			won := race(t, run.Dir())
			if won != 1 {
				t.Errorf("%s, holder killed %v: %d of 50 won", name, killed, won)
			}
		}
		j := journal(t, run)
		if len(j.Notes) != 0 || len(j.Doubtful) != 0 {
			t.Errorf("%s: %q", name, j.Notes)
		}
		all := ""
		for _, r := range j.Records {
			all += r.Note + "\n"
		}
		if n := strings.Count(all, "taken over from child"); n != 1 {
			t.Errorf("%s: %d takeovers noted: %s", name, n, all)
		}
		if byFile := strings.Contains(all, "on fuse, where flock does not work: it is locked by journal.owner only"); byFile != (name == "no flock") {
			t.Errorf("%s: %s", name, all)
		}
	}
}

func race(t *testing.T, dir string) (won int) {
	t.Helper()
	var all []*child
	for range 50 {
		all = append(all, startChild(t, "race", "JOURNAL_RUN="+dir))
	}
	for _, c := range all {
		c.line(t)
	}
	for _, c := range all {
		c.tell(t, "go")
	}
	for _, c := range all {
		switch s := c.line(t); {
		case s == "won":
			won++
		case !strings.Contains(s, "is being written by"):
			t.Error(s)
		}
	}
	for _, c := range all {
		c.end(t)
	}
	return won
}
