package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
)

// question is asked before anything is changed.
type question struct {
	request control.Request
	text    string
	doing   string // of the lane when it was asked
}

// steer asks the person about what a key would do, or says why it cannot be done.
func (m *model) steer(k string) {
	action, ok := map[string]control.Action{"s": control.SkipTrial, "S": control.SkipKernel, "p": control.Pause,
		"Q": control.Quarantine, "x": control.Stop}[k]
	if !ok {
		return
	}
	l, selected := m.selected()
	if k == "p" && l.State == live.Paused {
		action = control.GoOn
	}
	if why := m.cannot(action, l, selected); why != "" {
		m.say(why, true)
		return
	}
	q := &question{request: control.Request{Action: action}, doing: l.Kernel + l.Doing}
	if action.OfLane() {
		q.request.Lane = l.Name
	}
	if action == control.SkipKernel {
		q.request.Kernel = l.Kernel
	}
	q.text = m.words(action, l)
	m.question = q
}

// cannot says why an action makes no sense now, "" when it does.
func (m *model) cannot(action control.Action, l live.LaneView, selected bool) string {
	switch {
	case m.asking:
		return "the controller has not answered yet"
	case m.over():
		return fmt.Sprintf("the run is not being executed (%s): there is nothing to steer", m.view.State)
	case action.OfLane() && !selected:
		return "no lane is selected"
	case action.OfLane() && l.State.Over():
		return fmt.Sprintf("lane %s is over (%s)", l.Name, l.State)
	case action == control.SkipKernel && l.Kernel == "":
		return fmt.Sprintf("lane %s has no kernel yet", l.Name)
	}
	return m.src.Cannot()
}

// words say what an action will do, to which lane and kernel.
func (m *model) words(action control.Action, l live.LaneView) string {
	what := l.Doing
	if l.Kernel != "" {
		what += ", kernel " + l.Kernel
	}
	left := fmt.Sprintf("%d of its %d trials are still to come", l.Trials-l.Done, l.Trials)
	switch action {
	case control.SkipTrial:
		return fmt.Sprintf("Skip a trial of lane %s (now: %s)? The trial that runs is ended, or the next one left out; its outcome is \"skipped\".", l.Name, what)
	case control.SkipKernel:
		return fmt.Sprintf("Skip kernel %s in lane %s? Its boot ends, and what is left of this kernel in this lane is \"skipped\"; other kernels go on.", l.Kernel, l.Name)
	case control.Pause:
		return fmt.Sprintf("Pause lane %s (now: %s)? What runs ends as it would; then no boot and no trial begins until p lets it go on.", l.Name, what)
	case control.GoOn:
		return fmt.Sprintf("Let lane %s go on? %s.", l.Name, left)
	case control.Quarantine:
		return fmt.Sprintf("Quarantine target %s? It is given up for this run: %s, and are skipped.", l.Name, left)
	}
	return fmt.Sprintf("Stop the run, all %d lanes? Nothing more begins, trials that run are ended, targets go back to their known-good kernels; %s goes on later.",
		len(m.view.Lanes), m.src.Resume)
}

// answer takes the person's answer to a question.
func (m *model) answer(k string) tea.Cmd {
	q := m.question
	m.question = nil
	if k != "y" && k != "Y" {
		m.say("nothing was changed", false)
		if k == "ctrl+c" {
			return tea.Quit
		}
		return nil
	}
	l, _ := m.selected()
	if why := m.cannot(q.request.Action, l, true); why != "" {
		m.say(why, true)
		return nil
	}
	// What was asked about may have ended meanwhile: the next trial is not to pay for it.
	if a := q.request.Action; (a == control.SkipTrial || a == control.SkipKernel) && l.Kernel+l.Doing != q.doing {
		m.say(fmt.Sprintf("lane %s has gone on meanwhile (%s): nothing was changed", l.Name, l.Doing), true)
		return nil
	}
	return m.ask(q.request)
}
