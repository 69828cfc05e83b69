package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// atLine is an error in a line.
type atLine struct {
	line int
	err  error
}

func (e atLine) Error() string { return e.err.Error() }
func (e atLine) Unwrap() error { return e.err }

// located says where an error is: FILE:LINE.
func located(file string, err error) error {
	var l atLine
	if errors.As(err, &l) && l.line > 0 {
		return fmt.Errorf("%s:%d: %w", shown(file), l.line, err)
	}
	return fmt.Errorf("%s: %w", shown(file), err)
}

// shown is a file's name that a terminal can be given.
func shown(file string) string {
	if file == "-" {
		return "standard input"
	}
	if q := strconv.Quote(file); q != `"`+file+`"` {
		return q
	}
	return file
}

const mostErrors = 10 // of several broken files

func joined(errs []error, files int) error {
	if len(errs) == 0 {
		return nil
	}
	n := len(errs)
	if n > mostErrors {
		errs = append(errs[:mostErrors:mostErrors], fmt.Errorf("… and %d more files that cannot be read", n-mostErrors))
	}
	if files > 1 {
		errs = append(errs, fmt.Errorf("%d of %d files cannot be read; nothing was imported", n, files))
	}
	return errors.Join(errs...)
}

// decode makes text of a file's bytes: UTF-8 or UTF-16 by its byte order mark,
// line ends of any system as "\n".
func decode(b []byte) (string, error) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		b = b[3:]
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		b = wide(b[2:], binary.LittleEndian)
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		b = wide(b[2:], binary.BigEndian)
	}
	if order := unmarked(b); order != nil {
		b = wide(b, order)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return "", errors.New("the file is empty")
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return "", fmt.Errorf("this is no text: a NUL byte at offset %d (is it compressed, or a raw recording? unpack it first)", i)
	}
	if compressed(b) {
		return "", errors.New("this is a compressed file: unpack it first")
	}
	s := string(b)
	if strings.Contains(s, "\r") {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s, nil
}

// longestLine that a log has, in bytes.
const longestLine = 1 << 20

func lineLengths(text string) error {
	n := 0
	for line := range strings.Lines(text) {
		if n++; len(line) > longestLine {
			return atLine{n, fmt.Errorf("a line of %d bytes, as no log has them: it begins with %s", len(line), quote(line[:200]))}
		}
	}
	return nil
}

// jsonText is JSON, which may be one long line.
func jsonText(text string) bool {
	t := strings.TrimLeft(text, " \t\n")
	return strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[{")
}

func compressed(b []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "BZh", "\xfd7zXZ", "PK\x03\x04", "\x28\xb5\x2f\xfd"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			return true
		}
	}
	return false
}

// unmarked is the byte order of UTF-16 without a mark, nil for anything else:
// the head of what this package reads is ASCII.
func unmarked(b []byte) binary.ByteOrder {
	var zero [2]int
	head := b[:min(len(b), 64)&^1]
	for i, c := range head {
		if c == 0 {
			zero[i%2]++
		}
	}
	switch half := len(head) / 2; {
	case half < 4:
	case zero[1] == half && zero[0] == 0:
		return binary.LittleEndian
	case zero[0] == half && zero[1] == 0:
		return binary.BigEndian
	}
	return nil
}

// unquoted takes the marks of quoted mail from a text whose lines all have them,
// and, of a log, from any line: no tool begins one so.
func unquoted(text string, log bool) string {
	if !strings.Contains(text, ">") {
		return text
	}
	if !log {
		for line := range strings.Lines(text) {
			if t := strings.TrimSpace(line); t != "" && t[0] != '>' {
				return text
			}
		}
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		for t := strings.TrimLeft(line, " \t"); strings.HasPrefix(t, ">"); t = strings.TrimLeft(line, " \t") {
			line = t[1:]
		}
		out.WriteString(line)
	}
	return out.String()
}

func wide(b []byte, order binary.ByteOrder) []byte {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(u)))
}

// same refuses a file that is named twice for one kernel, and mentions files of
// equal bytes: one measurement must not count twice by mistake.
func (m *Import) same() error {
	type key struct {
		sum    [sha256.Size]byte
		kernel string
	}
	seen, named := map[key]string{}, map[string]bool{}
	for _, f := range m.files {
		if named[f.Name] {
			return fmt.Errorf("%s is named twice: its figures would count twice", shown(f.Name))
		}
		named[f.Name] = true
		k := key{sha256.Sum256(f.Data), f.Kernel}
		if first, ok := seen[k]; ok {
			m.say("%s and %s hold the same bytes: is one measurement counted twice?", shown(first), shown(f.Name))
			continue
		}
		seen[k] = f.Name
	}
	return nil
}

// quote is a line of a file, short enough for an error.
func quote(s string) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > 80 {
		s = string([]rune(s)[:80]) + "…"
	}
	return strconv.Quote(s)
}

// lineOf is the number of the line at an offset, from 1.
func lineOf(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }
