// Package orchestrator executes a plan: one lane per target, side by side; in a
// lane boot after boot, and in each boot trial after trial. What happens is
// appended to the run's journal as it happens.
package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads/deploy"
)

// Runner executes one plan into one run directory.
type Runner struct {
	Lab  *config.Lab
	Plan *plan.Plan
	Run  *results.Run
	// Journal is the run's only writer, Before what it held when it was opened:
	// boots and attempts are numbered on from there.
	Journal *results.Writer
	Before  *results.Model
	Dial    targets.DialFunc
	Serve   targets.ServeFunc // nil: nothing is served by TFTP
	// Local is the controller itself, as a peer.
	Local targets.Conn
	Log   *zap.Logger
	// Until is when the run should be over: nothing is begun that would not be. Zero
	// is whenever. History tells how long things take until the run has seen it.
	Until   time.Time
	History plan.History
	// Leases are this process's, of the plan's targets and peers; nil: with nobody.
	Leases *Claims
	// Observe sees every record once it is durable, one at a time. It must not block.
	Observe func(results.Record)
	// Resume goes on where the controller before this one stopped; Plan is what
	// Remaining says then. Why this session began follows NoteBegan in the journal.
	Resume bool
	Why    string

	locks   *locks
	gate    chan struct{} // boots that load the controller's own CPUs
	lanes   []*lane       // all of them, before the first begins
	outages *outages
	kept    *keeper
	night   *night // a test has its own

	steering sync.Mutex
	helmed   []*lane // that can be steered

	settledMu sync.Mutex
	settled   map[string]bool // lanes whose open trials are taken over, or given up

	watching sync.Mutex // lanes append side by side, Observe sees one record at a time

	peerMu  sync.Mutex
	peer    *deploy.Agent   // on the controller, deployed on first use; nil: look again
	doubted []*deploy.Agent // earlier ones, whose files may still be there

	stop  context.CancelCauseFunc
	stuck []string // lanes that were left behind; under watching
}

// Execute runs the plan to its end. Its error is the controller's own: the
// context's, or a journal that cannot be written (then nothing more is started,
// and the run can be taken up again). What happened to trials is in the journal.
func (r *Runner) Execute(ctx context.Context) error {
	r.locks, r.gate = newLocks(r.Leases), make(chan struct{}, max(1, runtime.NumCPU()))
	r.outages, r.lanes = newOutages(), nil
	if r.night == nil {
		r.night = newNight(r.Until)
	}
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	ctx, settled := targets.WithBudget(ctx, leaveBudget)
	defer settled()
	var err error
	if r.kept, err = r.keep(ctx); err != nil {
		return err
	}
	if err := r.append(ctx, results.Record{Kind: results.KindRun, Note: began(r.Why)}); err != nil {
		return err
	}
	defer r.Leases.journal(func(s string) { _ = r.append(ctx, results.Record{Kind: results.KindNote, Note: s}) })()
	r.sweepController(ctx)
	var missing []error
	for i := range r.Plan.Lanes {
		if l, err := r.newLane(&r.Plan.Lanes[i]); err != nil {
			missing = append(missing, err)
		} else {
			l.target.Agent = r.kept.agentBytes
			r.lanes = append(r.lanes, l)
		}
	}
	defer r.steerable(r.lanes)()
	for _, l := range r.lanes {
		go func() {
			defer close(l.ending.over)
			l.run(ctx)
		}()
	}
	r.leftBehind(ctx, r.await(ctx))
	err = errors.Join(missing...)
	r.removePeer(ctx)
	r.kept.done(ctx, r)
	if err == nil {
		err = context.Cause(ctx)
	}
	note := results.NoteEnded
	if err != nil {
		note = results.NoteInterrupted + ": " + err.Error()
	}
	if e := r.append(context.WithoutCancel(ctx), results.Record{Kind: results.KindRun, Note: note}); err == nil {
		err = e
	}
	return err
}

// append makes a record durable and shows it. A journal that cannot be written
// stops the run: a result that is not on disk is none.
func (r *Runner) append(ctx context.Context, rec results.Record) error {
	if r.fenced(rec) {
		return errors.New("the run has ended")
	}
	rec, err := r.Journal.Append(context.WithoutCancel(ctx), rec)
	if err != nil {
		if r.stop != nil {
			r.stop(err)
		}
		return err
	}
	if r.Observe != nil {
		r.watching.Lock()
		defer r.watching.Unlock()
		r.Observe(rec)
	}
	return nil
}

// controllerAgent deploys the agent on the controller once, for all lanes.
func (r *Runner) controllerAgent(ctx context.Context) (*deploy.Agent, error) {
	r.peerMu.Lock()
	defer r.peerMu.Unlock()
	if r.peer != nil {
		return r.peer, nil
	}
	a, err := deploy.Install(ctx, r.Local, deploy.Options{Arch: runtime.GOARCH, Want: "auto", Log: r.Log,
		Instance: deploy.Instance(), Agents: r.kept.agents.Get, Spare: r.spare(),
		Note: func(s string) { _ = r.append(ctx, results.Record{Kind: results.KindNote, Note: "controller: " + s}) }})
	if err != nil {
		return nil, fmt.Errorf("agent on the controller: %w", err)
	}
	r.peer = a
	return a, nil
}

// doubtPeer makes the next trial with the controller as its peer look whether
// the agent is still there, after one was lost.
func (r *Runner) doubtPeer() {
	r.peerMu.Lock()
	defer r.peerMu.Unlock()
	if r.peer != nil {
		r.doubted = append(r.doubted, r.peer)
		r.peer = nil
	}
}

func (r *Runner) removePeer(ctx context.Context) {
	if ctx.Err() == nil {
		r.peerMu.Lock()
	} else if !r.peerMu.TryLock() {
		return // a lane that was left behind is at it
	}
	defer r.peerMu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), peerTime)
	defer cancel()
	for _, a := range append(r.doubted, r.peer) {
		if a == nil {
			continue
		}
		if err := a.Remove(ctx); err != nil {
			r.Log.Warn("the agent's files on the controller could not be removed", zap.Error(err))
		}
	}
}

// MissingImages lists the image files that a plan needs and the disk lacks, each
// with the place in the configuration that names it.
func MissingImages(lab *config.Lab, p *plan.Plan) []string {
	var out []string
	seen := map[string]bool{}
	for _, l := range p.Lanes {
		t := lab.Target(l.Target)
		names := make([]string, 0, len(l.Boots)+1)
		for _, b := range l.Boots {
			names = append(names, b.Kernel)
		}
		if t.KnownGood != "" && !targets.TraitsOf(t.Boot).Local {
			names = append(names, t.KnownGood) // the way back needs it too
		}
		for _, name := range names {
			k := lab.Kernel(name)
			image := k.ImageFor(t)
			if image == nil {
				continue
			}
			for _, f := range imageFiles(image.Image) {
				if why := unreadable(f); why != "" && !seen[f] {
					seen[f] = true
					out = append(out, fmt.Sprintf("%s: kernel %s for %s: %s: %s", image.Pos, k.Name, t.Name, filepath.Clean(f), why))
				}
			}
		}
	}
	return out
}

func began(why string) string {
	if why == "" {
		return results.NoteBegan
	}
	return results.NoteBegan + ": " + why
}
