package targets

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// Times of a verdict: it falls at the latest verdictIdle after the last byte; the
// wait collects the call trace that follows a sign. A console that talks on gets
// it verdictMax after the sign.
const (
	verdictIdle = 400 * time.Millisecond
	verdictMax  = 5 * time.Second
	clockSlack  = 15 * time.Second // some kernels' clocks begin with the firmware's
)

// pending is a sign that is not a verdict yet.
type pending struct {
	finding
	at time.Time
}

// turn forgets signs that a line settles: those of the system before, and a
// loader's doubt that it finds a kernel.
func (w *watch) turn(f finding) {
	doubt := w.sign != nil && w.sign.wait > 0 && (w.sign.stage != StageRestart || f.phase == PhaseKernel && f.stage == "")
	if f.phase != "" && !w.begun || f.kernel && doubt {
		w.sign = nil
	}
	w.begun = w.begun || f.phase != ""
}

// bad takes a sign; the one of a boot that explains most becomes its verdict.
func (w *watch) bad(f finding, line string) {
	if f.what == "" {
		f.what = strings.TrimSpace(line)
	}
	if w.earlier(f) {
		f.wait, f.old = restartWait, true
		f.what = "printed by a kernel that ran before the start was asked for, and nothing has started since: " + f.what
	}
	w.event(f.stage, f.what)
	if w.settled || w.verdict != nil || w.tap != nil || f.mild {
		return
	}
	if w.tolerant && Survivable(f.stage) {
		return
	}
	e := &pending{finding: f, at: time.Now()}
	switch {
	case w.sign == nil:
		w.sign, w.signed = e, e.at
	case outranks(f, w.sign.finding):
		if w.sign.wait > 0 {
			w.signed = e.at
		}
		e.what += "; first: " + w.sign.what
		w.sign = e
	}
}

// earlier says that the complaint is the old system's, which may crash on its way
// down: its clock has run for longer than this console is open.
func (w *watch) earlier(f finding) bool {
	return w.hist.place == unknown && !w.settled && !w.fresh && f.sec > (time.Since(w.opened)+clockSlack).Seconds()
}

// overdue says that the sign has waited long enough for its explanation while
// the console talks on.
func (w *watch) overdue() bool {
	switch {
	case w.sign == nil:
		return false
	case w.sign.wait == 0:
		return time.Since(w.signed) >= verdictMax
	}
	return w.sign.stage == StageRestart && time.Since(w.signed) >= w.sign.wait
}

// onIdle judges what stands on the console when it pauses: a sign with its
// trace, a line without an end, a prompt.
func (w *watch) onIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if part := w.scan.partial(); part != "" && !w.settled && w.tap == nil {
		w.peek(part)
	}
	if w.sign == nil {
		return
	}
	left := w.sign.wait - time.Since(w.heard)
	if w.sign.stage == StageRestart {
		left = min(left, w.sign.wait-time.Since(w.signed))
	}
	if w.sign.wait > 0 && left > 0 {
		w.idle.Reset(left)
		return
	}
	w.decide()
}

// peek reads a line that has no end.
func (w *watch) peek(part string) {
	prompt := strings.TrimLeft(plain(part), " ")
	if w.armed && !w.isReady && w.hist.atPrompt(prompt) {
		what := fmt.Sprintf("found in the boot loader, at its prompt %q", prompt)
		if w.sign != nil && w.sign.wait > 0 {
			w.sign.what += "; " + what
			w.sign.wait = 0
		} else if w.sign == nil {
			w.bad(finding{stage: StageLoader, what: what, rank: rankTrouble}, part)
		}
		return
	}
	copied := w.hist
	copied.loaders = maps.Clone(copied.loaders)
	if f := copied.read(part); f.stage != "" && f.phase == "" {
		w.bad(f, part)
	}
}

// anew says that what the console said before is not the start's that is judged.
func (w *watch) anew(p place) {
	w.sign, w.begun, w.paused = nil, true, false
	w.hist = bootHistory{wanted: w.hist.wanted, place: p}
}

// decide turns the sign into the verdict, once the start was asked for.
func (w *watch) decide() {
	if !w.armed && !w.fresh && !w.settled {
		return
	}
	if w.verdict == nil && !w.settled {
		w.verdict = &ConsoleEvent{At: w.sign.at, Stage: w.sign.stage, Line: w.sign.what, Old: w.sign.old}
		w.quiet.Stop()
		if w.onFail != nil {
			w.onFail()
		}
	}
	w.sign = nil
	w.tell()
}
