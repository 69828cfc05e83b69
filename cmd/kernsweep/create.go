package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	run, err := results.Create(a.runs, p.Sweep, results.RunMeta{
		Who: who(), Host: host, Version: version(), Command: append([]string{"run"}, command...), Seed: p.Seed,
		PlanHash: hex.EncodeToString(sum[:]), Images: kept.Hashes(),
	}, time.Now())
	if err != nil {
		return nil, noRoom(err)
	}
	err = errors.Join(kept.Write(run), run.WriteFile("testbeds.hcl", sourceCopy(lab)), run.WritePlan(orchestrator.Summary(lab, p), p))
	if err == nil {
		err = s.Use(ctx, lab, p, run)
	}
	if err != nil {
		return nil, errors.Join(noRoom(err), discard(run))
	}
	return run, nil
}

// discard removes a run directory that was never whole.
func discard(run *results.Run) error {
	aside := filepath.Join(filepath.Dir(run.Dir()), ".new-"+run.Name())
	if err := os.Rename(run.Dir(), aside); err != nil {
		return fmt.Errorf("the unfinished run directory could not be removed: %w", err)
	}
	return os.RemoveAll(aside)
}

func noRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: the disk is full and no run was made; make room (kernsweep prune --dry-run shows what could go), or choose another folder with --runs", err)
	}
	return err
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
