package results

import (
	"fmt"
	"time"
)

// clockSlack is how far the controller's two clocks may part between two
// records before it is called a jump.
const clockSlack = 5 * time.Second

// clock compares the wall clock with the one that never jumps.
type clock struct {
	at   time.Time
	upMS int64
}

// jump takes the record's times and says by how much the wall clock jumped
// since the record before, "" when it did not.
func (c *clock) jump(r *Record) string {
	before := *c
	*c = clock{r.At, r.UpMS}
	if before.at.IsZero() {
		return ""
	}
	by := r.At.Sub(before.at) - time.Duration(r.UpMS-before.upMS)*time.Millisecond
	switch by = by.Round(time.Second); {
	case by > clockSlack:
		return fmt.Sprintf("the controller's clock jumped forward by %s (it was set, or the machine slept): records are in the order of their numbers", by)
	case by < -clockSlack:
		return fmt.Sprintf("the controller's clock was set back by %s: records are in the order of their numbers", -by)
	}
	return ""
}

// longest is what a boot or a trial may take by the wall clock alone.
const longest = 30 * 24 * time.Hour

// took is the time between two records: by the clock that never jumps when one
// controller process wrote both, else by the wall clock if that makes sense.
func took(from, to moment) (time.Duration, bool) {
	if from.at.IsZero() || to.at.IsZero() {
		return 0, false
	}
	d := to.at.Sub(from.at)
	if from.session == to.session && from.upMS > 0 && to.upMS > 0 {
		d = time.Duration(to.upMS-from.upMS) * time.Millisecond
	}
	return d, d >= 0 && d <= longest
}

// moment is when a record was written.
type moment struct {
	at      time.Time
	upMS    int64
	session int
}

// Took is how long the attempt ran; false when that is not known: it did not
// end, or the controller's clock was set meanwhile.
func (a *Attempt) Took() (time.Duration, bool) { return took(a.from, a.to) }

// Took is how long the boot took from asking to verdict; false when that is not
// known.
func (b *BootState) Took() (time.Duration, bool) { return took(b.from, b.to) }

// Took is how long the session lasted; false when it has no end, or when the
// controller's clock was set meanwhile.
func (s Session) Took() (time.Duration, bool) { return took(s.from, s.to) }
