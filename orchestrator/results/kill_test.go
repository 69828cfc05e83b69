package results

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// kills is how often a writer is killed: 200 times with KERNSWEEP_LONG=1.
func kills() int {
	if os.Getenv("KERNSWEEP_LONG") != "" {
		return 200
	}
	return 25
}

// Killed by SIGKILL at random moments, a writer with four lanes loses no record
// that it acknowledged; none is there twice, the numbers go on, and each new
// writer notes that it took over.
func TestKill9AtRandomMoments(t *testing.T) {
	run := newRun(t)
	type key struct {
		lane string
		n    int
	}
	acked := map[key]int{}
	atWork := 0
	for round := range kills() {
		c := startChild(t, "lanes", "JOURNAL_RUN="+run.Dir())
		kill := func(within int) *time.Timer {
			return time.AfterFunc(time.Duration(rand.IntN(within))*time.Millisecond, func() { _ = c.cmd.Process.Kill() })
		}
		var stop *time.Timer
		if round%2 == 0 { // anywhere from its start on, or among its appends
			stop = kill(120)
		}
		said := 0
		for c.out.Scan() {
			if stop == nil {
				stop = kill(40)
			}
			var k key
			var seq int
			if _, err := fmt.Sscanf(c.out.Text(), "%s %d %d\n", &k.lane, &k.n, &seq); err != nil {
				continue // cut by the kill
			}
			if was, ok := acked[k]; ok {
				t.Fatalf("record %d of lane %s was acknowledged as %d and as %d", k.n, k.lane, was, seq)
			}
			acked[k] = seq
			said++
		}
		_ = c.cmd.Wait() // killed
		stop.Stop()
		if said > 0 {
			atWork++
		}
	}
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	j := journal(t, run)
	found := map[key]int{}
	double, lost, takeovers := 0, 0, 0
	for i, r := range j.Records {
		if r.Seq != i+1 {
			t.Fatalf("record %d stands at %d", r.Seq, i+1)
		}
		if _, ok := found[key{r.Lane, r.LaneSeq}]; ok && r.Lane != "" {
			double++
		}
		found[key{r.Lane, r.LaneSeq}] = r.Seq
		if strings.Contains(r.Note, "taken over from child, process") {
			takeovers++
		}
	}
	for k, seq := range acked {
		if found[k] != seq {
			lost++
		}
	}
	t.Logf("%d kills, %d of them at work: %d records acknowledged, %d on file, %d lost, %d double, %d takeovers noted",
		kills(), atWork, len(acked), len(j.Records), lost, double, takeovers)
	if lost+double > 0 || len(j.Notes) > 0 || len(j.Doubtful) > 0 || atWork < kills()/2 || takeovers < atWork {
		t.Errorf("notes %q, %d doubtful", j.Notes, len(j.Doubtful))
	}
}

// Readers look on while a writer works: never a note of damage, never half a
// record, never fewer than before.
func TestReadersOfALiveRun(t *testing.T) {
	run := newRun(t)
	c := startChild(t, "lanes", "JOURNAL_RUN="+run.Dir())
	c.line(t)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for c.out.Scan() {
		}
	}()
	before, reads := 0, 0
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); reads++ {
		s, err := run.State()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.Journal.Records); len(s.Journal.Notes) != 0 || len(s.Journal.Doubtful) != 0 || n < before {
			t.Fatalf("%d records after %d, notes %q", n, before, s.Journal.Notes)
		} else {
			before = n
		}
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-drained
	_ = c.cmd.Wait() // killed
	t.Logf("%d reads, %d records at the last", reads, before)
}

// A tail that is half written is no damage while its writer lives, and is once
// it is gone.
func TestHalfARecord(t *testing.T) {
	for _, tail := range []string{`{"seq":2,"ru`, strings.Repeat("\x00", 100)} {
		run := newRun(t)
		w, err := run.OpenWriter("kim")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(t.Context(), Record{Kind: KindRun, Note: NoteBegan}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.file.WriteString(tail); err != nil {
			t.Fatal(err)
		}
		if j := journal(t, run); len(j.Notes) != 0 || len(j.Records) != 1 {
			t.Errorf("while it is written: %q", j.Notes)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if j := journal(t, run); len(j.Notes) != 1 || len(j.Records) != 1 {
			t.Errorf("after its writer's end: %q", j.Notes)
		}
	}
}
