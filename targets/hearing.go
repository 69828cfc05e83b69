package targets

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// hearing is the console of a machine that is being restarted: it listens beside
// whoever drives the console, and may type. One goroutine uses it at a time.
type hearing struct {
	w     *watch
	ear   *Tap
	own   bool // the console was opened for this
	scan  lineScanner
	state string // where the machine is by its last mark: markKernel, markLoader, "" unknown
}

// Marks that a console line leaves.
const (
	markKernel = "kernel"
	markLoader = "boot loader"
)

var (
	// What the magic SysRq key says: "SysRq : Resetting" before Linux 5.0, "sysrq: " since.
	sysrqWord  = regexp.MustCompile(`(?i)\bsysrq ?: `)
	resetting  = regexp.MustCompile(`(?i)\bsysrq ?: Resetting`)
	pxePrompt  = regexp.MustCompile(`^boot: ?$`) // SYSLINUX counts down behind it without a word
	shellReady = regexp.MustCompile(`[#$] ?$`)
)

// listen opens an ear on t's console, which is opened for it where no boot
// records it.
func (t *Target) listen(ctx context.Context) (*hearing, error) {
	h := &hearing{w: t.watch}
	if h.w == nil {
		if t.Console == nil {
			return nil, fmt.Errorf("target %s has no console block", t.Name)
		}
		octx, stop := context.WithTimeout(ctx, tryTime)
		defer stop()
		rwc, err := t.Console.Open(octx)
		if err != nil {
			return nil, fmt.Errorf("its console does not open: %w", err)
		}
		h.w, h.own = startWatch(rwc, watchOptions{}), true
		h.w.settle()
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.w.ended != nil {
		return nil, fmt.Errorf("its console has closed: %w", h.w.ended)
	}
	if h.w.ear != nil {
		return nil, errors.New("somebody listens for a restart already")
	}
	h.ear = &Tap{w: h.w, news: make(chan struct{}, 1)}
	h.w.ear = h.ear
	for _, line := range h.w.last {
		h.mark(line)
	}
	return h, nil
}

// close ends the ear, and the console where it was opened for this. A nil
// hearing may be closed.
func (h *hearing) close() {
	if h == nil {
		return
	}
	h.w.mu.Lock()
	h.w.ear = nil
	h.w.mu.Unlock()
	if h.own {
		h.w.stop()
	}
}

// mark notes what a line says about who is at work.
func (h *hearing) mark(line string) {
	_, msg, timed := kernelTime(line)
	switch {
	case goingDown.MatchString(msg) && (timed || strings.HasPrefix(msg, "reboot: ")), loaderBanner.MatchString(strings.TrimSpace(line)):
		h.state = markLoader
	case timed, strings.HasPrefix(msg, "Linux version "), handover.MatchString(msg), initRun.MatchString(msg):
		h.state = markKernel
	}
}

// atLoader says what shows that a boot loader listens, "" when nothing does.
func (h *hearing) atLoader() string {
	h.w.mu.Lock()
	part := strings.TrimLeft(h.w.scan.partial(), " ")
	h.w.mu.Unlock()
	switch {
	case part != "" && (loaderPrompt.MatchString(part) || pxePrompt.MatchString(part)):
		return fmt.Sprintf("its prompt %q", strings.ToValidUTF8(part, "?"))
	case h.state == markLoader:
		return "what it said last"
	}
	return ""
}

// lines gives every whole line that comes until ctx ends, which is no error, or
// until the console closes. each says whether to go on.
func (h *hearing) lines(ctx context.Context, each func(line string) (more bool)) error {
	for {
		b, err := h.ear.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, c := range b {
			if line, ok := h.scan.add(c); ok {
				h.mark(line)
				if !each(line) {
					return nil
				}
			}
		}
	}
}

// within is lines for at most d; found says that each ended it.
func (h *hearing) within(ctx context.Context, d time.Duration, each func(string) bool) (found bool, err error) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	err = h.lines(ctx, func(line string) bool {
		found = !each(line)
		return !found
	})
	return found, err
}

// restarting says that a line shows a machine going down or starting anew.
func restarting(line string) bool {
	sec, msg, timed := kernelTime(line)
	if goingDown.MatchString(msg) && (timed || strings.HasPrefix(msg, "reboot: ")) || resetting.MatchString(msg) {
		return true
	}
	if loaderBanner.MatchString(strings.TrimSpace(line)) {
		return true
	}
	_, isBanner := bannerOf(msg)
	return isBanner && (timed && sec < 1 || !timed && strings.HasPrefix(msg, "Linux version "))
}

// quiet waits, at most 10 s, until the console has said nothing for 2 s.
func (h *hearing) quiet(ctx context.Context) (bool, error) {
	const still, most = 2 * time.Second, 10 * time.Second
	end := time.Now().Add(most)
	for time.Now().Before(end) {
		qctx, stop := context.WithTimeout(ctx, still)
		b, err := h.ear.Next(qctx)
		over := qctx.Err() != nil
		stop()
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case over && len(b) == 0:
			return true, nil
		case err != nil:
			return false, err
		}
		for _, c := range b {
			if line, ok := h.scan.add(c); ok {
				h.mark(line)
			}
		}
	}
	return false, nil
}

// forget drops what was heard and not read.
func (h *hearing) forget() {
	h.ear.mu.Lock()
	h.ear.buf = nil
	h.ear.mu.Unlock()
	h.scan = lineScanner{}
}

// typeSlowly types paced, for serial ports without flow control lose what comes at once.
func (h *hearing) typeSlowly(ctx context.Context, text string) error {
	for i := range len(text) {
		if _, err := h.w.rwc.Write([]byte{text[i]}); err != nil {
			return fmt.Errorf("the console takes no input: %w", err)
		}
		if err := sleep(ctx, keyPace); err != nil {
			return err
		}
	}
	return nil
}

// keyPace is the time between two characters typed on a console.
const keyPace = 10 * time.Millisecond

// sleep waits; its error is ctx's cause.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
