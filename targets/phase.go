package targets

import (
	"fmt"
	"strings"
	"time"
)

// Phase of a boot, in order.
type Phase string

// The phases of a boot (DESIGN.md section 9).
const (
	PhaseAsked     Phase = "asked"
	PhaseDown      Phase = "down"
	PhaseLoading   Phase = "loading"
	PhaseKernel    Phase = "kernel"
	PhaseReachable Phase = "reachable"
	PhaseVerified  Phase = "verified"
)

// PhaseTime is when a phase was entered, by the controller's clock.
type PhaseTime struct {
	Phase Phase     `json:"phase"`
	At    time.Time `json:"at"`
}

var phaseOrder = [...]Phase{PhaseAsked, PhaseDown, PhaseLoading, PhaseKernel, PhaseReachable, PhaseVerified}

// before says that a boot enters a earlier than b.
func before(a, b Phase) bool {
	for _, p := range phaseOrder {
		if p == a {
			return a != b
		}
		if p == b {
			return false
		}
	}
	return false
}

// BootError is a data point about a kernel: it panicked, hung, or was not the
// one asked for. Every other error of a boot is infrastructure.
type BootError struct {
	Kernel    string
	Stage     string   // "panic", "hang", "no root", "wrong kernel", …
	LastLines []string // of the console, newest last
	Err       error
}

func (e *BootError) Error() string {
	s := fmt.Sprintf("kernel %s: %s: %v", e.Kernel, e.Stage, e.Err)
	if n := len(e.LastLines); n > 0 {
		s += fmt.Sprintf(" (last console line: %q)", strings.TrimSpace(e.LastLines[n-1]))
	}
	return s
}

func (e *BootError) Unwrap() error { return e.Err }
