// Package report turns a run directory into what is read in the morning: text,
// Markdown, JSON or CSV. Everything is built from the journal, the plan and the
// raw files. It shows medians, spread and n; it never calls a difference a finding.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/validity"
)

// Options of a report.
type Options struct {
	Format string // a name of Formats; "" = text
	VMStat bool   // text and md: vmstat of every trial, and per cell
	Color  bool   // text: headings in bold
	Width  int    // text and md: columns; 0 = 100, at least 40
}

type format struct {
	name  string
	write func(io.Writer, *source, Options) error
}

// formats is the table of formats: a new one is one line here.
func formats() []format {
	return []format{
		{"text", writeText},
		{"md", writeMarkdown},
		{"csv", writeCSV},
		{"json", writeJSON},
	}
}

// Formats are the names Options.Format takes.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Write reports on a run. An unknown format is refused before anything is read;
// any other error is one of reading the run or writing w.
func Write(w io.Writer, run *results.Run, o Options) error {
	if o.Format == "" {
		o.Format = "text"
	}
	if o.Width == 0 {
		o.Width = 100
	}
	o.Width = max(o.Width, 40)
	i := slices.IndexFunc(formats(), func(f format) bool { return f.name == o.Format })
	if i < 0 {
		return fmt.Errorf("no report format %q; there are: %s", o.Format, strings.Join(Formats(), ", "))
	}
	src, err := load(run)
	if err != nil {
		return err
	}
	return formats()[i].write(w, src, o)
}

// source is what the formats draw on: the document, and the raw files beside it.
type source struct {
	run *results.Run
	doc *Document
}

func load(run *results.Run) (*source, error) {
	state, err := run.State()
	if err != nil {
		return nil, err
	}
	doc := build(run, state)
	doc.Judgement = compare.Judge(run.Name(), state, compare.Options{Findings: validity.Run(run, state)})
	return &source{run: run, doc: doc}, nil
}
