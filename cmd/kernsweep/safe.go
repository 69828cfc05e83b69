package main

import (
	"io"
	"math"
	"os"
	"strings"

	"golang.org/x/term"

	"kernsweep/orchestrator/live"
)

// safeWriter shows device output on a terminal without letting it drive the
// terminal: line ends survive, other control characters become visible.
type safeWriter struct{ w io.Writer }

func (s safeWriter) Write(b []byte) (int, error) {
	lines := strings.Split(strings.ReplaceAll(string(b), "\r", ""), "\n")
	for i := range lines {
		lines[i] = live.Safe(lines[i])
	}
	if _, err := io.WriteString(s.w, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// said is standard error: whatever a message quotes, from a device, a file or a
// command line, does not drive the terminal. Line ends and tabs survive, and on a
// terminal words are not torn at its edge. What means to drive it, or passes bytes on, takes rawOutput of it.
type said struct{ w io.Writer }

func (o said) Write(b []byte) (int, error) {
	lines, width := strings.Split(string(b), "\n"), foldWidth(o.w)
	for i, l := range lines {
		lines[i] = live.Fold(inertLine(l), width, "  ")
	}
	if _, err := io.WriteString(o.w, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// foldWidth is how wide a line may be on w: as wide as it likes, unless that is a
// terminal.
func foldWidth(w io.Writer) int {
	if o, ok := w.(*outlet); ok {
		w = o.w
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return terminalWidth(f)
	}
	return math.MaxInt
}

// oneVoice is an error's text of which only the first line begins at the margin:
// what it quotes cannot pass for another message.
func oneVoice(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, l := range lines {
		if i > 0 && l != "" && l[0] != ' ' {
			lines[i] = "  " + l
		}
	}
	return strings.Join(lines, "\n")
}
