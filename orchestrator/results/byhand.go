package results

import "strings"

// SkippedBy begins the Reason of all that a person left out while the run went
// on: "skipped by ada, kernsweep watch: it hangs".
const SkippedBy = "skipped by "

// SkippedByHand is Skipped where people are told how many a person skipped. It is
// in no record.
const SkippedByHand Outcome = "skipped by hand"

// ByHand says that a person skipped the attempt.
func (a *Attempt) ByHand() bool {
	return a.Outcome == Skipped && strings.HasPrefix(a.Reason, SkippedBy)
}

// ByHand is how many slots a person skipped, by the final state and without
// warm-ups; lane "" is all lanes.
func (m *Model) ByHand(lane string) int {
	n := 0
	for _, t := range m.Trials {
		if !t.Slot.Warmup() && (lane == "" || t.Slot.Target == lane) && t.Final().ByHand() {
			n++
		}
	}
	return n
}

// NotesSince are the notes from the beginning of a session on.
func (m *Model) NotesSince(session int) []Record {
	if session < 1 || session > len(m.Sessions) {
		return m.Notes
	}
	return m.Notes[m.Sessions[session-1].notes:]
}
