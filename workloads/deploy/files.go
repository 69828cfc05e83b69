package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kernsweep/targets"
)

func (a *Agent) remember(file string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.pushed {
		if f == file {
			return
		}
	}
	a.pushed = append(a.pushed, file)
}

func (a *Agent) forget(file string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, f := range a.pushed {
		if f == file {
			a.pushed = append(a.pushed[:i], a.pushed[i+1:]...)
			return
		}
	}
}

// Keep makes path, made by a workload, one of the files that Remove deletes.
func (a *Agent) Keep(path string) { a.remember(path) }

// left are the files on the machine that are still to be removed.
func (a *Agent) left() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.pushed...)
}

// Remove deletes the agent's files from the machine. A task whose spool is still
// there is ended first: without its spool nobody would ever find it. The Agent
// is of no use afterwards.
func (a *Agent) Remove(ctx context.Context) error {
	a.mu.Lock()
	all := a.pushed
	a.pushed = nil
	a.mu.Unlock()
	var files []string
	var spools []leftover
	for _, f := range all {
		if strings.HasSuffix(f, ".spool") {
			spools = append(spools, leftover{path: f, how: "end"})
		} else {
			files = append(files, f)
		}
	}
	err := a.endTasks(ctx, spools, func(string) string { return "of this run" })
	return errors.Join(err, a.delete(ctx, files...))
}

func (a *Agent) delete(ctx context.Context, files ...string) error {
	if len(files) == 0 {
		return nil
	}
	var errs strings.Builder
	exit, err := a.link().Run(ctx, targets.Cmd{Argv: append([]string{"rm", "-rf"}, files...), Stderr: &errs})
	if err != nil {
		return fmt.Errorf("removing %s: %w", strings.Join(files, " "), err)
	}
	if !exit.OK() {
		return fmt.Errorf("removing %s: rm %s: %s", strings.Join(files, " "), exit, firstLine(errs.String()))
	}
	return nil
}
