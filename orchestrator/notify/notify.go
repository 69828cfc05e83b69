// Package notify tells people about a run that nobody watches: by a command, a
// webhook or a mail. It never holds a run up and never fails it: what cannot be
// sent is tried again for a while, and then is a warning.
package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kinds of events, as the attribute on of a notify block names them.
const (
	Finish      = "finish"      // the run came to its end
	Interrupted = "interrupted" // it was stopped, and can be resumed
	Quarantine  = "quarantine"  // a target was withdrawn, the others go on
	Deadline    = "deadline"    // --until left something out
	Test        = "test"        // somebody tries the block
)

// Kinds are those that a block may choose from.
func Kinds() []string { return []string{Finish, Interrupted, Quarantine, Deadline} }

// Event is what a message tells. A field that does not apply is empty. Nothing
// in it is secret.
type Event struct {
	ID         string         `json:"id"`    // the same in every try
	Kind       string         `json:"event"` // Finish, …
	At         time.Time      `json:"at"`
	Sweep      string         `json:"sweep"`
	Run        string         `json:"run"` // name of the run directory
	Dir        string         `json:"dir"` // its path on the controller
	Controller string         `json:"controller"`
	Target     string         `json:"target,omitempty"`
	Kernel     string         `json:"kernel,omitempty"`
	Cause      string         `json:"cause,omitempty"` // the first one
	Outcomes   map[string]int `json:"outcomes,omitempty"`
	LeftOut    int            `json:"left_out,omitempty"` // trials, by --until
	ExitStatus *int           `json:"exit_status,omitempty"`
	Report     string         `json:"report,omitempty"` // path on the controller
	Next       string         `json:"next,omitempty"`   // the command to give
	Subject    string         `json:"subject"`          // one line
	Text       string         `json:"text"`             // for people, several lines
}

// Driver sends an event. A *PermanentError is not worth another try.
type Driver interface {
	Send(ctx context.Context, e Event) error
	// Ready says what is missing for sending, such as a password, without sending.
	Ready() error
}

// Block is a notify block of a sweep.
type Block struct {
	Kind string   // label: the driver's name
	Name string   // second label, may be ""
	On   []string // kinds of events
	Driver
}

func (b Block) String() string {
	if b.Name != "" {
		return fmt.Sprintf("notify %q %q", b.Kind, b.Name)
	}
	return fmt.Sprintf("notify %q", b.Kind)
}

func (b Block) wants(kind string) bool { return kind == Test || slices.Contains(b.On, kind) }

// Choice is what every notify block takes beside its driver's attributes.
type Choice struct {
	On []string `hcl:"on,optional" doc:"events: \"finish\" (the run ended), \"interrupted\" (it was stopped), \"quarantine\" (a target was withdrawn), \"deadline\" (--until left something out); default all"`
}

// Check looks at the names of the events.
func (c *Choice) Check() error {
	if c.On == nil {
		c.On = Kinds()
	}
	if len(c.On) == 0 {
		return errors.New("on is empty, so nothing is ever sent: leave it out for all events")
	}
	for _, k := range c.On {
		if !slices.Contains(Kinds(), k) {
			return fmt.Errorf("on: there is no event %q; there are %s", k, strings.Join(Kinds(), ", "))
		}
	}
	return nil
}

// PermanentError says that trying again changes nothing.
type PermanentError struct {
	Err  error
	Part bool // some of the receivers have the message
}

func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *PermanentError) Unwrap() error { return e.Err }

// LaterError says when the receiver wants to be asked again.
type LaterError struct {
	Err   error
	After time.Duration
}

func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *LaterError) Unwrap() error { return e.Err }

func permanent(format string, v ...any) error {
	return &PermanentError{Err: fmt.Errorf(format, v...)}
}
