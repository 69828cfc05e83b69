package targets

import "fmt"

// consoleOver ends a boot whose console has ended or fallen silent and whose
// SSH did not answer either.
func (b *booting) consoleOver() error {
	if b.w == nil || b.traits.OnlyOnce {
		return nil
	}
	st := b.w.state()
	switch {
	case st.Verdict != nil:
		return errConsoleVerdict
	case st.Ended != nil && b.traits.Emulated:
		return b.kernelError(StageEnded, fmt.Errorf("the console closed (%w)%s", st.Ended, b.after()))
	case st.Silent && st.Bytes == 0 && !b.traits.Emulated:
		return fmt.Errorf("target %s: its console said nothing for %s after the start of kernel %s was asked for: is it powered, is the console wired to it?",
			b.t.Name, b.time.Silence, b.k.Name)
	case st.Silent:
		return b.kernelError(b.stuck(st, StageHang), fmt.Errorf("silent for %s%s", b.time.Silence, b.stuckAt(st)))
	}
	return nil
}

// stuck is the stage of a start that comes to nothing: the place where it stands
// says more than otherwise.
func (b *booting) stuck(st watchState, otherwise string) string {
	switch {
	case st.Other != "":
		return StageWrongKernel
	case st.Place == inLoader:
		return StageLoader
	}
	return otherwise
}

// stuckAt says in words where that is.
func (b *booting) stuckAt(st watchState) string {
	switch {
	case st.Other != "":
		return fmt.Sprintf(", and the console shows that %s runs, wanted %q;%s", st.Other, b.k.Release, b.after())
	case st.Place == inLoader:
		return " in the boot loader," + b.after()
	case st.Place == handed:
		return ", the kernel has not said a word," + b.after()
	}
	return b.after()
}

// after names the last console line: " after: sda: sda1 sda2".
func (b *booting) after() string {
	lines := b.w.lastLines()
	for i := len(lines) - 1; i >= 0; i-- {
		if _, msg, _ := kernelTime(lines[i]); msg != "" {
			return " after: " + msg
		}
	}
	return ", not one line was printed"
}
