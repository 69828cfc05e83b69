package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// createRun makes the run directory with everything that is known beforehand.
func (a *app) createRun(lab *config.Lab, p *plan.Plan, command []string) (*results.Run, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	images, err := imageHashes(lab, p)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	host, _ := os.Hostname()
	run, err := results.Create(a.runs, p.Sweep, results.RunMeta{
		Who: who(), Host: host, Version: version(), Command: append([]string{"run"}, command...), Seed: p.Seed,
		PlanHash: hex.EncodeToString(sum[:]), Images: images,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	if err := run.WriteFile("testbeds.hcl", sourceCopy(lab)); err != nil {
		return nil, err
	}
	return run, run.WritePlan(orchestrator.Summary(lab, p), p)
}

// imageHashes are the SHA-256 of every image file of the plan, by path.
func imageHashes(lab *config.Lab, p *plan.Plan) (map[string]string, error) {
	out := map[string]string{}
	for _, f := range orchestrator.ImageFiles(lab, p) {
		h, err := hashFile(f)
		if err != nil {
			return nil, err
		}
		out[f] = h
	}
	return out, nil
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
