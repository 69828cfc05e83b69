package results

import "time"

// HeldBy says which process writes the run's journal now; ok is false when none
// does. Of a holder on another host only its word is known.
func (r *Run) HeldBy() (h Holder, ok bool) {
	h, err := readHolder(r.dir)
	if err != nil {
		return Holder{}, false
	}
	me := thisHolder("", time.Time{})
	return h, h.Host != me.Host || alive(h, me)
}
