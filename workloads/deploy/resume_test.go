package deploy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
	"kernsweep/workloads"
)

// buildTree is a source tree whose build takes seconds and counts its cleanings.
func buildTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := "all:\n\t@echo compiling; sleep 2; echo built >product\nclean:\n\t@echo cleaned >>cleanings; rm -f product\n"
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestResuming kills a controller and takes its trial up, for every kind of
// workload: while its tasks run, after they ended, and when the spools have
// arrived already. Without KERNSWEEP_LONG=1 most kinds are killed once.
func TestResuming(t *testing.T) {
	t.Parallel()
	kinds := []struct {
		scene
		tasks int
		ssh   bool
	}{
		{scene{Work: "exec", Agent: "go", Script: "echo begun; sleep 2; echo over"}, 1, true},
		{scene{Work: "exec", Agent: "shell", Script: "echo begun; sleep 2; echo over"}, 1, true},
		{scene{Work: "exec", Agent: "go", Script: "echo begun; sleep 2; echo over"}, 1, false},
		{scene{Work: "crunch", Agent: "go"}, 1, false},
		{scene{Work: "latency", Agent: "go"}, 1, true},
		{scene{Work: "kernbench", Agent: "shell"}, 1, false},
		{scene{Work: "kernbench", Agent: "go"}, 1, true},
		{scene{Work: "iperf to the target", Agent: "go"}, 2, true},
		{scene{Work: "iperf to the peer", Agent: "shell"}, 2, true},
		{scene{Work: "stream", Agent: "go"}, 2, false},
	}
	for i, k := range kinds {
		whens := []string{"running", "finished", "arrived"}
		if i > 1 && !long() {
			whens = whens[i%3 : i%3+1]
		}
		for _, when := range whens {
			link := map[bool]string{true: "ssh", false: "local"}[k.ssh]
			t.Run(strings.Join([]string{k.Work, k.Agent, link, when}, "/"), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, k.scene)
				s.Port, s.Tree = targetstest.FreePort(t), buildTree(t)
				if k.ssh {
					s.SSH = targetstest.SSHD(t).SSH
				}
				c := s.start(t)
				s.running(t, k.tasks)
				switch when {
				case "running":
					kill9(c)
				case "finished":
					kill9(c)
					s.finished(t)
				case "arrived":
					await(t, "the trial to end", func() bool { return len(s.begun()["over"]) > 0 })
					kill9(c)
				}
				_, ended, err := s.resume(t, true)
				if err != nil {
					t.Fatal(err)
				}
				if ended != "ok" && ended != "stopped" {
					t.Errorf("ended: %q", ended)
				}
				checkTrial(t, s)
				s.clean(t)
			})
		}
	}
}

// checkTrial holds the files of a resumed trial against those of any other.
func checkTrial(t *testing.T, s *scene) {
	t.Helper()
	p, err := s.workload().Parse(os.DirFS(s.Dir))
	var busy *workloads.InvalidError // on a machine full of tests a figure may not be worth anything, or a port be somebody else's
	switch {
	case errors.As(err, &busy):
		t.Log(err)
	case err != nil:
		t.Error(err)
	case len(p.Values) == 0 || p.Values[0].Missing != "":
		t.Errorf("values %+v", p.Values)
	}
	for _, f := range []string{"spool", "stdout", "stderr", "vmstat.csv"} {
		if _, err := os.Stat(filepath.Join(s.Dir, f)); err != nil {
			t.Error(err)
		}
	}
	switch s.Work {
	case "exec":
		if out := read(t, s.Dir, "stdout"); out != "begun\nover\n" {
			t.Errorf("stdout %q", out)
		}
	case "kernbench":
		if n := read(t, s.Tree, "cleanings"); n != "cleaned\n" {
			t.Errorf("the tree was cleaned twice: %q", n)
		}
		if log := read(t, s.Dir, "build.log"); !strings.Contains(log, "compiling") {
			t.Errorf("build.log %q", log)
		}
		os.RemoveAll(s.Tree)
	}
	if parts, _ := filepath.Glob(s.Dir + "/*.part"); len(parts) > 0 {
		t.Errorf("half files are left: %v", parts)
	}
}

// What was never begun, or cannot be had any more, is told apart.
func TestWhatCannotBeResumed(t *testing.T) {
	t.Parallel()
	one := scene{Work: "exec", Agent: "go", Script: "echo begun; sleep 60"}
	t.Run("not begun", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, one)
		if _, _, err := s.resume(t, true); !errors.Is(err, ErrNotBegun) {
			t.Errorf("error %v", err)
		}
		s.clean(t)
	})
	t.Run("the client was not begun", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, scene{Work: "iperf to the target", Agent: "go", Port: targetstest.FreePort(t)})
		c := s.start(t)
		s.running(t, 1)
		kill9(c)
		b := s.begun()
		if err := os.WriteFile(s.Begun, []byte("target|"+b["target"][0].File+"|\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.resume(t, true); !errors.Is(err, ErrNotBegun) {
			t.Errorf("error %v", err)
		}
		s.clean(t)
	})
	for _, kind := range []string{"go", "shell"} {
		t.Run("the agent died/"+kind, func(t *testing.T) {
			t.Parallel()
			one := one
			one.Agent = kind
			s := newScene(t, one)
			c := s.start(t)
			s.running(t, 1)
			kill9(c)
			file := s.begun()["target"][0].File
			await(t, "the task's mark", func() bool { return len(s.marked()) > 0 })
			killAgent(t, file)
			_, _, err := s.resume(t, true)
			var gone *GoneError
			if !errors.As(err, &gone) || !strings.Contains(gone.Error(), "the agent was killed") {
				t.Errorf("error %v", err)
			}
			if got := read(t, s.Dir, "spool"); !strings.HasPrefix(got, "kernsweep-spool 1\nbegin ") {
				t.Errorf("of the spool was kept %.80q", got)
			}
			s.clean(t)
		})
	}
	t.Run("the spool is gone", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, scene{Work: "exec", Agent: "go", Script: "echo begun; sleep 1"})
		c := s.start(t)
		s.running(t, 1)
		kill9(c)
		s.finished(t)
		os.Remove(s.begun()["target"][0].File)
		_, _, err := s.resume(t, true)
		var gone *GoneError
		if !errors.As(err, &gone) || !strings.Contains(gone.Error(), "not on the machine any more") {
			t.Errorf("error %v", err)
		}
		s.clean(t)
	})
}

// killAgent kills the agent that writes a spool, and nothing else.
func killAgent(t *testing.T, spool string) {
	t.Helper()
	pid := pairOf(head4k(spool), "pid")
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the agent's end", func() bool { return startOf(pid) == "0" })
}

// A task whose deadline passes while nobody watches has timed out as usual.
func TestADeadlineThatNobodyWatched(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"go", "shell"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, scene{Agent: kind})
			target, _, done, err := s.sides(t.Context(), nil, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			var begun []Spooled
			task := workloads.Task{Argv: []string{"exec", "--", "sleep", "70"}, Dir: s.Dir, Deadline: 1e9}
			broken := errors.New("disk full")
			if err := target.Tracked(func(Spooled) error { return broken }).Run(t.Context(), task); !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
			lost := &fakeConn{cut: func(argv []string) bool { return strings.Contains(strings.Join(argv, " "), " run -keep") }}
			dead := &Agent{o: Options{Note: func(string) {}, Log: target.o.Log}, kind: kind, conn: lost, at: target.at}
			err = dead.Tracked(func(b Spooled) error { begun = append(begun, b); return nil }).Run(t.Context(), task)
			var link *targets.LinkError
			if !errors.As(err, &link) || len(begun) != 1 {
				t.Fatalf("begun %v, error %v", begun, err)
			}
			await(t, "the agent's begin", func() bool { return pairOf(head4k(begun[0].File), "pid") > 0 })
			var how []string
			task.Ended = func(s string) { how = append(how, s) }
			if err := target.Resuming(begun).Run(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			if sp := spool(t, s.Dir); sp.End["status"] != "timeout" || len(how) != 1 || !strings.HasPrefix(how[0], "timeout: still running after 1s") {
				t.Errorf("end %v, told %q", sp.End, how)
			}
		})
	}
}
