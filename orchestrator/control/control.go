// Package control lets another process of the same user steer a run while its
// controller executes it: a terminal view, the web page, a command. A request is
// one line of JSON over a Unix socket in RUNS/.control, and so is its answer.
// What was asked, and by whom, is the controller's to put into the journal.
package control

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"kernsweep/orchestrator/results"
)

// Action is what a controller can be asked to do.
type Action string

// Actions. All but Stop and StopNow are about one lane.
const (
	// SkipTrial ends the trial that runs, or the next one if none does; its
	// outcome is skipped.
	SkipTrial Action = "skip-trial"
	// SkipKernel ends the boot of Kernel ("" = the one that runs) and leaves out
	// what is left of that kernel in the lane.
	SkipKernel Action = "skip-kernel"
	// Pause begins no further boot or trial in the lane; what runs ends as it would.
	Pause Action = "pause"
	// GoOn ends a pause.
	GoOn Action = "go-on"
	// Quarantine gives the target up; what is left of its lane is skipped.
	Quarantine Action = "quarantine"
	// Stop ends the run in good order, as Ctrl-C once does.
	Stop Action = "stop"
	// StopNow quits at once, as Ctrl-C twice does.
	StopNow Action = "stop-now"
)

// Actions are all of them, in the order in which people should see them.
func Actions() []Action {
	return []Action{Pause, GoOn, SkipTrial, SkipKernel, Quarantine, Stop, StopNow}
}

// OfLane says that the action is about one lane.
func (a Action) OfLane() bool { return a != Stop && a != StopNow }

// Request is one thing asked of a controller.
type Request struct {
	Action Action `json:"action"`
	Lane   string `json:"lane,omitempty"`
	Kernel string `json:"kernel,omitempty"` // of SkipKernel; "" = the one that runs
	By     string `json:"by"`               // who asks, and through what: "ada, kernsweep watch"
	Why    string `json:"why,omitempty"`    // for the journal
}

// Check refuses a request that means nothing, before it is sent or obeyed.
func (r Request) Check() error {
	known := false
	for _, a := range Actions() {
		known = known || a == r.Action
	}
	switch {
	case !known:
		return fmt.Errorf("action %q: there are %v", r.Action, Actions())
	case r.Action.OfLane() && r.Lane == "":
		return fmt.Errorf("%s: of which lane?", r.Action)
	case r.By == "":
		return fmt.Errorf("%s: who asks?", r.Action)
	case r.Kernel != "" && r.Action != SkipKernel:
		return fmt.Errorf("%s takes no kernel", r.Action)
	}
	for name, s := range map[string]string{"lane": r.Lane, "kernel": r.Kernel, "who asks": r.By, "why": r.Why} {
		if len(s) > maxText {
			return fmt.Errorf("%s: %s is longer than %d bytes", r.Action, name, maxText)
		}
		if strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s) {
			return fmt.Errorf("%s: %s has control characters", r.Action, name)
		}
	}
	return nil
}

// maxText bounds each text of a request: it is repeated for every trial that is
// left out.
const maxText = 300

// Steered is a controller that can be asked. Said is one sentence: what will
// happen, or that it has. An error says why it will not.
type Steered interface {
	Steer(ctx context.Context, r Request) (said string, err error)
}

// RefusedError is why a controller does not do what it was asked.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

// answer is the line that comes back.
type answer struct {
	Said  string `json:"said,omitempty"`
	Error string `json:"error,omitempty"`
}

// socket is where a run's controller listens, below the folder of the runs. The
// name is the run's ID, which a copy of the run has too: only one of them is held.
func socket(run *results.Run) string { return run.Meta.ID + ".sock" }
