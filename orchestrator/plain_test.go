package orchestrator

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

func TestBootMethodNoneGivesOneBoot(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.m.once = true
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := count(m)
	if n[results.OK] != 1 || n[results.Skipped] != 3 {
		t.Fatalf("outcomes %v, want 1 ok and 3 skipped", n)
	}
	if m.Boots[0].Result.Record.Proven {
		t.Error("a boot that nothing proves is called proven")
	}
}

// A plain host whose SSH server was away for a while goes on with the same boot;
// one that rebooted does not: trials of two boots are not one sample.
func TestBootMethodNoneAfterALostLink(t *testing.T) {
	for name, reboots := range map[string]bool{"same boot": false, "rebooted": true} {
		t.Run(name, func(t *testing.T) {
			var f *fakeLab
			n := 0
			f = newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(ctx context.Context, env *workloads.Env) error {
				if n++; n != 2 {
					return nil
				}
				f.m.mu.Lock()
				defer f.m.mu.Unlock()
				for _, c := range f.m.conns {
					c.cut()
				}
				f.m.refuse = 1 // the agent's own try fails, the lane's next one does not
				if reboots {
					f.m.renew("")
				}
				return &targets.LinkError{Phase: "exec", Err: errors.New("the server is gone")}
			}}})
			f.m.once = true
			s := f.lab.Sweeps[0]
			s.Boots, s.Repeat, s.Kernels = 1, 4, []string{"a"}
			s.Matrices[0].Kernels = s.Kernels
			run, m, err := f.execute(t, t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			c := count(m)
			if !reboots && c[results.OK] != 4 {
				t.Errorf("outcomes %v, want 4 ok", c)
			}
			if reboots && (c[results.OK] != 1 || c[results.Lost] != 1 || c[results.Skipped] != 2 || !strings.Contains(m.Trials[3].Final().Reason, "rebooted by itself")) {
				t.Errorf("outcomes %v, want 1 ok, 1 lost and 2 skipped", c)
			}
			j, err := run.Journal()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range j.Records {
				if strings.Contains(r.Note, "could not be removed") {
					t.Error(r.Note)
				}
			}
		})
	}
}

// A plain host is still in its one boot after Ctrl-C, so resume goes on there,
// also when its SSH server does not answer at first. After a reboot it does not.
func TestBootMethodNoneIsResumed(t *testing.T) {
	for name, c := range map[string]struct {
		refuse  int
		reboots bool
		ok      int
	}{"at once": {0, false, 4}, "it does not answer at first": {2, false, 4}, "rebooted": {0, true, 1}} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			n := 0
			f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(run context.Context, _ *workloads.Env) error {
				if n++; n == 2 {
					stop()
					return run.Err()
				}
				return nil
			}}})
			f.m.once = true
			f.lab.Targets[0].Quarantine = 5
			s := f.lab.Sweeps[0]
			s.Boots, s.Repeat, s.Kernels = 1, 4, []string{"a"}
			s.Matrices[0].Kernels = s.Kernels
			run, m, err := f.execute(t, ctx, nil)
			if err == nil {
				t.Fatal("it was not interrupted")
			}
			f.m.mu.Lock()
			f.m.refuse = c.refuse
			if c.reboots {
				f.m.renew("")
			}
			f.m.mu.Unlock()
			f.resume = true
			m, err = f.executeIn(t, t.Context(), run, Remaining(f.lab, planOf(t, f), m, Rerun{}), nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := count(m); n[results.OK] != c.ok || n[results.Skipped] != 4-c.ok {
				t.Errorf("outcomes %v, want %d ok and the rest skipped", n, c.ok)
			}
			if why := m.Trials[len(m.Trials)-1].Final().Reason; c.reboots && !strings.Contains(why, "rebooted by itself") {
				t.Errorf("skipped: %s", why)
			}
			if left := Remaining(f.lab, planOf(t, f), m, Rerun{}); len(left.Lanes) > 0 {
				t.Errorf("%q remain", shape(left))
			}
		})
	}
}

// A trial that failed before anything ran has no files, and that is no news.
func TestNothingToCollect(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{
		run: func(context.Context, *workloads.Env) error {
			return &workloads.FailedError{Reason: "the tree cannot be built"}
		},
		err: &fs.PathError{Op: "open", Path: "spool", Err: fs.ErrNotExist},
	}})
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := m.Trials[0].Final(); a.Outcome != results.Failed || a.Reason != "the tree cannot be built" || a.Collect != "" {
		t.Errorf("%+v", a)
	}
}
