package orchestrator

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
)

// preflightTime bounds the whole preflight, for all targets at once.
const preflightTime = time.Minute

// Finding is what the preflight says of one target.
type Finding struct {
	Target string
	Text   string
	Safe   bool // nothing here keeps anyone from going home
}

// Preflight tries to reach every target of the plan, at most a minute for all.
// A virtual target is reached by booting it, so only real ones are tried here.
func Preflight(ctx context.Context, lab *config.Lab, p *plan.Plan, dial targets.DialFunc) []Finding {
	ctx, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	out := make([]Finding, len(p.Lanes))
	var wg sync.WaitGroup
	for i, l := range p.Lanes {
		wg.Go(func() { out[i] = preflightTarget(ctx, lab.Target(l.Target), dial) })
	}
	wg.Wait()
	return out
}

func preflightTarget(ctx context.Context, t *config.Target, dial targets.DialFunc) Finding {
	f := reach(ctx, t, dial)
	if missing := missingPrograms(t); len(missing) > 0 {
		f.Text, f.Safe = f.Text+"; missing on the controller: "+strings.Join(missing, ", "), false
	}
	return f
}

// missingPrograms are those that the target's drivers will start in vain.
func missingPrograms(t *config.Target) []string {
	var missing []string
	for _, d := range []any{t.Boot, t.Power, t.Console} {
		r, ok := d.(targets.Runner)
		if !ok {
			continue
		}
		for _, p := range r.Programs(&t.Target) {
			if _, err := exec.LookPath(p); err != nil && !slices.Contains(missing, p) {
				missing = append(missing, p)
			}
		}
	}
	return missing
}

func reach(ctx context.Context, t *config.Target, dial targets.DialFunc) Finding {
	f := Finding{Target: t.Name, Safe: true}
	if targets.TraitsOf(t.Boot).Local {
		f.Text = "virtual, starts with its first boot"
		return f
	}
	conn, err := dial(ctx, t.SSH, targets.DialOptions{})
	if err != nil {
		f.Text = "not reached: " + err.Error()
		f.Safe = t.Power != nil
		if f.Safe {
			f.Text += " (its power driver will be tried)"
		}
		return f
	}
	defer conn.Close()
	exit, err := conn.Run(ctx, targets.Cmd{Argv: []string{"true"}})
	switch {
	case err != nil:
		f.Text, f.Safe = "logged in, but a command fails: "+err.Error(), false
	case !exit.OK():
		f.Text, f.Safe = fmt.Sprintf("logged in, but `true` %s", exit), false
	default:
		f.Text = "reached"
	}
	return f
}
