package deploy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

func install(t *testing.T, conn targets.Conn, o Options) *Agent {
	t.Helper()
	if o.Arch == "" {
		o.Arch = runtime.GOARCH
	}
	a, err := Install(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return a
}

func spool(t *testing.T, dir string) *wire.Spool {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "spool"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := wire.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBothAgentsRunACommandAndLeaveNothingBehind(t *testing.T) {
	for _, kind := range []string{"go", "shell"} {
		t.Run(kind, func(t *testing.T) {
			a := install(t, &fakeConn{}, Options{Want: kind})
			dir := t.TempDir()
			err := a.Run(t.Context(), workloads.Task{Argv: []string{"exec", "--", "sh", "-c", `echo "$A'b"; echo bad >&2; exit 3`},
				Env: []string{"A=a b"}, Dir: dir, Deadline: 20 * time.Second, Sample: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if a.Kind() != kind || len(a.Hash()) != 64 {
				t.Errorf("kind %q, hash %q", a.Kind(), a.Hash())
			}
			s := spool(t, dir)
			if len(s.Tasks) != 1 || s.Tasks[0].Exit != 3 || s.End["status"] != "failed" {
				t.Errorf("tasks %+v, end %v", s.Tasks, s.End)
			}
			if out, errs := read(t, dir, "stdout"), read(t, dir, "stderr"); out != "a b'b\n" || errs != "bad\n" {
				t.Errorf("stdout %q, stderr %q", out, errs)
			}
			if len(s.Snapshots) < 2 || !strings.Contains(read(t, dir, "vmstat.csv"), "\n") {
				t.Errorf("%d snapshots, vmstat.csv %q", len(s.Snapshots), read(t, dir, "vmstat.csv"))
			}
			files := a.pushed
			if len(files) != 1 {
				t.Errorf("still there after the run: %v", files)
			}
			if err := a.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if _, err := os.Stat(f); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is still there: %v", f, err)
				}
			}
		})
	}
}

func TestAnAgentThatIsThereIsNotPushedAgain(t *testing.T) {
	for _, kind := range []string{"go", "shell"} {
		first, second := &fakeConn{}, &fakeConn{}
		install(t, first, Options{Want: kind})
		install(t, second, Options{Want: kind})
		pushes := func(c *fakeConn) (n int) {
			for _, r := range c.ran {
				if strings.Contains(r, "gunzip -c") {
					n++
				}
			}
			return n + len(c.put)
		}
		if pushes(first) != 1 || pushes(second) != 0 {
			t.Errorf("%s: pushed %d and %d times, want 1 and 0", kind, pushes(first), pushes(second))
		}
	}
}

func TestAnAgentThatWasRemovedIsPushedAgain(t *testing.T) {
	for _, kind := range []string{"go", "shell"} {
		a := install(t, &fakeConn{}, Options{Want: kind})
		if err := os.Remove(a.place().file); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := a.Run(t.Context(), workloads.Task{Argv: []string{"exec", "--", "echo", "hi"}, Dir: dir, Deadline: 20 * time.Second}); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if out := read(t, dir, "stdout"); out != "hi\n" {
			t.Errorf("%s: stdout %q", kind, out)
		}
	}
}

func TestALostLinkLosesNothing(t *testing.T) {
	for _, kind := range []string{"go", "shell"} {
		t.Run(kind, func(t *testing.T) {
			conn := &fakeConn{cut: func(argv []string) bool { return strings.Contains(strings.Join(argv, " "), " run -keep") }}
			redials := 0
			var notes []string
			a := install(t, conn, Options{Want: kind, Note: func(s string) { notes = append(notes, s) },
				Redial: func(context.Context) (targets.Conn, error) {
					if redials++; redials == 1 {
						return nil, errors.New("no route")
					}
					return &fakeConn{}, nil
				}})
			dir := t.TempDir()
			err := a.Run(t.Context(), workloads.Task{Argv: []string{"exec", "--", "sh", "-c", "sleep 2; echo done"},
				Dir: dir, Deadline: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if s := spool(t, dir); s.End["status"] != "ok" || string(s.Stdout) != "done\n" {
				t.Errorf("end %v, stdout %q", s.End, s.Stdout)
			}
			if redials != 2 || !strings.Contains(strings.Join(notes, "\n"), "link lost") {
				t.Errorf("%d redials, notes %q", redials, notes)
			}
		})
	}
}

// A machine that came back in another boot has no spool: nobody waits for it.
func TestARebootEndsTheWaitForASpool(t *testing.T) {
	conn := &fakeConn{cut: func(argv []string) bool { return strings.Contains(strings.Join(argv, " "), " run -keep") }}
	redials := 0
	a := install(t, conn, Options{Want: "go", Redial: func(context.Context) (targets.Conn, error) {
		redials++
		return nil, &targets.RebootedError{What: "boot_id", Was: "a", Is: "b"}
	}})
	err := a.Run(t.Context(), workloads.Task{Argv: []string{"exec", "--", "true"}, Dir: t.TempDir(), Deadline: time.Hour})
	a.Through(&fakeConn{}) // for the end of the test
	var rebooted *targets.RebootedError
	if !errors.As(err, &rebooted) || redials != 1 {
		t.Errorf("%d redials, %v", redials, err)
	}
}

func TestAnInterruptionEndsTheTaskAndKeepsItsSpool(t *testing.T) {
	for _, kind := range []string{"go", "shell"} {
		t.Run(kind, func(t *testing.T) {
			conn := &fakeConn{hold: func(argv []string) bool { return strings.Contains(strings.Join(argv, " "), " run -keep") }}
			a := install(t, conn, Options{Want: kind})
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			pidfile := filepath.Join(dir, "pid")
			go func() {
				tick := time.NewTicker(20 * time.Millisecond)
				defer tick.Stop()
				for range tick.C {
					if b, err := os.ReadFile(pidfile); err == nil && len(b) > 0 {
						cancel()
						return
					}
				}
			}()
			err := a.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "sh", "-c", "echo $$ >" + pidfile + "; exec sleep 60"},
				Dir: dir, Deadline: time.Minute})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
			if s := spool(t, dir); s.End["status"] != "failed" {
				t.Errorf("end %v", s.End)
			}
			if _, err := os.Stat("/proc/" + strings.TrimSpace(read(t, dir, "pid"))); err == nil {
				t.Error("the task still runs")
			}
		})
	}
}
