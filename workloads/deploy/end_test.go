package deploy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
	"kernsweep/workloads"
)

// mostTime is what the end of a task may take after Ctrl-C, of the 30 s that the
// whole run has; a busy machine is allowed a little.
const mostTime = 22 * time.Second

// TestTheWayOutIsShort interrupts a task that ignores everything, over a link
// that works, one whose server process is frozen, and one where the server as a
// whole is; and counts what is left.
func TestTheWayOutIsShort(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"go", "shell"} {
		ways := []string{"nothing", "the session", "the server"}
		if kind == "shell" && !long() {
			ways = ways[:1]
		}
		for _, frozen := range ways {
			t.Run(kind+"/frozen: "+frozen, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, scene{Agent: kind})
				d := targetstest.SSHD(t)
				s.SSH = d.SSH
				target, peer, done, err := s.sides(t.Context(), nil, func(n string) { t.Log(n) })
				if err != nil {
					t.Fatal(err)
				}
				defer done()
				if err := peer.Remove(t.Context()); err != nil {
					t.Error(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				mark := filepath.Join(s.Dir, "mark")
				var begun time.Time
				go func() {
					await(t, "the task", func() bool { _, err := os.Stat(mark); return err == nil })
					var stop []int
					if frozen != "nothing" {
						stop = sessions(d)
					}
					if frozen == "the server" {
						stop = append(stop, d.Pid)
					}
					for _, pid := range stop {
						_ = syscall.Kill(pid, syscall.SIGSTOP) // seen by its effect
					}
					begun = time.Now()
					cancel()
				}()
				track := target.Tracked(func(b Spooled) error {
					return os.WriteFile(s.Begun, []byte("target|"+b.File+"|\n"), 0o644)
				})
				err = track.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "sh", "-c", ": >" + mark + "; " + hostile}, Dir: s.Dir, Deadline: time.Minute})
				took := time.Since(begun)
				t.Log(took)
				if !errors.Is(err, context.Canceled) || took > mostTime {
					t.Errorf("after %v: %v", took, err)
				}
				if frozen == "the server" { // nobody could end it: whoever comes next does
					for _, pid := range append(sessions(d), d.Pid) {
						_ = syscall.Kill(pid, syscall.SIGCONT)
					}
					s.replace(t, target)
				}
				if left := s.marked(); len(left) > 0 {
					t.Errorf("processes are left: %v", left)
				}
				if frozen != "nothing" { // its agent may have been killed with the link
					return
				}
				if sp := spool(t, s.Dir); sp.End["status"] != "failed" || !strings.Contains(sp.End["reason"], "9") {
					t.Errorf("end %v", sp.End)
				}
			})
		}
	}
}

// sessions are the sshd processes that serve connections.
func sessions(d *targetstest.Daemon) (pids []int) {
	for _, pid := range targetstest.Descendants(d.Pid) {
		if name, _ := os.ReadFile("/proc/" + itoa(pid) + "/comm"); strings.HasPrefix(string(name), "sshd") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// replace installs an agent after one whose task could not be ended.
func (s *scene) replace(t *testing.T, before *Agent) {
	t.Helper()
	conn, err := s.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var notes []string
	a, err := Install(t.Context(), conn, Options{Want: s.Agent, Before: before, Note: func(n string) { notes = append(notes, n) }})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(notes, "\n"); !strings.Contains(all, "a leftover task of an attempt that was lost: exec -- sh -c") {
		t.Errorf("notes %q", notes)
	}
	if err := a.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	s.clean(t)
}
