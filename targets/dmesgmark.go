package targets

import (
	"bytes"
	"slices"
	"strings"
)

// markLines is how many of a log's last lines tell what is newer.
const markLines = 50

// Mark is as much of l as Since needs of an earlier log: taint, the first line
// and the last ones. It can be written to a file and read back by ParseMark.
func (l KernelLog) Mark() []byte {
	lines := logLines(l.Text)
	if n := len(lines) - markLines; n > 1 {
		lines = slices.Concat(lines[:1], lines[n:])
	}
	return []byte("taint " + l.Taint + "\nmissing " + strings.ReplaceAll(l.Missing, "\n", " ") + "\n" + strings.Join(lines, "\n") + "\n")
}

// ParseMark reads what Mark wrote. Of anything else it makes a log that is
// Missing.
func ParseMark(b []byte) KernelLog {
	taint, rest, ok := bytes.Cut(b, []byte("\n"))
	missing, text, ok2 := bytes.Cut(rest, []byte("\n"))
	t, ok3 := bytes.CutPrefix(taint, []byte("taint "))
	m, ok4 := bytes.CutPrefix(missing, []byte("missing "))
	if !ok || !ok2 || !ok3 || !ok4 {
		return KernelLog{Missing: "what it was before the trial is not on file"}
	}
	return KernelLog{Text: text, Taint: string(t), Missing: string(m)}
}
