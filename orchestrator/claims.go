package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
)

// claimRetry is how often a thing that another process uses is asked for again.
const claimRetry = 500 * time.Millisecond

// ClaimedError says that another kernsweep uses a target.
type ClaimedError struct{ Target, By string }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("target %s is in use by %s: wait for it, or end it", e.Target, e.By)
}

// claims are the locks between processes that share a folder of runs: files
// below .locks, held by flock(2), which ends with the process.
type claims struct{ dir string }

// Claim makes the real targets of a plan, and those its trials use as peers,
// this process's own until release is called: two runs on one machine would
// measure each other. runs is the folder of the run directories, who goes into
// the message that others get. The error is a *ClaimedError, or of the disk.
func Claim(runs, who string, lab *config.Lab, p *plan.Plan) (release func(), err error) {
	var names []string
	for _, l := range p.Lanes {
		names = append(names, l.Target)
		for _, b := range l.Boots {
			for _, s := range b.Trials {
				names = append(names, peerOf(lab, s.Workload, s.Scenario)...)
			}
		}
	}
	return ClaimTargets(runs, who, lab, names...)
}

// ClaimTargets is Claim for targets by name. Virtual ones are nobody's: every
// run starts its own.
func ClaimTargets(runs, who string, lab *config.Lab, names ...string) (release func(), err error) {
	var held []*flock.Flock
	release = func() {
		for _, f := range held {
			_ = f.Close() // the lock ends with the file
		}
	}
	c := claims{filepath.Join(runs, ".locks")}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		t := lab.Target(n)
		if t == nil || targets.TraitsOf(t.Boot).Local {
			continue
		}
		f, err := c.open(targetLock(n))
		if err == nil {
			var got bool
			if got, err = f.TryLock(); err == nil && !got {
				by, _ := os.ReadFile(f.Path()) // without it the holder has no name
				err = &ClaimedError{n, strings.TrimSpace("another kernsweep " + string(by))}
			}
		}
		switch {
		case err == nil:
			held = append(held, f)
			_ = os.WriteFile(f.Path(), []byte(who), 0o666) // for people only
		case noFlock(err):
		default:
			release()
			return nil, err
		}
	}
	return release, nil
}

// peerOf is the target that a scenario uses as its peer, if it is one.
func peerOf(lab *config.Lab, workload, scenario string) []string {
	if w := lab.Workload(workload); w != nil {
		for _, s := range w.Scenarios {
			if s.Name == scenario && s.Run.Needs().Peer && s.Common.Peer != "controller" {
				return []string{strings.TrimPrefix(s.Common.Peer, "target.")}
			}
		}
	}
	return nil
}

func (c claims) open(name string) (*flock.Flock, error) {
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return nil, err
	}
	return flock.New(filepath.Join(c.dir, url.PathEscape(name))), nil
}

// wait takes what lanes of several processes share, such as the controller as
// a peer, for one trial. Targets are claimed beforehand.
func (c claims) wait(ctx context.Context, name string) (release func(), err error) {
	if c.dir == "" || strings.HasPrefix(name, targetLock("")) {
		return func() {}, nil
	}
	f, err := c.open(name)
	if err == nil {
		_, err = f.TryLockContext(ctx, claimRetry)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && !noFlock(err):
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// noFlock tells a file system without flock, or a folder of somebody else's:
// there kernsweep goes on without.
func noFlock(err error) bool {
	for _, e := range []error{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP, os.ErrPermission, syscall.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
