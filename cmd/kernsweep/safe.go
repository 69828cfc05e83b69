package main

import (
	"io"
	"strings"

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
