package results

import (
	"cmp"
	"slices"
)

// Warmup reports whether the slot is a warm-up: kept on file, out of every figure.
func (s Slot) Warmup() bool { return s.Repeat <= 0 }

// BootTrials are the valid, counted attempts of one cell in one boot, by repeat.
type BootTrials struct {
	Boot   int
	Trials []*Attempt
}

// Cells are the cells the journal mentions, in the order of their first trial.
func (m *Model) Cells() []Cell {
	var cells []Cell
	seen := map[Cell]bool{}
	for _, t := range m.Trials {
		if !seen[t.Slot.Cell] {
			seen[t.Slot.Cell] = true
			cells = append(cells, t.Slot.Cell)
		}
	}
	return cells
}

// ByBoot is what a cell's figures are made of: of every slot the newest valid
// attempt, warm-ups left out, grouped by the boot the attempt ran in.
func (m *Model) ByBoot(c Cell) []BootTrials {
	var out []BootTrials
	at := map[int]int{}
	for _, t := range m.byCell[c] {
		if t.Slot.Warmup() {
			continue
		}
		a := t.Valid()
		if a == nil {
			continue
		}
		i, ok := at[a.Slot.Boot]
		if !ok {
			i = len(out)
			at[a.Slot.Boot] = i
			out = append(out, BootTrials{Boot: a.Slot.Boot})
		}
		out[i].Trials = append(out[i].Trials, a)
	}
	slices.SortFunc(out, func(a, b BootTrials) int { return cmp.Compare(a.Boot, b.Boot) })
	for _, b := range out {
		slices.SortStableFunc(b.Trials, func(x, y *Attempt) int { return cmp.Compare(x.Slot.Repeat, y.Slot.Repeat) })
	}
	return out
}

// Count is how many slots ended in each outcome, warm-ups left out.
func (m *Model) Count() map[Outcome]int { return m.count(func(*Trial) bool { return true }) }

// CountLane is Count of one lane.
func (m *Model) CountLane(lane string) map[Outcome]int {
	return m.count(func(t *Trial) bool { return t.Slot.Target == lane })
}

func (m *Model) count(want func(*Trial) bool) map[Outcome]int {
	n := map[Outcome]int{}
	for _, t := range m.Trials {
		if !t.Slot.Warmup() && want(t) {
			n[t.Outcome()]++
		}
	}
	return n
}

// bootSlot is what a boot was for.
type bootSlot struct {
	lane, kernel string
	block        int
}

// FinalBoots is of every (lane, kernel, block) the newest judged boot, in the
// order they were first asked for: a retry or a rerun replaces what it repeats.
func (m *Model) FinalBoots() []*BootState {
	var out []*BootState
	at := map[bootSlot]int{}
	for _, b := range m.Boots {
		if b.Result == nil {
			continue
		}
		k := bootSlot{b.Lane, b.Result.Kernel, b.Result.Block}
		if i, ok := at[k]; ok {
			out[i] = b
			continue
		}
		at[k] = len(out)
		out = append(out, b)
	}
	return out
}

// Exit statuses of a run (DESIGN.md section 6).
const (
	ExitOK             = 0
	ExitFailed         = 1
	ExitInfrastructure = 3
	ExitInterrupted    = 130
)

// ExitStatus judges the run by its final state: 130 when it was interrupted,
// else 3 when a target was lost, else 1 when a kernel or a workload failed or a
// trial was invalid, else 0. Cells that are n/a or were skipped decide nothing
// themselves; what made them so does, but for a person who skipped them.
func (m *Model) ExitStatus() int {
	n := m.Count()
	failed, lost := n[Failed]+n[Invalid]+n[BootFailed] > 0, n[Lost] > 0
	interrupted := n[Interrupted]
	for _, l := range m.Lanes {
		if l.Taken != "" { // its trials were interrupted by the loss of the target
			lost = true
			interrupted -= m.CountLane(l.Name)[Interrupted]
		}
	}
	byHand := false
	if k := len(m.Sessions); k > 0 {
		byHand = m.Sessions[k-1].Interrupted
	}
	for _, b := range m.FinalBoots() {
		failed = failed || b.Result.Outcome == BootFailed
		lost = lost || b.Result.Outcome == Lost
	}
	for _, l := range m.Lanes {
		lost = lost || l.Quarantined && !l.ByHand
	}
	switch {
	case byHand || interrupted > 0:
		return ExitInterrupted
	case lost:
		return ExitInfrastructure
	case failed:
		return ExitFailed
	}
	return ExitOK
}
