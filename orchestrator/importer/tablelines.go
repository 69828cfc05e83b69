package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// rower gives the fields of one row after the other, with its line. The slice is
// used again.
type rower func() ([]string, int, error)

// rowsOf reads a table's rows; outside is how many lines of text stand around a
// table of bars.
func rowsOf(text string) (next rower, outside int) {
	switch comma := separator(text); comma {
	case '|':
		return barred(text)
	case ' ':
		return blanks(text), 0
	default:
		return separated(text, comma), 0
	}
}

// rule is a line that only draws: under a header, around a table of characters.
var rule = regexp.MustCompile(`^[ \t]*[|+:─-╿]*(?:[-=:+─-╿]{3,}[|+: ─-╿]*)+$`)

// numbered gives the lines of a text that say something.
func numbered(text string) func() (string, int, bool) {
	n := 0
	return func() (string, int, bool) {
		for text != "" {
			line, rest, _ := strings.Cut(text, "\n")
			text = rest
			n++
			if t := strings.TrimSpace(line); t != "" && t[0] != '#' && !rule.MatchString(t) {
				return t, n, true
			}
		}
		return "", n, false
	}
}

// barred reads a table of Markdown, or one drawn of characters; lines without a
// bar are prose around it.
func barred(text string) (next rower, outside int) {
	lines := numbered(text)
	for more := numbered(text); ; {
		line, _, ok := more()
		if !ok {
			break
		}
		if !strings.ContainsAny(line, "|│║") {
			outside++
		}
	}
	return func() ([]string, int, error) {
		for {
			line, n, ok := lines()
			if !ok {
				return nil, n, io.EOF
			}
			line = strings.NewReplacer("│", "|", "║", "|").Replace(line)
			if !strings.Contains(line, "|") {
				continue
			}
			f := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
			if strings.HasPrefix(line, "|") {
				f = f[1:]
			}
			if strings.HasSuffix(line, "|") && len(f) > 1 {
				f = f[:len(f)-1]
			}
			for i := range f {
				f[i] = strings.ReplaceAll(strings.Trim(strings.TrimSpace(f[i]), "*`"), "\x00", "|")
			}
			if !hollow(f) {
				return f, n, nil
			}
		}
	}, outside
}

// gap is what stands between columns whose names or cells have blanks in them.
var gap = regexp.MustCompile(`\t+|\s{2,}`)

// blanks reads columns with blanks between them: any blank, or, where the rows
// do not come out so, two.
func blanks(text string) rower {
	split := strings.Fields
	if byGap := func(s string) []string { return gap.Split(s, -1) }; !even(text, split) && even(text, byGap) {
		split = byGap
	}
	lines := numbered(text)
	return func() ([]string, int, error) {
		line, n, ok := lines()
		if !ok {
			return nil, n, io.EOF
		}
		return split(tight(line)), n, nil
	}
}

// plusMinus has blanks around it that part no columns.
var plusMinus = regexp.MustCompile(`(\d%?) *(±|\+/-) *`)

func tight(line string) string {
	if strings.Contains(line, "±") || strings.Contains(line, "+/-") {
		return plusMinus.ReplaceAllString(line, "$1$2")
	}
	return line
}

// even says that the first rows have all as many fields as the header.
func even(text string, split func(string) []string) bool {
	lines, want := numbered(text), 0
	for range 100 {
		line, _, ok := lines()
		if !ok {
			break
		}
		n := len(split(tight(line)))
		if want == 0 {
			want = n
		}
		if n != want {
			return false
		}
	}
	return want > 1
}

// excel is the line by which a spreadsheet is told what separates the fields.
var excel = regexp.MustCompile(`(?i)^"?sep=(.)"?[ \t]*\n`)

func separated(text string, comma rune) rower {
	skipped := 0
	if m := excel.FindString(text); m != "" {
		text, skipped = text[len(m):], 1
	}
	in := csv.NewReader(strings.NewReader(text))
	in.Comma, in.Comment, in.FieldsPerRecord, in.ReuseRecord = comma, '#', -1, true
	in.LazyQuotes = comma == '\t'
	return func() ([]string, int, error) {
		for {
			f, err := in.Read()
			var bad *csv.ParseError
			if errors.As(err, &bad) {
				return nil, 0, atLine{bad.Line + skipped, fmt.Errorf("column %d: %w", bad.Column, bad.Err)}
			}
			if err != nil {
				return nil, 0, err
			}
			if hollow(f) {
				continue // a spreadsheet's empty row
			}
			line, _ := in.FieldPos(0)
			return f, line + skipped, nil
		}
	}
}

func hollow(f []string) bool {
	return !slices.ContainsFunc(f, func(s string) bool { return strings.TrimSpace(s) != "" })
}

// separator of a table, by its first line; '|' where it is drawn, or Markdown.
func separator(text string) rune {
	if m := excel.FindStringSubmatch(text); m != nil {
		return rune(m[1][0])
	}
	first, bars := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		drawn := strings.HasPrefix(line, "|") || strings.HasPrefix(line, "│") || strings.HasPrefix(line, "║")
		switch {
		case line == "" || first == "" && line[0] == '#':
		case strings.ContainsAny(line, "|+┼╬") && rule.MatchString(line):
			if bars || strings.Contains(first, "|") {
				return '|'
			}
		case first == "":
			if first = line; drawn {
				return '|'
			}
		}
		bars = bars || drawn
	}
	for _, c := range "\t;,|" {
		if strings.ContainsRune(first, c) {
			return c
		}
	}
	return ' '
}
