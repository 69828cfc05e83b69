package console

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Limits of a recording, in bytes. A zero is its default.
type Limits struct {
	Head int64 // kept of the beginning (default 8 MiB)
	Tail int64 // kept of the end at least, and at most twice as much (default 8 MiB)
}

const defaultKeep = 8 << 20

// mergeTime is how close in time bytes are for one entry of the timing file.
const mergeTime = 5 * time.Millisecond

// Recording is a console on disk: NAME.log has its bytes as they came, and
// NAME.timing says when, in the classic format of script(1), so that
// `scriptreplay -t NAME.timing NAME.log` plays it. scriptreplay leaves out the
// first line of a log, and so does the timing. NAME.start has the time at which
// the timing begins, RFC 3339 in UTC.
//
// Of a console that says more than Limits.Head the newest bytes are kept in
// files of their own, NAME.tail.1, .2, …, of which the last two stay. Close puts
// them behind the head, after a line that says how many bytes are left out.
// When the controller dies before, they stay where they are.
type Recording struct {
	mu     sync.Mutex
	base   string // path without ".log"
	limits Limits
	now    func() time.Time

	part   *part     // written now: the head, or the newest tail; nil once closed
	before *part     // the tail before it, nil: none
	number int       // of the newest tail, 0 while in the head
	size   int64     // bytes that came
	head   part      // once the head is full
	line   bool      // the first line has ended
	bytes  int64     // of the timing's entry that is not written yet
	at     time.Time // when that entry, or the last one, began
	delay  time.Duration
	err    error // the first one; nothing is recorded after it
}

// part is a log file with its timing.
type part struct {
	path        string
	log, timing *os.File
	size        int64
	from, to    time.Time // the entry before it, and its last one
}

func newPart(path, timing string, from time.Time) (*part, error) {
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	t, err := os.OpenFile(timing, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &part{path: path, log: log, timing: t, from: from}, nil
}

func (p *part) close() error { return errors.Join(p.log.Close(), p.timing.Close()) }

func (p *part) remove() error { return errors.Join(os.Remove(p.path), os.Remove(p.timing.Name())) }

// Record begins a recording. path ends in ".log" and must not exist.
func Record(path string, l Limits) (*Recording, error) { return record(path, l, time.Now) }

func record(path string, l Limits, now func() time.Time) (*Recording, error) {
	if l.Head <= 0 {
		l.Head = defaultKeep
	}
	if l.Tail <= 0 {
		l.Tail = defaultKeep
	}
	r := &Recording{base: strings.TrimSuffix(path, ".log"), limits: l, now: now, at: now()}
	var err error
	if r.part, err = newPart(path, r.base+".timing", r.at); err != nil {
		return nil, fmt.Errorf("console recording: %w", err)
	}
	start := r.at.UTC().Format(time.RFC3339Nano) + "\n"
	if err := os.WriteFile(r.base+".start", []byte(start), 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("console recording: %w", err), r.part.close())
	}
	return r, nil
}

// Write keeps bytes of the console; they are in a file when it returns. Its
// error is the disk's, and nothing is recorded after one.
func (r *Recording) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := 0
	for done < len(p) && r.err == nil && r.part != nil {
		limit := r.limits.Tail
		if r.number == 0 {
			limit = r.limits.Head
		}
		room := limit - r.part.size
		if room <= 0 {
			r.err = r.turn()
			continue
		}
		b := p[done:min(int64(len(p)), int64(done)+room)]
		if r.err = r.put(b); r.err == nil {
			done += len(b)
		}
	}
	switch {
	case r.err != nil:
		return done, fmt.Errorf("console recording: %w", r.err)
	case r.part == nil:
		return done, fmt.Errorf("console recording: %w", os.ErrClosed)
	}
	return done, nil
}

// put writes bytes into the present part and notes their time.
func (r *Recording) put(b []byte) error {
	timed := b
	if !r.line {
		_, timed, r.line = bytes.Cut(b, []byte{'\n'})
	}
	now := r.now()
	if r.bytes > 0 && now.Sub(r.at) >= mergeTime {
		if err := r.entry(); err != nil {
			return err
		}
	}
	if r.bytes == 0 && len(timed) > 0 {
		r.delay, r.at = now.Sub(r.at), now
	}
	r.bytes += int64(len(timed))
	n, err := r.part.log.Write(b)
	r.part.size += int64(n)
	r.size += int64(n)
	return err
}

// entry writes the timing's entry.
func (r *Recording) entry() error {
	if r.bytes == 0 {
		return nil
	}
	_, err := fmt.Fprintf(r.part.timing, "%.6f %d\n", r.delay.Seconds(), r.bytes)
	r.bytes, r.part.to = 0, r.at
	return err
}

// turn begins the next part, and lets go of the oldest.
func (r *Recording) turn() error {
	err := errors.Join(r.entry(), r.part.close())
	if r.before != nil {
		err = errors.Join(err, r.before.remove())
	}
	if r.number == 0 {
		r.head = *r.part
	} else {
		r.before = r.part
	}
	r.number++
	path := fmt.Sprintf("%s.tail.%d", r.base, r.number)
	next, e := newPart(path, path+".timing", r.at)
	if e == nil {
		r.part = next
	}
	return errors.Join(err, e)
}
