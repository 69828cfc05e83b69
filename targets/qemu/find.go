package qemu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/localproc"
	"kernsweep/targets/private"
)

// findWait bounds the questions to one QEMU process.
const findWait = 3 * time.Second

// Guest is a guest that a process of this user runs now.
type Guest struct {
	Controller int // its process id
	Port       int // of 127.0.0.1, leads to the guest's SSH server
}

// Find gives the guests that run now under a target's name, for another process to
// log in to: each configuration may have a target of that name. The error says
// that one is there and does not tell its port.
func Find(ctx context.Context, target string) ([]Guest, error) { return ourGuests().find(ctx, target) }

func (g guests) find(ctx context.Context, target string) ([]Guest, error) {
	entries, err := os.ReadDir(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = g.open()
	}
	if err != nil {
		return nil, fmt.Errorf("running QEMU guests cannot be looked for: %w", err)
	}
	var found []Guest
	var errs []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		l := left{g: g, id: strings.TrimSuffix(e.Name(), ".json")}
		r, err := readLeft(l.record())
		if err != nil || r.Target != target || !r.runs() {
			continue // gone meanwhile, another's, or to be ended by the next run
		}
		port, err := r.sshPort(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of target %s (process %d) does not tell its port: %w", r.Program, target, r.PID, err))
			continue
		}
		found = append(found, Guest{Controller: r.Controller.PID, Port: port})
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, errors.Join(errs...)
}

// runs says that the process and its controller live.
func (r leftRecord) runs() bool {
	return r.PIDs == localproc.Space() && r.Boot == localproc.BootID() && r.PID != 0 && r.is() &&
		r.Controller.Start != "" && localproc.Start(r.Controller.PID) == r.Controller.Start
}

// sshPort asks the process itself, by the monitor that a later controller would use.
func (r leftRecord) sshPort(ctx context.Context) (int, error) {
	ctx, stop := context.WithTimeout(ctx, findWait)
	defer stop()
	c, err := private.Dial(ctx, r.QMP)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	pid, err := peerOf(c)
	if err == nil && pid != r.PID {
		err = fmt.Errorf("process %d listens at %s", pid, r.QMP)
	}
	if err != nil {
		return 0, err
	}
	q := newQMP(c)
	if err := q.hello(ctx); err != nil {
		return 0, err
	}
	return forwarded(ctx, q, sshPort)
}

// Join is the way to a guest that Find found, by the settings of its target t.
func (m *Machine) Join(g Guest, t *targets.Target) (targets.SSH, error) {
	s := t.SSH
	s.Host, s.Port = "127.0.0.1", g.Port
	if m.HostKey != "" && len(s.HostKeys) == 0 {
		key, err := os.ReadFile(m.HostKey)
		if err != nil {
			return s, fmt.Errorf("the guest's host key: %w (scripts/lab makes it)", err)
		}
		s.HostKeys = []string{strings.TrimSpace(string(key))}
	}
	return s, nil
}
