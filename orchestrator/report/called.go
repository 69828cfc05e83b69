package report

import (
	"slices"
	"strings"
)

// calledAs is the source with commands for a person who calls the program so,
// such as "kernsweep --runs old"; "" is "kernsweep".
func (s *source) calledAs(program string) *source {
	if program == "" || program == "kernsweep" {
		return s
	}
	doc := *s.doc
	doc.program = program
	doc.Failures = slices.Clone(doc.Failures)
	for i := range doc.Failures {
		doc.Failures[i].Again = doc.call(doc.Failures[i].Again)
	}
	if doc.Judgement != nil {
		j := *doc.Judgement
		j.Worth, j.Comparisons = slices.Clone(j.Worth), slices.Clone(j.Comparisons)
		for i := range j.Worth {
			j.Worth[i].Command = doc.call(j.Worth[i].Command)
		}
		for i := range j.Comparisons {
			j.Comparisons[i].MoreCommand = doc.call(j.Comparisons[i].MoreCommand)
		}
		doc.Judgement = &j
	}
	return &source{run: s.run, doc: &doc}
}

// call is a command line that begins with "kernsweep ", as the reader would give
// it.
func (d *Document) call(command string) string {
	if rest, ok := strings.CutPrefix(command, "kernsweep "); ok && d.program != "" {
		return d.program + " " + rest
	}
	return command
}
