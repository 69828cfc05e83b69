package boot

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/console"
)

// start says how a loader's last command is seen to have worked or not.
type start struct {
	command string
	good    *regexp.Regexp // a line that says the kernel has the machine; nil: none
	bad     *regexp.Regexp // a line that says it was refused
	again   *regexp.Regexp // a line that says the machine has restarted; nil: not looked for
	within  time.Duration  // for one of them
}

const (
	enterAgain = 2 * time.Second
	startPoll  = 50 * time.Millisecond
)

// kernelTalks are lines that only a kernel prints.
var kernelTalks = regexp.MustCompile(`Linux version \d|^(?:<\d+>)?\[ *\d+\.\d{6}\]|^Uncompressing Linux|Kernel panic`)

// launch types the command that starts the kernel. From Enter on the console is
// judged by targets.Boot. It returns once a kernel or the loader has answered:
// refused is the loader's complaint, "" none. A kernel that says nothing is no error here.
func launch(ctx context.Context, t *targets.Target, d *console.Dialogue, tap *targets.Tap, s start) (refused string, err error) {
	if err := d.Type(ctx, s.command); err != nil {
		return "", err
	}
	defer func() {
		if refused == "" && err == nil {
			return
		}
		// The console is the method's again: its word on what went wrong counts.
		if again, e := t.Tap(); e == nil {
			again.Close()
		}
	}()
	before, said := t.ConsoleLines(), t.ConsoleBytes()
	if err := tap.Go([]byte("\r")); err != nil {
		return "", fmt.Errorf("typing on the console: %w", err)
	}
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	begin, pressed, presses := time.Now(), time.Now(), 1
	taken := false
	for time.Since(begin) < s.within {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		lines := t.ConsoleLines()
		taken = t.ConsoleBytes() != said
		if !taken && time.Since(pressed) > enterAgain && presses < 3 {
			pressed, presses = time.Now(), presses+1 // a loader goes to a new line at once
			if _, err := tap.Write([]byte("\r")); err != nil {
				return "", fmt.Errorf("typing on the console: %w", err)
			}
		}
		news := behind(lines, before)
		if done, said, err := s.read(news); done {
			return said, err
		}
	}
	if !taken {
		return "", fmt.Errorf("%.100q was typed and shown, but Enter is not taken", s.command)
	}
	return "", nil
}

// behind is what came after the line that stood last when Enter was pressed. When
// it has scrolled out of the last lines, all of them came after it.
func behind(lines, before []string) []string {
	if len(before) == 0 {
		return lines
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] == before[len(before)-1] {
			return lines[i+1:]
		}
	}
	return lines
}

// read looks for the answer in the lines behind the command: the first counts.
func (s start) read(lines []string) (done bool, refused string, err error) {
	for i, l := range lines {
		l = strings.TrimSpace(l)
		switch {
		case s.again != nil && s.again.MatchString(l):
			return true, "", fmt.Errorf("the machine restarted during %.100q", s.command)
		case kernelTalks.MatchString(l), s.good != nil && s.good.MatchString(l):
			return true, "", nil
		case i+1 < len(lines) && s.bad.MatchString(l): // the last one may not be whole yet
			return true, l, nil
		}
	}
	return false, "", nil
}

// fetched is a file as a loader has it in memory.
type fetched struct {
	name string // under which it is served; "" none
	addr string // where it was put, hexadecimal with 0x
	size int64  // bytes
}

// hex is n as loaders take numbers.
func hexadecimal(n int64) string { return fmt.Sprintf("0x%x", n) }
