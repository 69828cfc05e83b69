package deploy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"kernsweep/targets/localconn"
	"kernsweep/targets/targetstest"
	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

// An agent that is stopped keeps no deadline: its task is ended all the same.
func TestAnOverdueTaskIsEnded(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"go", "shell"} {
		conn := &fakeConn{}
		a := install(t, conn, Options{Want: kind})
		conn.rewrite = func(argv []string) []string {
			if !strings.Contains(strings.Join(argv, " "), " collect ") {
				return argv
			}
			return []string{"sh", "-c", `printf '` + strings.TrimSpace(wire.Magic) + `\nbegin 1 0\n\n'; echo 'kernsweep-agent: ` + wire.GoesOn + `: pid 5' >&2`}
		}
		err := a.Resuming([]Spooled{{File: "/dev/shm/kernsweep-00-112233445566.spool"}}).Run(t.Context(),
			workloads.Task{Argv: []string{"exec", "--", "true"}, Dir: t.TempDir(), Deadline: time.Minute})
		if !errors.Is(err, errOverdue) {
			t.Errorf("%s: error %v", kind, err)
		}
		if ran := strings.Join(conn.ran, "\n"); !strings.Contains(ran, " stop -spool /dev/shm/kernsweep-00-112233445566.spool") {
			t.Errorf("%s: never asked to stop:\n%s", kind, ran)
		}
	}
}

// What a controller left on its own machine is ended without an agent.
func TestEndLeftovers(t *testing.T) {
	t.Parallel()
	s := newScene(t, scene{Work: "iperf to the peer", Agent: "go", Port: targetstest.FreePort(t)})
	c := s.start(t)
	s.running(t, 2)
	kill9(c)
	var notes []string
	for _, dir := range []string{s.Target, s.Peer} {
		conn := placed{localconn.New(), dir}
		if err := EndLeftovers(context.WithoutCancel(t.Context()), conn, Options{Instance: Instance(), Note: func(n string) { notes = append(notes, n) }}); err != nil {
			t.Error(err)
		}
		conn.Close()
	}
	if len(notes) != 2 {
		t.Errorf("notes %q", notes)
	}
	if n := s.left(t, "after the leftovers were ended"); n > 0 {
		t.Error(n)
	}
}
