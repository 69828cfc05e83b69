package targets

import (
	"strings"
	"time"
)

// arm begins to count silence and to take a boot loader's prompt for the end:
// the start was asked for, so nobody is expected to type.
func (w *watch) arm(silence time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silence, w.armed = silence, true
	if w.ended == nil && !w.isReady {
		w.quiet.Reset(silence)
		w.idle.Reset(verdictIdle)
	}
}

// conclude decides at once about a sign that still waits; a boot loader's doubts
// do not count when the boot was good.
func (w *watch) conclude(good bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sign == nil {
		return
	}
	if good && w.sign.wait > 0 && w.sign.stage != StageRestart {
		w.sign = nil
		return
	}
	w.decide()
}

// consoleAnew says that t's supply was off: what its console said before is not
// the next start's.
func (t *Target) consoleAnew() {
	if t.watch == nil {
		return
	}
	w := t.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.verdict == nil {
		w.anew(unknown)
	}
}

// settle ends the boot: from now on signs are events.
func (w *watch) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = true
	w.silence = 0
	w.quiet.Stop()
	w.sign = nil
}

// state is what a waiting boot needs to know.
type watchState struct {
	Ready, Silent bool
	Ended         error
	Bytes         int64
	Verdict       *ConsoleEvent
	Place         place
	Other         string // the kernel on the console, when it is not the wanted one
}

func (w *watch) state() watchState {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := watchState{w.isReady, w.silent, w.ended, w.bytes, w.verdict, w.hist.place, ""}
	if !w.hist.isWanted() && w.hist.place == inKernel {
		st.Other = w.hist.first
	}
	return st
}

// lastLines copies the last lines, the unfinished one included.
func (w *watch) lastLines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, l := range w.last {
		out = append(out, strings.ToValidUTF8(l, "?"))
	}
	if p := w.scan.partial(); strings.TrimSpace(p) != "" {
		out = append(out, strings.ToValidUTF8(p, "?"))
	}
	return out[max(0, len(out)-keepLines):]
}

// stop closes the console and waits, at most 2 s, for the last bytes.
func (w *watch) stop() {
	w.mu.Lock()
	w.stopped = true
	w.silence = 0
	w.quiet.Stop()
	w.mu.Unlock()
	_ = w.rwc.Close() // what matters has been read
	t := time.NewTimer(2 * time.Second)
	defer t.Stop()
	select {
	case <-w.done:
	case <-t.C:
	}
	w.mu.Lock()
	w.idle.Stop()
	w.settled = true
	w.mu.Unlock()
}

// StopConsole ends the recording of t's console that Boot began. The writer
// given to Boot is not used after it returned. It may be called at any time.
func (t *Target) StopConsole() {
	if t.watch != nil {
		t.watch.stop()
		t.watch = nil
	}
}

// ConsoleEnded is closed when the console that Boot began to record has ended, as
// that of a guest whose process is gone; nil where none is recorded.
func (t *Target) ConsoleEnded() <-chan struct{} {
	if t.watch == nil {
		return nil
	}
	return t.watch.done
}

// ConsoleMark is a place in the console's events, for ConsoleEvents.
func (t *Target) ConsoleMark() int {
	if t.watch == nil {
		return 0
	}
	t.watch.mu.Lock()
	defer t.watch.mu.Unlock()
	return len(t.watch.events)
}

// ConsoleEvents returns the complaints and restarts seen on the console of the
// present boot since mark, oldest first; at most 1000 are kept of a boot.
func (t *Target) ConsoleEvents(mark int) []ConsoleEvent {
	if t.watch == nil {
		return nil
	}
	t.watch.mu.Lock()
	defer t.watch.mu.Unlock()
	if mark < 0 || mark >= len(t.watch.events) {
		return nil
	}
	return append([]ConsoleEvent(nil), t.watch.events[mark:]...)
}

// ConsoleBytes is how many bytes the console has said in the present boot.
func (t *Target) ConsoleBytes() int64 {
	if t.watch == nil {
		return 0
	}
	return t.watch.state().Bytes
}

// ConsoleLines returns the last lines of the console, newest last, at most 40.
func (t *Target) ConsoleLines() []string {
	if t.watch == nil {
		return nil
	}
	return t.watch.lastLines()
}
