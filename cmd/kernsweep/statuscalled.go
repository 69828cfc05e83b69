package main

import (
	"os"
	"path/filepath"
	"strings"

	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
)

// configPath is where the configuration lies, for those who look from elsewhere.
func (a *app) configPath() string {
	path, err := filepath.Abs(a.file)
	if err != nil {
		return ""
	}
	return path
}

// calledFor is how a command about a run begins: with the configuration that the
// run was made from, as long as that is there.
func (a *app) calledFor(run *results.Run) string {
	return a.called(a.configOf(run))
}

// called is how a command begins that means our runs, and this configuration.
func (a *app) called(file string) string {
	s := "kernsweep"
	if file != "testbeds.hcl" {
		s += " -f " + paste.Word(file)
	}
	if a.runs != "runs" {
		s += " --runs " + paste.Word(a.runs)
	}
	return s
}

// configOf is a run's configuration, in the words of the command line where that
// names the same.
func (a *app) configOf(run *results.Run) string {
	theirs, err := os.Stat(run.Meta.Config)
	if run.Meta.Config == "" || err != nil {
		return a.file
	}
	if ours, err := os.Stat(a.file); err == nil && os.SameFile(ours, theirs) {
		return a.file
	}
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, run.Meta.Config); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return run.Meta.Config
}

// isLatest says that "latest" names the run.
func (a *app) isLatest(run *results.Run) bool {
	newest, err := results.Latest(a.runs)
	return err == nil && newest.Name() == run.Name() && filepath.Clean(run.Dir()) == filepath.Clean(newest.Dir())
}
