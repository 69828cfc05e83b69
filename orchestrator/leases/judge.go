package leases

import (
	"fmt"
	"time"
)

// verdict on a lease that somebody else has.
type verdict int

const (
	live    verdict = iota // to be respected
	unsure                 // not renewed in time, but its process may live: it is watched
	expired                // free
)

// watched is a lease as it was met while it was waited for.
type watched struct {
	seen  sight
	since time.Time // monotonic
	looks int
}

// looksLeast at an unchanged lease are needed beside the time: whoever was
// stopped meanwhile has not watched.
const looksLeast = 10

// quiet says how long the holder gave no sign of life: a new record, or a new
// time of the file where the disk is full. Others only add themselves to the queue.
func (w *watched) quiet(s sight, now time.Time) time.Duration {
	old := w.seen
	w.seen = s
	touched := old.content == s.content && old.inode == s.inode && old.mtime != s.mtime
	if w.looks == 0 || old.holder != s.holder || touched {
		w.since, w.looks = now, 0
	}
	w.looks++
	if w.looks < looksLeast {
		return 0
	}
	return now.Sub(w.since)
}

// judge says what a lease is worth, and why it is worth nothing.
func (f *Folder) judge(s state, w *watched) (verdict, string) {
	quiet := w.quiet(s.seen, f.clock.now())
	r := s.Holder
	switch {
	case r == nil && s.Damaged == "":
		return expired, ""
	case r == nil:
		if quiet > f.times.watch { // a living holder would have written it anew
			return expired, s.Damaged
		}
		return unsure, s.Damaged
	case f.machine.sees(*r) && gone(r.PID, r.Start):
		return expired, "its process is gone"
	case f.machine.near(*r) && f.clock.boot() < bootTime(*r):
		*w = watched{} // it is watched from when it ran out
		return live, ""
	}
	// Its clock may be wrong, or ours: an `until` that no renewal can have written
	// says nothing, and then, as always, only silence counts.
	patience := f.times.watch
	if left := r.Until.Sub(f.clock.now()); !f.machine.near(*r) && left > 0 && left <= 2*f.times.ttl {
		patience = f.times.ttl
	}
	why := "it was not renewed since " + stamp(r.Until.Add(-f.times.ttl))
	switch {
	case quiet > patience:
		return expired, fmt.Sprintf("%s, nor within the %s that it was watched for", why, patience)
	case patience == f.times.ttl:
		return live, ""
	default:
		return unsure, why
	}
}

// waits says that a place in the queue counts: its process lives, and looked
// after it lately.
func (f *Folder) waits(r Record) bool {
	switch {
	case f.machine.sees(r) && gone(r.PID, r.Start):
		return false
	case f.machine.near(r):
		return f.clock.boot() < bootTime(r)
	}
	left := r.Until.Sub(f.clock.now())
	return left > -f.times.ttl && left < 2*f.times.ttl // clocks of two machines differ
}

func bootTime(r Record) time.Duration { return time.Duration(r.UntilBoot * float64(time.Second)) }
