package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/store"
)

// createRun makes the run directory with everything that is known beforehand.
// The bytes of all images are in the store afterwards, and the lab names them
// there: whatever becomes of the files, the run boots these. When it fails there
// is no run directory.
func (a *app) createRun(ctx context.Context, lab *config.Lab, p *plan.Plan, command []string) (*results.Run, error) {
	s, err := store.Open(a.runs)
	if err != nil {
		return nil, err
	}
	release, err := s.Hold(ctx) // until run.json names what was put there
	if err != nil {
		return nil, err
	}
	defer release()
	kept, err := s.Keep(ctx, lab, p)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	host, _ := os.Hostname()
	meta := results.RunMeta{Who: who(), Host: host, Version: version(), Command: append([]string{"run"}, command...), Seed: p.Seed,
		PlanHash: hex.EncodeToString(sum[:]), Images: kept.Hashes(), Config: a.configPath()}
	run, err := a.wholeRun(p.Sweep, meta, func(run *results.Run) error {
		if err := errors.Join(kept.Write(run), run.WriteFile("testbeds.hcl", sourceCopy(lab)), run.WritePlan(orchestrator.Summary(lab, p), p)); err != nil {
			return err
		}
		return s.Use(ctx, lab, p, run)
	})
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		err = fmt.Errorf("%w: the disk is full and no run was made; make room (kernsweep prune --dry-run shows what could go), or choose another folder with --runs", err)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("%w: no run can be made in %s; choose another folder with --runs", err, a.runs)
	}
	return run, err
}

// wholeRun makes a run directory aside, lets fill complete it, and moves it into
// place: whenever this process is killed, there is a whole run or none.
func (a *app) wholeRun(sweep string, meta results.RunMeta, fill func(*results.Run) error) (*results.Run, error) {
	if err := os.MkdirAll(a.runs, 0o777); err != nil {
		return nil, err
	}
	aside, err := os.MkdirTemp(a.runs, ".new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(aside)
	for try := 1; ; try++ {
		run, err := results.Create(aside, sweep, meta, time.Now())
		if err == nil {
			err = fill(run)
		}
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(a.runs, run.Name())
		err = os.Rename(run.Dir(), dir)
		if errors.Is(err, fs.ErrExist) && try < 10 {
			continue // another run of this second drew the same name
		}
		if err != nil {
			return nil, err
		}
		d, err := os.Open(a.runs)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return nil, err
		}
		return results.Open(dir)
	}
}
