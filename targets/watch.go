package targets

import (
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Limits of the console watcher.
const (
	keepLines  = 40
	keepEvents = 1000
	powerPause = time.Second // a machine that starts anew says nothing for so long
)

// ConsoleEvent is a kernel's complaint or a restart seen on the console.
type ConsoleEvent struct {
	At    time.Time `json:"at"`    // by the controller's clock
	Stage string    `json:"stage"` // as in BootError
	Line  string    `json:"line"`
	Old   bool      `json:"old,omitempty"` // of the system before: no word on the kernel
}

// watch records a console to its end and reads the signs on it. It never says
// that a system is up: only a probe does (law 4).
type watch struct {
	rwc     io.ReadWriteCloser
	rec     io.Writer
	note    func(string)
	ready   *regexp.Regexp // nil: none
	onPhase func(Phase)
	onFail  func() // called once, when verdict is set
	changed chan struct{}
	done    chan struct{} // closed when the console has ended

	mu      sync.Mutex
	scan    lineScanner
	hist    bootHistory
	last    []string
	bytes   int64
	isReady bool
	tap     *Tap // a boot method's ear, while it drives the console
	ear     *Tap // a restart's, which listens beside it
	armed,  // the start was asked for: a loader's prompt is a verdict now
	fresh, // nothing of an earlier start can be on this console
	begun, // a start was seen
	paused, // it rested before the start was asked for, as for a power cycle
	tolerant,
	settled, // the boot is over: signs are events
	stopped bool
	sign    *pending  // the sign that explains most, until the verdict
	signed  time.Time // when the first one came
	heard   time.Time // when the last byte came
	opened  time.Time
	idle    *time.Timer
	silence time.Duration // 0: not counted
	quiet   *time.Timer
	silent  bool
	ended   error // of the console; io.EOF
	verdict *ConsoleEvent
	events  []ConsoleEvent
	recErr  error
}

// watchOptions belong to one boot.
type watchOptions struct {
	Record   io.Writer // nil: nowhere
	Note     func(string)
	Ready    *regexp.Regexp
	Phase    func(Phase)
	Fail     func()
	Wanted   string // glob of the release
	Tolerant bool   // stalls are notes: the machine is emulated on a busy host
	Fresh    bool   // nothing of an earlier start can be on this console
}

// startWatch begins to read rwc.
func startWatch(rwc io.ReadWriteCloser, o watchOptions) *watch {
	w := newWatch(rwc, o)
	go w.pump()
	return w
}

func newWatch(rwc io.ReadWriteCloser, o watchOptions) *watch {
	w := &watch{
		rwc: rwc, rec: o.Record, note: o.Note, ready: o.Ready, onPhase: o.Phase, onFail: o.Fail,
		changed: make(chan struct{}, 1), done: make(chan struct{}),
		hist: bootHistory{wanted: o.Wanted}, tolerant: o.Tolerant, fresh: o.Fresh, begun: o.Fresh,
		opened: time.Now(),
	}
	w.idle = time.AfterFunc(time.Hour, w.onIdle)
	w.idle.Stop()
	w.quiet = time.AfterFunc(time.Hour, w.onSilence)
	w.quiet.Stop()
	return w
}

// pump reads until the console ends or stop closes it.
func (w *watch) pump() {
	defer close(w.done)
	buf := make([]byte, 4096)
	for {
		n, err := w.rwc.Read(buf)
		if n > 0 {
			w.record(buf[:n])
			w.feed(buf[:n])
		}
		if err != nil {
			w.end(err)
			return
		}
	}
}

// record keeps the bytes as they came; the watch goes on when that fails.
func (w *watch) record(p []byte) {
	w.mu.Lock()
	stopped := w.stopped
	w.mu.Unlock()
	if w.rec == nil || w.recErr != nil || stopped {
		return
	}
	if _, err := w.rec.Write(p); err != nil {
		w.recErr = err
		if w.note != nil {
			w.note("the console is no longer recorded: " + err.Error())
		}
	}
}

// feed takes bytes of the console.
func (w *watch) feed(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += int64(len(p))
	w.paused = w.paused || !w.armed && !w.heard.IsZero() && time.Since(w.heard) > powerPause
	w.silent, w.heard = false, time.Now()
	for _, ear := range []*Tap{w.tap, w.ear} {
		if ear != nil {
			ear.put(p)
		}
	}
	if w.silence > 0 && !w.isReady {
		w.quiet.Reset(w.silence)
	}
	for _, c := range p {
		if line, ok := w.scan.add(c); ok {
			w.line(line)
		}
	}
	if w.ready != nil && !w.isReady && len(w.scan.buf) <= keepLine {
		w.checkReady(w.scan.partial()) // a prompt has no end of line
	}
	w.idle.Reset(verdictIdle)
	if w.overdue() {
		w.decide()
	}
}

// line reads one whole line.
func (w *watch) line(line string) {
	w.last = append(w.last, line)
	if len(w.last) > keepLines {
		w.last = append(w.last[:0], w.last[len(w.last)-keepLines:]...)
	}
	f := w.hist.read(line)
	if f.phase != "" && w.paused && !w.armed { // the method cut its power
		w.anew(unknown)
		f = w.hist.read(line)
	}
	if f.again && w.isReady { // it was the old system's word
		w.isReady = false
		if w.silence > 0 {
			w.quiet.Reset(w.silence)
		}
	}
	driven := w.tap != nil && f.phase == PhaseKernel // not the kernel that is wanted
	if f.phase != "" && w.onPhase != nil && !w.settled && !driven {
		w.onPhase(f.phase)
		w.tell()
	}
	w.turn(f)
	if f.stage != "" {
		w.bad(f, line)
	} else if w.settled && f.phase != "" {
		w.event(StageRestart, strings.TrimSpace(line))
	}
	if f.final && w.sign != nil && w.sign.wait == 0 && w.tap == nil {
		w.decide()
	}
	for _, m := range messages(line) {
		w.checkReady(m.text)
	}
	w.checkReady(line)
}

func (w *watch) event(stage, line string) {
	if len(w.events) >= keepEvents {
		return
	}
	w.events = append(w.events, ConsoleEvent{At: time.Now(), Stage: stage, Line: line})
}

func (w *watch) checkReady(text string) {
	if w.ready == nil || w.isReady || !w.ready.MatchString(text) {
		return
	}
	w.isReady = true
	w.quiet.Stop()
	w.tell()
}

// tell wakes whoever waits for a change.
func (w *watch) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// onSilence notes that the console has said nothing for the agreed time.
func (w *watch) onSilence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silence > 0 && !w.settled {
		w.silent = true
		w.tell()
	}
}

// end notes that the console has ended.
func (w *watch) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if part, ok := w.scan.cut(0); ok {
		w.line(part)
	}
	w.ended = err
	for _, ear := range []*Tap{w.tap, w.ear} {
		if ear != nil {
			ear.put(nil)
		}
	}
	w.idle.Stop()
	w.quiet.Stop()
	if w.sign != nil {
		w.decide()
	}
	if !w.stopped && w.settled {
		w.event(StageEnded, "the console closed: "+err.Error())
	}
	w.tell()
}
