package config

import (
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Severity of a diagnostic.
type Severity string

// Severities. A configuration with an error is never used.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Diagnostic is one finding about the configuration. Its texts hold no control
// characters, whatever the files hold.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Pos      Pos      `json:"pos"`
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail,omitempty"` // what to do, what is valid; may be empty
	// Later says that only a plan which needs the thing is concerned, and refuses then.
	Later bool `json:"later,omitempty"`
}

// String is "file:line:col: severity: summary; detail".
func (d Diagnostic) String() string {
	s := fmt.Sprintf("%s: %s: %s", clean(d.Pos.String()), d.Severity, d.Summary)
	if d.Detail != "" {
		s += "; " + d.Detail
	}
	return s
}

// Diagnostics are findings in the order of files and lines.
type Diagnostics []Diagnostic

// HasErrors says whether the configuration must not be used.
func (ds Diagnostics) HasErrors() bool {
	for _, d := range ds {
		if d.Severity == Error {
			return true
		}
	}
	return false
}

// String is one line for each diagnostic.
func (ds Diagnostics) String() string {
	var b strings.Builder
	for _, d := range ds {
		b.WriteString(d.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// maxText bounds a diagnostic's text in bytes: a file of one long line must not
// come back whole.
const maxText = 600

// clean makes text from a file fit for a terminal: one line, no control
// characters, bounded.
func clean(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// findings collects diagnostics, each once: a class's mistake is met again in
// every target that inherits it.
type findings struct {
	list   Diagnostics
	seen   map[string]bool
	values map[Pos]bool
}

func newFindings() *findings {
	return &findings{seen: map[string]bool{}, values: map[Pos]bool{}}
}

func (f *findings) add(s Severity, p Pos, detail, format string, args ...any) {
	f.put(Diagnostic{Severity: s, Pos: p, Summary: clean(fmt.Sprintf(format, args...)), Detail: clean(detail)})
}

func (f *findings) put(d Diagnostic) {
	key := fmt.Sprintf("%v\x00%s\x00%s", d.Pos, d.Severity, d.Summary)
	if f.seen[key] {
		return
	}
	f.seen[key] = true
	f.list = append(f.list, d)
}

func (f *findings) err(p Pos, detail, format string, args ...any) {
	f.add(Error, p, detail, format, args...)
}

func (f *findings) warn(p Pos, detail, format string, args ...any) {
	f.add(Warning, p, detail, format, args...)
}

// later warns of what only some plans need.
func (f *findings) later(p Pos, format string, args ...any) {
	f.put(Diagnostic{Severity: Warning, Pos: p, Summary: clean(fmt.Sprintf(format, args...)), Detail: "a plan that needs it will refuse", Later: true})
}

// value reports a wrong value; the first finding at a position is enough.
func (f *findings) value(p Pos, detail, format string, args ...any) {
	if f.values[p] {
		return
	}
	f.values[p] = true
	f.err(p, detail, format, args...)
}

func (f *findings) sorted() Diagnostics {
	sort.SliceStable(f.list, func(i, j int) bool {
		a, b := f.list[i].Pos, f.list[j].Pos
		switch {
		case a.File != b.File:
			return a.File < b.File
		case a.Line != b.Line:
			return a.Line < b.Line
		case a.Col != b.Col:
			return a.Col < b.Col
		default:
			return f.list[i].Summary < f.list[j].Summary
		}
	})
	return f.list
}
