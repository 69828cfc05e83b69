package results

import (
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Of fifty controllers that resume one run at the same moment exactly one wins,
// with flock, without, and without hard links too; after a clean end and after a kill.
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
	bare, server := faulty(t)
	server.fail(t, syscall.EPERM)
	worst, err := Create(bare, "s", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]*Run{"flock": disk, "no flock": shared, "no flock, no links": worst} {
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
		if byFile := strings.Contains(all, "on fuse, where flock does not work: it is locked by journal.owner only"); byFile == (name == "flock") {
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

// Takers that are killed while they take over, on a file system without flock:
// of those that live never two win, and the run can always be had afterwards.
func TestTakersThatDie(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir, _ := faulty(t)
	run, err := Create(dir, "s", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 6
	if os.Getenv("KERNSWEEP_LONG") != "" {
		rounds = 100
	}
	for round := range rounds {
		var all []*child
		for range 8 {
			all = append(all, startChild(t, "race", "JOURNAL_RUN="+run.Dir()))
		}
		for _, c := range all {
			c.line(t)
		}
		var kills []*time.Timer
		for i, c := range all {
			c.tell(t, "go")
			if i < 5 {
				kills = append(kills, time.AfterFunc(time.Duration(rand.IntN(12_000))*time.Microsecond, func() { _ = c.cmd.Process.Kill() }))
			}
		}
		won := 0
		for _, c := range all[5:] {
			if c.line(t) == "won" {
				won++
			}
		}
		if won > 1 {
			t.Fatalf("round %d: %d living writers", round, won)
		}
		for i, c := range all {
			if i < 5 {
				for c.out.Scan() {
				}
				_ = c.cmd.Wait() // killed
				kills[i].Stop()
				continue
			}
			c.end(t)
		}
		if round%3 == 0 { // the other rounds begin with whatever the dead left
			w, err := run.OpenWriter("kim")
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if j := journal(t, run); len(j.Notes) != 0 || len(j.Doubtful) != 0 {
		t.Errorf("%q", j.Notes)
	}
}
