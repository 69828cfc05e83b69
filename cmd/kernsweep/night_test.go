package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// How often the controller is killed, and how many labs share the work.
const (
	nightLabs   = 4
	killsAtMost = 3 // of one run
	killSeconds = 45
	killsQuick  = 25
	killsLong   = 120

	startUp = 150 * time.Millisecond // of a controller, until it boots its first target
)

// killCounts are what the kill test found.
type killCounts struct {
	sync.Mutex
	nightCounts
	began        time.Time
	runs, kills  int
	early        int // killed before there was a run
	resumedTwice int // the resume was killed too
}

// more says whether another run is to be killed, and counts it.
func (k *killCounts) more(long bool) (number int, ok bool) {
	k.Lock()
	defer k.Unlock()
	switch {
	case long && k.runs >= killsLong,
		!long && k.runs >= killsQuick && time.Since(k.began) > killSeconds*time.Second:
		return 0, false
	}
	k.runs++
	return k.runs, true
}

// TestKilledController kills the built program at random moments of runs over a
// fake lab, and resumes it: nothing is lost, nothing counts twice, nothing stays.
func TestKilledController(t *testing.T) {
	program := build(t)
	long := os.Getenv("KERNSWEEP_LONG") != ""
	k := &killCounts{began: time.Now()}
	var wg sync.WaitGroup
	for i := range nightLabs {
		wg.Go(func() {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				n := newNight(t, program, 2, 2, 1)
				length, records := n.undisturbed(t)
				for !t.Failed() {
					number, ok := k.more(long)
					if !ok {
						return
					}
					n.killed(t, k, uint64(number), length, records)
				}
			})
		})
	}
	wg.Wait()
	t.Logf("%d runs killed %d times in %s: before there was a run %d, resume killed too %d; lost %d, duplicated %d, held %d, left on targets %d, left on the controller %d; %d trials adopted or kept, %d executions repeated",
		k.runs, k.kills, time.Since(k.began).Round(time.Second), k.early, k.resumedTwice, k.lost, k.duplicated, k.held, k.onTargets, k.orphans, k.trials, k.repeated)
}

// undisturbed is a run without a fault: how long it takes and how many records
// it writes.
func (n *night) undisturbed(t *testing.T) (time.Duration, int) {
	t.Helper()
	p := newPlace(t)
	if err := n.lab.Forget(); err != nil {
		t.Fatal(err)
	}
	c := n.start(t, p, "run", "night")
	if status := c.wait(t); status != 0 {
		t.Fatalf("the undisturbed run ends with status %d:\n%s", status, c.err.String())
	}
	length := time.Since(c.began)
	n.counts(t, p).check(t, "undisturbed")
	return length, p.records()
}

// killed is one run that is killed once or more often, and resumed to its end.
func (n *night) killed(t *testing.T, k *killCounts, seed uint64, length time.Duration, records int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 4))
	p := newPlace(t)
	if err := n.lab.Forget(); err != nil {
		t.Fatal(err)
	}
	story := []string{fmt.Sprintf("seed %d", seed)}
	var before []byte
	for kills := 0; ; {
		args := []string{"run", "night"}
		if p.run(t) != nil {
			args = []string{"resume", "latest"}
		}
		c := n.start(t, p, args...)
		moment, at := time.Duration(r.Int64N(int64(length))), 0
		switch r.IntN(6) {
		case 0:
			moment = time.Duration(r.Int64N(int64(startUp)))
		case 1, 2, 3:
			moment, at = nightLimit, p.records()+1+r.IntN(records)
		}
		if kills < 1 || kills < killsAtMost && r.IntN(2) == 0 {
			if c.killAt(p, moment, at) {
				kills++
				story = append(story, fmt.Sprintf("%s killed after %s at %d records", args[0], time.Since(c.began).Round(time.Millisecond), p.records()))
				k.Lock()
				k.kills++
				if p.run(t) == nil {
					k.early++
				}
				if kills == 2 {
					k.resumedTwice++
				}
				k.Unlock()
				before = n.grown(t, p, before, story)
				continue
			}
		}
		status := c.wait(t)
		story = append(story, fmt.Sprintf("%s ended with %d after %s", args[0], status, time.Since(c.began).Round(time.Millisecond)))
		n.grown(t, p, before, story)
		if status != 0 {
			t.Errorf("%s:\n%s", strings.Join(story, "; "), c.err.String())
		}
		break
	}
	found := n.counts(t, p)
	found.check(t, strings.Join(story, "; "))
	k.Lock()
	defer k.Unlock()
	k.add(found)
}

// grown checks that the journal holds what it held before, and returns it.
func (n *night) grown(t *testing.T, p place, before []byte, story []string) []byte {
	t.Helper()
	r := p.run(t)
	if r == nil {
		return nil
	}
	now, err := os.ReadFile(r.Dir() + "/journal.jsonl")
	if err != nil {
		return nil // killed before its first record
	}
	now = now[:bytes.LastIndexByte(now, '\n')+1] // without a torn tail
	if !bytes.HasPrefix(now, before) {
		t.Errorf("%s: the journal's earlier records are not there any more", strings.Join(story, "; "))
	}
	return now
}
