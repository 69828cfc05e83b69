package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// section is a titled part of the readable report. Its lines are clean and fit.
type section struct {
	title string
	lines []string
}

func (s *section) add(lines ...string) { s.lines = append(s.lines, lines...) }

// blank adds an empty line between parts.
func (s *section) blank() {
	if n := len(s.lines); n > 0 && s.lines[n-1] != "" {
		s.add("")
	}
}

// say adds a sentence, cleaned and wrapped.
func (s *section) say(width int, indent, format string, args ...any) {
	s.add(wrap(clean(fmt.Sprintf(format, args...)), width, indent)...)
}

// table adds a table, its footnotes below.
func (s *section) table(t *table, notes *footnotes, width int) {
	s.add(t.lines(width)...)
	if notes != nil {
		s.add(notes.lines(width)...)
	}
}

// sections of the readable report, in order.
func sections(src *source, o Options) []section {
	list := []section{header(src, o.Width)}
	if n := needsList(src, o.Width); len(n.lines) > 0 {
		list = append(list, n)
	}
	list = append(list, verdicts(src, o.Width))
	if c := comparisonTables(src, o.Secondary, o.Width); len(c.lines) > 0 {
		list = append(list, c)
	}
	if v := validityList(src, o.Width); len(v.lines) > 0 {
		list = append(list, v)
	}
	list = append(list, targetList(src, o.Width), outcomes(src, o.Width))
	for i := range src.doc.Workloads {
		list = append(list, workload(src, &src.doc.Workloads[i], o.Width))
	}
	if o.VMStat {
		list = append(list, activities(src, o.Width), samples(src, o.Width))
	}
	for _, s := range []section{sessionList(src, o.Width), failureList(src, o.Width), notes(src, o.Width)} {
		if len(s.lines) > 0 {
			list = append(list, s)
		}
	}
	return list
}

func writeText(w io.Writer, src *source, o Options) error {
	return writeSections(w, sections(src, o), o)
}

// writeVerdicts is the answer alone.
func writeVerdicts(w io.Writer, src *source, o Options) error {
	return writeSections(w, []section{verdicts(src, o.Width)}, o)
}

func writeSections(w io.Writer, list []section, o Options) error {
	out := bufio.NewWriter(w)
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		title := clean(s.title)
		rule := strings.Repeat("=", min(columns(title), o.Width))
		if o.Color {
			title = "\x1b[1m" + title + "\x1b[0m"
		}
		fmt.Fprintf(out, "%s\n%s\n", title, rule)
		for _, l := range s.lines {
			fmt.Fprintln(out, l)
		}
	}
	return out.Flush()
}

// writeMarkdown keeps the tables as they are, in fences no content can close.
func writeMarkdown(w io.Writer, src *source, o Options) error {
	out := bufio.NewWriter(w)
	for i, s := range sections(src, o) {
		fence := "```"
		for _, l := range s.lines {
			for strings.HasPrefix(strings.TrimLeft(l, " "), fence) {
				fence += "`"
			}
		}
		level := "##"
		if i == 0 {
			level = "#"
		}
		fmt.Fprintf(out, "%s %s\n\n%stext\n%s\n%s\n\n", level, heading(clean(s.title)), fence, strings.Join(s.lines, "\n"), fence)
	}
	return out.Flush()
}

// heading is text that Markdown takes for nothing but text.
func heading(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\<>[]&*`!|", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
