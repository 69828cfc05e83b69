package leases

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// However many controllers start in the same moment, exactly one gets a target,
// also where they name it differently and know only some of its keys in common.
func TestRace(t *testing.T) {
	for name, env := range map[string]string{"flock": "", "without flock": "LEASES_NOFLOCK=1"} {
		t.Run(name, func(t *testing.T) {
			const processes = 50
			dir := folder(t)
			var all []*child
			for i := range processes {
				all = append(all, start(t, dir, fmt.Sprintf("user%d", i), func(c *exec.Cmd) {
					if env != "" {
						c.Env = append(c.Env, env)
					}
				}))
			}
			keys := []string{"target:10.0.0.1:22 target:box:22", "target:10.0.0.1:22", "target:10.0.0.1:22 target:alias:22 target:fd00::1:22"}
			n, right := rounds(6, 100), 0
			for range n {
				var wg sync.WaitGroup
				answers := make([]string, processes)
				for i, c := range all {
					wg.Go(func() { answers[i] = c.ask("take " + keys[i%len(keys)]) })
				}
				wg.Wait()
				won := 0
				for i, a := range answers {
					switch {
					case a == "won":
						won++
					case !strings.HasPrefix(a, "no: target box is held by user"):
						t.Fatalf("process %d says %q", i, a)
					}
				}
				if won == 1 {
					right++
				}
				for i, c := range all {
					if answers[i] == "won" {
						c.want("release", "released <nil>")
					}
				}
			}
			t.Logf("%d processes: won exactly once %d of %d", processes, right, n)
			if right != n {
				t.Fail()
			}
			if left := leftovers(t, dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// leftovers are the files of a folder beside its lock.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Name() != mutexFile {
			out = append(out, e.Name())
		}
	}
	return out
}

// Whoever holds a lease and is killed loses it at once: to the next who asks, with
// a note for both.
func TestTakeoverFromTheDead(t *testing.T) {
	dir := folder(t)
	f, err := fastFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, right := rounds(10, 100), 0
	for i := range n {
		owner := fmt.Sprintf("alice%d", i)
		a := start(t, dir, owner)
		a.want("take a b", "won")
		if _, err := f.NewKeeper(Holder{Owner: "bob"}, nil).Take(t.Context(), []Want{{"b", "target box"}}, Options{}); err == nil {
			t.Fatal("taken from the living")
		}
		a.kill()
		begin := time.Now()
		l, err := f.NewKeeper(Holder{Owner: "bob"}, nil).Take(t.Context(), []Want{{"a", "target box"}, {"b", "target box"}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		over := l.Takeovers()
		var notes []string
		if err := f.Deliver(t.Context(), filepath.Join(dir, "..", "run-of-"+owner), func(s string) error { notes = append(notes, s); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(over) == 1 && strings.Contains(over[0].String(), owner) && strings.Contains(over[0].String(), "its process is gone") &&
			len(notes) == 1 && strings.Contains(notes[0], "taken over by bob") && time.Since(begin) < f.times.watch {
			right++
		} else {
			t.Errorf("after %v: %v, for the old run: %q", time.Since(begin), over, notes)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("takeovers from killed holders right %d of %d", right, n)
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A run that goes on after its controller was killed leaves nothing, also of what
// it has no use for any more; another run's is left to be taken over.
func TestLeftovers(t *testing.T) {
	dir := folder(t)
	a, b := start(t, dir, "alice"), start(t, dir, "bob")
	a.want("take box uses", "won")
	b.want("take other", "won")
	a.kill()
	b.kill()
	again := start(t, dir, "alice")
	again.want("take box", "won by takeover")
	again.want("release", "released <nil>")
	if left := leftovers(t, dir); len(left) != 1 || left[0] != fileOf("other") {
		t.Errorf("left behind: %v", left)
	}
}

// A stopped controller keeps its lease until that runs out and was watched; when
// it goes on it sees that, and leaves the other's alone.
func TestTakeoverFromTheFrozen(t *testing.T) {
	t.Parallel()
	n, right := rounds(3, 30), 0
	for range n {
		dir := folder(t)
		f, err := fastFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		a := start(t, dir, "alice")
		a.want("take k", "won")
		a.signal(syscall.SIGSTOP)
		begin := time.Now()
		k := f.NewKeeper(Holder{Owner: "bob"}, nil)
		if _, err := k.Take(t.Context(), []Want{{"k", "target box"}}, Options{}); err == nil || !strings.Contains(err.Error(), "held by alice") {
			t.Fatalf("a lease that is valid: %v", err)
		}
		l, err := k.Take(t.Context(), []Want{{"k", "target box"}}, Options{Wait: true})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		a.signal(syscall.SIGCONT)
		answer := a.ask("check")
		a.want("release", "released <nil>")
		if took > f.times.ttl-f.times.renew-100*time.Millisecond+f.times.watch && strings.Contains(answer, "its lease was taken over by bob") &&
			strings.Contains(fmt.Sprint(l.Takeovers()), "was not renewed since") && l.Check(t.Context(), "") == nil {
			right++
		} else {
			t.Errorf("after %v: it says %q, we have %v, %v", took, answer, l.Takeovers(), l.Check(t.Context(), ""))
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("takeovers from stopped holders right %d of %d", right, n)
}

// A holder that was stopped for less goes on renewing, and nobody gets it; nor does
// one that lives though its lease ran out.
func TestNoTakeoverFromTheLiving(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	f, err := fastFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, dir, "alice")
	a.want("take k", "won")
	a.signal(syscall.SIGSTOP)
	k := f.NewKeeper(Holder{Owner: "bob"}, nil)
	wait(t, f.times.ttl+100*time.Millisecond)
	watching := make(chan string, 1)
	done := make(chan error, 1)
	go func() {
		_, err := k.Take(t.Context(), []Want{{"k", "target box"}}, Options{Say: func(s string) { watching <- s }})
		done <- err
	}()
	if s := <-watching; !strings.Contains(s, "watching for") {
		t.Error(s)
	}
	a.signal(syscall.SIGCONT) // the lease has run out, but is renewed now
	if err := <-done; err == nil || !strings.Contains(err.Error(), "held by alice") {
		t.Errorf("taken from a holder that renews: %v", err)
	}
	a.want("check", "mine")
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
