package leases

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// queued waits until so many are in the queue of k.
func queued(t *testing.T, f *Folder, key string, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%d in the queue", n), func() bool {
		s, err := f.load(key)
		return err == nil && len(s.Queue) == n
	})
}

// until polls for something that another process does.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last := time.NewTimer(time.Minute)
	defer last.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-last.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// Those who wait get it in the order in which they asked; one that died meanwhile
// is passed over, one that gave up leaves nothing, and nobody jumps the queue.
func TestQueue(t *testing.T) {
	dir := folder(t)
	f, err := fastFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []*child
	for i := range 6 {
		all = append(all, start(t, dir, fmt.Sprintf("user%d", i)))
	}
	all[0].want("take k", "won")
	for i, c := range all[1:] {
		c.say("wait a k z")
		if i == 0 {
			queued(t, f, "k", 1) // it has a, and waits for k
			continue
		}
		queued(t, f, "a", i)
	}
	all[3].kill()
	all[4].signal(syscall.SIGINT)
	if got := all[4].hear(); !strings.Contains(got, "interrupt") {
		t.Errorf("after Ctrl-C: %q", got)
	}
	all[0].want("release", "released <nil>")
	for _, i := range []int{1, 2, 5} {
		if got := all[i].hear(); got != "won" {
			t.Fatalf("user%d: %q", i, got)
		}
		if i != 5 {
			if got := all[0].ask("take k"); !strings.Contains(got, "is held by user") {
				t.Errorf("meanwhile another: %q", got)
			}
		}
		all[i].want("release", "released <nil>")
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Between two holders nobody who does not wait gets in.
func TestNobodyJumpsTheQueue(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	a, b := start(t, dir, "alice"), start(t, dir, "bob")
	a.want("take k", "won")
	b.say("wait k")
	f, err := fastFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	queued(t, f, "k", 1)
	b.signal(syscall.SIGSTOP) // so that it cannot take it
	a.want("release", "released <nil>")
	if got := a.ask("take k"); !strings.Contains(got, "is free, but bob") {
		t.Errorf("%q", got)
	}
	// Whoever stays stopped loses its place, and stands behind again.
	a.want("wait k", "won")
	b.signal(syscall.SIGCONT)
	queued(t, f, "k", 1)
	a.want("release", "released <nil>")
	if got := b.hear(); got != "won" {
		t.Errorf("%q", got)
	}
}

// Processes that want overlapping sets in different orders all get theirs.
func TestNoDeadlock(t *testing.T) {
	dir := folder(t)
	sets := []string{"a b c", "c a", "b a", "c b a", "b c"}
	var all []*child
	for i := range sets {
		all = append(all, start(t, dir, fmt.Sprintf("user%d", i)))
	}
	n := rounds(5, 50)
	done := make(chan string)
	for i, c := range all {
		go func() {
			bad := ""
			for range n {
				if got := c.ask("wait " + sets[i]); got != "won" {
					bad = got
				}
				if got := c.ask("release"); got != "released <nil>" {
					bad = got
				}
			}
			done <- bad
		}()
	}
	for range all {
		if bad := <-done; bad != "" {
			t.Error(bad)
		}
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A process that is stopped or killed in the middle of a change of the folder
// holds up nobody for long, and spoils nothing when it goes on.
func TestLockOfTheFolder(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"", "LEASES_NOFLOCK=1"} {
		for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			t.Run(fmt.Sprint(env, s), func(t *testing.T) {
				dir := folder(t)
				f, err := fastFolder(dir)
				if err != nil {
					t.Fatal(err)
				}
				with := func(mode string) func(*exec.Cmd) {
					return func(c *exec.Cmd) { c.Env = append(c.Env, env, mode) }
				}
				sleeper := start(t, dir, "sleeper", with("LEASES_CHILD=mutex"))
				if got := sleeper.hear(); got != "in the middle" {
					t.Fatal(got)
				}
				sleeper.signal(s)
				other := start(t, dir, "other", with("LEASES_CHILD=takes"))
				begin := time.Now()
				other.want("take k", "won")
				took := time.Since(begin)
				if s == syscall.SIGKILL && took > f.times.mutex {
					t.Errorf("after a death it took %v", took)
				}
				t.Logf("free after %v", took)
				if s == syscall.SIGKILL {
					return
				}
				other.want("release", "released <nil>")
				sleeper.signal(syscall.SIGCONT)
				sleeper.say("")
				if got := sleeper.hear(); got != "changed after 2 tries: <nil>" {
					t.Errorf("the one that was stopped: %q", got)
				}
			})
		}
	}
}
