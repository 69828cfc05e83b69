package leases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever a power cut or a full disk left in a lease's file, it is free after a
// while, with a note; what is no plain file is refused.
func TestGarbage(t *testing.T) {
	good := `{"format":1,"key":"k","holder":{"id":"1","owner":"alice","host":"h","pid":1`
	for name, c := range map[string]struct {
		put  func(path string) error
		over string // of the takeover
		err  string
	}{
		"empty":        {text(""), "its file was empty", ""},
		"zeros":        {text(strings.Repeat("\x00", 512)), "its file was empty", ""},
		"torn":         {text(good), "its file was damaged", ""},
		"no JSON":      {text("\xff\xfe{{{"), "its file was damaged", ""},
		"another type": {text(`[1,2]`), "its file was damaged", ""},
		"no lease":     {text(`{}`), "its file was no lease", ""},
		"no holder id": {text(good + `},"x":1}`), "", ""},
		"another key":  {text(`{"format":1,"key":"j","holder":{"id":"1","owner":"alice","pid":1}}`), "its file was that of", ""},
		"newer":        {text(`{"format":2,"key":"k"}`), "", "newer kernsweep"},
		"endless":      {text(strings.Repeat("x", sizeMost+1)), "", "larger than"},
		"folder":       {func(p string) error { return os.Mkdir(p, 0o777) }, "", "not a regular file"},
		"pipe":         {func(p string) error { return syscall.Mkfifo(p, 0o666) }, "", "not a regular file"},
		"link":         {func(p string) error { return os.Symlink("/etc/passwd", p) }, "", "too many levels of symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := fastFolder(folder(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.put(filepath.Join(f.dir, fileOf("k"))); err != nil {
				t.Fatal(err)
			}
			l, err := f.NewKeeper(Holder{Owner: "bob"}, nil).Take(t.Context(), []Want{{"k", "target box"}}, Options{})
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), EnvFolder) {
					t.Errorf("%v", err)
				}
			case err != nil:
				t.Error(err)
			default:
				if got := fmt.Sprint(l.Takeovers()); !strings.Contains(got, c.over) {
					t.Errorf("%q", got)
				}
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
			if got, err := f.list(); err != nil || len(got) > 0 && c.over+c.err != "" {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func text(s string) func(string) error {
	return func(p string) error { return os.WriteFile(p, []byte(s), 0o600) }
}

// stranger is a holder on another machine that shares the folder.
func stranger(f *Folder, host string) *Folder {
	o := *f
	o.machine = machine{host: host, bootID: "boot-of-" + host, pids: "pid:[1]"}
	return &o
}

// Clocks that are wrong, on this machine or another, before, after or in between,
// neither end a lease that is renewed nor keep one that is not.
func TestClocks(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, foreign := range []bool{false, true} {
		for _, off := range []time.Duration{-40 * year, -year, -time.Hour, -30 * time.Second, 0, 30 * time.Second, time.Hour, year} {
			t.Run(fmt.Sprintf("foreign=%v off=%v", foreign, off), func(t *testing.T) {
				dir := folder(t)
				synctest.Test(t, func(t *testing.T) { clocks(t, dir, foreign, off) })
			})
		}
	}
}

func clocks(t *testing.T, dir string, foreign bool, off time.Duration) {
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	f.clock.boot = func() time.Duration { return time.Since(begin) + time.Hour }
	theirs := *f
	var jump atomic.Int64 // ns
	if foreign {
		theirs = *stranger(f, "lab2")
		theirs.clock.boot = func() time.Duration { return time.Since(begin) }
	}
	theirs.clock.now = func() time.Time { return time.Now().Add(off + time.Duration(jump.Load())) }
	a, err := theirs.NewKeeper(Holder{Owner: "alice"}, nil).Take(t.Context(), []Want{{"k", "target box"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// While it is renewed, nobody gets it, for minutes.
	k := f.NewKeeper(Holder{Owner: "bob"}, nil)
	for i := range 5 {
		ctx, stop := context.WithTimeout(t.Context(), 4*f.times.watch)
		_, err := k.Take(ctx, []Want{{"k", "target box"}}, Options{Wait: i == 4})
		stop()
		var held *HeldError
		if !errors.As(err, &held) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("try %d: %v", i, err)
		}
		jump.Add(int64(10 * time.Minute))
	}
	if err := a.Check(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	// It is renewed no more, as of a process that was stopped.
	a.k.drop(a.holds)
	at := time.Now()
	b, err := k.Take(t.Context(), []Want{{"k", "target box"}}, Options{Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(at)
	if took < f.times.watch || took > f.times.ttl+2*f.times.watch {
		t.Errorf("taken over after %v", took)
	}
	if a.k.add(a.holds[0]); !errors.As(a.Check(t.Context(), ""), new(*LostError)) {
		t.Error("the one that lost it does not know")
	}
	if err := errors.Join(a.Release(), b.Check(t.Context(), ""), b.Release()); err != nil {
		t.Error(err)
	}
}

// A laptop's lid: both were away for a night, and the holder still has it.
func TestSuspend(t *testing.T) {
	dir := folder(t)
	synctest.Test(t, func(t *testing.T) {
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var slept atomic.Int64 // ns
		f.clock.boot = func() time.Duration { return time.Since(begin) + time.Duration(slept.Load()) }
		a, err := f.NewKeeper(Holder{Owner: "alice"}, nil).Take(t.Context(), []Want{{"k", "target box"}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			_, err := f.NewKeeper(Holder{Owner: "bob"}, nil).Take(ctx, []Want{{"k", "target box"}}, Options{Wait: true})
			done <- err
		}()
		for range 20 {
			wait(t, 9*time.Second)
			slept.Add(int64(8 * time.Hour))
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("taken after waking up: %v", err)
		}
		if err := errors.Join(a.Check(t.Context(), ""), a.Release()); err != nil {
			t.Error(err)
		}
	})
}

// The folder may be removed while leases are held: they are written anew. When
// another process was faster, they are lost.
func TestFolderRemoved(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	f, err := fastFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := f.NewKeeper(Holder{Owner: "alice"}, nil).Take(t.Context(), []Want{{"k", "target box"}, {"l", "target box"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	until(t, "both are there again", func() bool { list, _ := f.list(); return len(list) == 2 })
	lost := make(chan error, 1)
	defer l.Watch("target box", func(err error) { lost <- err })()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	b := start(t, dir, "bob")
	if got := b.ask("take k"); got != "won" {
		t.Fatalf("the renewal was faster: %q", got)
	}
	if err := <-lost; !strings.Contains(err.Error(), "target box: its lease was taken over by bob") {
		t.Error(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	b.want("check", "mine")
}

// A full disk and a read-only one, in a mount namespace of its own.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEASES_CHILD=full", "LEASES_DIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// What others wrote does not drive a terminal.
func TestWordsOfOthers(t *testing.T) {
	f, err := fastFolder(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	k := f.NewKeeper(Holder{Owner: "al\x1b[2Jice\n", Command: strings.Repeat("run ", 1000)}, nil)
	l, err := k.Take(t.Context(), []Want{{"k", "target box"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Take(t.Context(), []Want{{"k", "target box"}}, Options{})
	if err == nil || !strings.Contains(err.Error(), "held by al?[2Jice? (process") || len(err.Error()) > 1000 {
		t.Errorf("%q", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// A waiting process that was stopped for so long that it lost what it had already
// begins anew, and nobody has anything twice.
func TestStoppedWhileWaiting(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	f, err := fastFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := start(t, dir, "alice"), start(t, dir, "bob"), start(t, dir, "carol")
	a.want("take z", "won")
	b.say("wait k z")
	queued(t, f, "z", 1)
	b.signal(syscall.SIGSTOP)
	c.want("wait k", "won by takeover")
	b.signal(syscall.SIGCONT)
	queued(t, f, "k", 1) // it stands behind carol now
	a.want("release", "released <nil>")
	c.want("check", "mine")
	c.want("release", "released <nil>")
	if got := b.hear(); got != "won" {
		t.Errorf("%q", got)
	}
	b.want("check", "mine")
	b.want("release", "released <nil>")
	if left := leftovers(t, dir); len(left) != 1 || !strings.HasPrefix(left[0], mailPrefix) {
		t.Errorf("left behind: %v", left) // beside the note for bob's run
	}
}
