package orchestrator

import (
	"context"
	"regexp"
	"sync"
	"time"

	"kernsweep/orchestrator/results"
)

// helm is where people's hands are laid on a lane: what it does now, and what it
// was asked. The lane looks at it before it begins anything.
type helm struct {
	mu     sync.Mutex
	change chan struct{}     // closed at the next change of a pause
	now    *stretch          // nil: between two, or bringing the target back
	paused *halt             // nil: it is not
	next   string            // the next trial is skipped, and why; "": it is not
	left   map[string]string // kernels of which nothing more is begun, and why
	given  string            // why the target is given up; "": it is not
	at     int               // index of the planned boot that the lane is at
	over   bool              // nothing more can be asked
}

// halt is a pause.
type halt struct {
	since time.Time
	who   string
}

// stretch is work of a lane that a person can end.
type stretch struct {
	what    string // for people
	kernel  string // "" = of none
	trial   bool
	waiting bool  // for others; nothing has begun
	ended   bool  // the end of the trial is written: its verdict is not to be cut off
	by      error // why a person ended it; nil: nobody did
	cancel  context.CancelCauseFunc
	over    func() bool // it is being ended, by a person or with the whole run
}

// end ends it for the reason why, and says whether there was something to end.
func (s *stretch) end(why string) bool {
	if s.ended || s.over() {
		return false
	}
	s.by = &handError{why}
	s.cancel(s.by)
	return true
}

func newHelm() *helm { return &helm{change: make(chan struct{}), left: map[string]string{}} }

// changed wakes who waits for the end of a pause; h.mu is held.
func (h *helm) changed() {
	close(h.change)
	h.change = make(chan struct{})
}

// leaves says why nothing more of a kernel is begun, "" when it is; h.mu is held.
func (h *helm) leaves(kernel string) string {
	if h.given != "" {
		return h.given
	}
	return h.left[kernel]
}

// leave leaves a kernel out; h.mu is held.
func (h *helm) leave(kernel, why string) { h.left[kernel] = why }

// leftOut is leaves for the lane.
func (h *helm) leftOut(kernel string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaves(kernel)
}

// givenUp is why the target is given up by hand, "" when it is not.
func (h *helm) givenUp() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.given
}

// skipsNext says once why the next trial is skipped, "" when it is not.
func (h *helm) skipsNext() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	why := h.next
	h.next = ""
	return why
}

// reach says which planned boot the lane is at.
func (h *helm) reach(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = i
}

// close takes no more requests, and says why the target was given up.
func (h *helm) close() (given string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	return h.given
}

func (h *helm) isOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// begin begins a stretch: its context ends when a person ends it. It does not when
// the lane was paused, or asked to leave it out, in the meantime: ok is false.
func (h *helm) begin(ctx context.Context, s stretch) (within context.Context, end func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paused != nil || h.leaves(s.kernel) != "" || s.trial && h.next != "" {
		return ctx, func() {}, false
	}
	within, end = h.enter(ctx, &s)
	return within, end, true
}

// resume is begin for what goes on already: a pause comes too late for it, and
// what is left out is ended.
func (h *helm) resume(ctx context.Context, s stretch) (within context.Context, end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	within, end = h.enter(ctx, &s)
	if why := h.leaves(s.kernel); why != "" {
		s.end(why)
	}
	return within, end
}

func (h *helm) enter(ctx context.Context, s *stretch) (within context.Context, end func()) {
	within, s.cancel = context.WithCancelCause(ctx)
	s.over = func() bool { return within.Err() != nil }
	h.now = s
	return within, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.now = nil
		s.cancel(nil)
	}
}

// started says that what waited for others begins now; false when it must not,
// for the lane was paused.
func (h *helm) started() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil || !h.now.waiting {
		return true // nothing was asked to wait
	}
	if h.paused != nil {
		return false
	}
	h.now.waiting = false
	return true
}

// concludes says that the trial has ended, and by whose hand ("": by itself): from
// now on it can only be judged.
func (h *helm) concludes() (why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil || !h.now.trial {
		return ""
	}
	if h.now.by != nil {
		return h.now.by.Error()
	}
	h.now.ended = true
	return ""
}

// halted is the pause that the lane is in, and what tells that it changed.
func (h *helm) halted() (p *halt, change <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.paused, h.change
}

var askedNote = regexp.MustCompile(`(?s)^asked: (?:skip-kernel (\S+)|quarantine), by (.*)`)

// inherit takes over what people asked of the lane since a session: a kernel that
// was left out stays so, a target that was given up too. A pause ended with its
// controller.
func (h *helm) inherit(m *results.Model, lane string, from int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range m.NotesSince(from) {
		found := askedNote.FindStringSubmatch(n.Note)
		if n.Lane != lane || found == nil {
			continue
		}
		kernel, who := found[1], results.SkippedBy+found[2]
		if kernel != "" {
			h.leave(kernel, who+" (kernel "+kernel+", before the run was resumed)")
		} else {
			h.given = who + " (target " + lane + ", before the run was resumed)"
		}
	}
}
