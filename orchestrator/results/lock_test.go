package results

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func quick(owner string) opening {
	return opening{owner: owner, now: time.Now, beat: 50 * time.Millisecond}
}

// plant leaves the owner file of a holder that is not this process.
func plant(t *testing.T, dir string, change func(*Holder)) {
	t.Helper()
	h := thisHolder("alex", t0)
	h.Host, h.BootID, h.BeatMS = "elsewhere.example", "another", 50
	change(&h)
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ownerFile), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSecondWriterIsRefusedByName(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.OpenWriter("alex")
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Holder.Owner != "kim" || locked.Holder.PID != os.Getpid() ||
		!strings.Contains(err.Error(), "being written by kim, process ") {
		t.Fatal(err)
	}
	if j := journal(t, run); len(j.Records) != 0 {
		t.Errorf("the refused writer wrote: %+v", j.Records)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w, err = run.OpenWriter("alex"); err != nil {
		t.Fatalf("after a clean end: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(run.Dir(), "journal.owner*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
}

// Where the file system cannot be on two machines, a free flock proves that the
// holder is gone, whatever its hostname was (a container has its own).
func TestFreeLockOnALocalFileSystemIsProof(t *testing.T) {
	for name, change := range map[string]func(*Holder){
		"another hostname, same start of the machine": func(h *Holder) { h.BootID = thisHolder("", t0).BootID },
		"an earlier start of the machine":             func(h *Holder) { h.Host = thisHolder("", t0).Host },
		"a copied run directory":                      func(h *Holder) { h.BeatMS = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t)
			plant(t, run.Dir(), change)
			w, err := run.OpenWriter("kim")
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if j := journal(t, run); len(j.Records) != 1 || !strings.Contains(j.Records[0].Note, "taken over from alex, process") {
				t.Errorf("%+v", j.Records)
			}
		})
	}
}

// sharedLock is a lock on a file system without flock that others may have mounted.
func sharedLock(dir string, o opening) *runLock {
	me := thisHolder(o.owner, o.now())
	me.BeatMS = o.beat.Milliseconds()
	raw, _ := json.Marshal(me)
	return &runLock{dir: dir, mine: claim{Holder: me, raw: raw, path: filepath.Join(dir, ownerFile)}}
}

func TestHolderOnAnotherMachineIsWatched(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Holder)
		renews bool
		want   string // "" = taken over
	}{
		{"silent", func(*Holder) {}, false, ""},
		{"renews", func(*Holder) {}, true, "it lives, as its claim is being renewed"},
		{"of a version that does not renew", func(h *Holder) { h.BeatMS = 0 }, false, "if it does not, remove "},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newRun(t)
			plant(t, run.Dir(), c.change)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				if c.renews {
					there, err := readClaim(filepath.Join(run.Dir(), ownerFile))
					if err != nil {
						t.Error(err)
					}
					(&runLock{dir: run.Dir(), mine: there}).renew(20*time.Millisecond, stop)
				}
			}()
			l := sharedLock(run.Dir(), quick("kim"))
			err := l.own(ctx)
			close(stop)
			<-stopped
			var locked *LockedError
			switch {
			case c.want == "" && (err != nil || l.held() != nil || !strings.Contains(strings.Join(l.notes, ""), "taken over from alex")):
				t.Errorf("%v, notes %q", err, l.notes)
			case c.want != "" && (!errors.As(err, &locked) || !strings.Contains(err.Error(), c.want)):
				t.Error(err)
			}
		})
	}
}

// Ctrl-C ends the wait, and the person is told what is waited for.
func TestWatchingEndsByContext(t *testing.T) {
	run := newRun(t)
	plant(t, run.Dir(), func(h *Holder) { h.BeatMS = 60_000 })
	ctx, cancel := context.WithCancel(t.Context())
	l := sharedLock(run.Dir(), quick("kim"))
	var said string
	l.say = func(s string) { said = s; cancel() }
	if err := l.own(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(said, "looking for up to 3m0s") {
		t.Errorf("%v; said %q", err, said)
	}
}

// A machine that slept, and was given up for dead, writes nothing when it wakes.
func TestADisplacedWriterStops(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	plant(t, run.Dir(), func(*Holder) {})
	_, err = w.Append(t.Context(), Record{Kind: KindNote})
	if err == nil || !strings.Contains(err.Error(), "taken over by alex, process") {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := readClaim(filepath.Join(run.Dir(), ownerFile)); err != nil || c.Owner != "alex" {
		t.Errorf("the other's claim was removed: %+v %v", c, err)
	}
	if j := journal(t, run); len(j.Records) != 0 {
		t.Errorf("%+v", j.Records)
	}
}

func TestUnreadableOwnerFileIsNobodys(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "NUL": strings.Repeat("\x00", 200), "garbage": "{", "another JSON": "[]"} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t)
			if err := os.WriteFile(filepath.Join(run.Dir(), ownerFile), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			w, err := run.OpenWriter("kim")
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Whoever died while taking over, or while giving free, is displaced like any other.
func TestChainOfDeadHolders(t *testing.T) {
	run := newRun(t)
	dead := func(path string) claim {
		h := thisHolder("dead", t0)
		h.Start = "1"
		b, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := readClaim(path)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := dead(filepath.Join(run.Dir(), ownerFile))
	second := dead(first.place())
	if err := os.Link(second.path, second.place()); err != nil { // as release does
		t.Fatal(err)
	}
	l := sharedLock(run.Dir(), quick("kim"))
	if err := l.own(t.Context()); err != nil || l.held() != nil {
		t.Fatal(err, l.held())
	}
	left, err := filepath.Glob(filepath.Join(run.Dir(), "journal.owner*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left: %q %v", left, err)
	}
}

func TestHeldBy(t *testing.T) {
	run := newRun(t)
	if _, held := run.HeldBy(); held {
		t.Error("a run without a writer is held")
	}
	plant(t, run.Dir(), func(*Holder) {})
	if h, held := run.HeldBy(); !held || h.Here() {
		t.Errorf("a holder on another machine: %v, here %v", held, h.Here())
	}
	plant(t, run.Dir(), func(h *Holder) { h.Host = thisHolder("", t0).Host })
	if _, held := run.HeldBy(); held {
		t.Error("a holder from before this machine's start still holds")
	}
	plant(t, run.Dir(), func(h *Holder) { h.BootID, h.Host = thisHolder("", t0).BootID, "a-container" })
	if h, held := run.HeldBy(); !held || !h.Here() {
		t.Error("this very process, under another hostname, does not hold")
	}
}

func TestHolderOfAReusedPIDIsDead(t *testing.T) {
	me := thisHolder("kim", t0)
	if !me.alive() {
		t.Error("this process counts as dead")
	}
	me.Start = "1"
	if me.alive() {
		t.Error("a dead holder counts as alive")
	}
}
