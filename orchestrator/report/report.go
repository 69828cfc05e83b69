// Package report turns a run directory into what is read in the morning: text,
// Markdown, JSON or CSV. Everything is built from the journal, the plan and the
// raw files. It prints what compare.Judge claims, and claims nothing itself.
package report

import (
	"fmt"
	"io"
	"path/filepath"
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
	Width  int    // text and md: columns; 0 = 80, at least 40
	// Secondary: text and md: also the comparisons of metrics that no verdict is
	// about, with their intervals.
	Secondary bool
	// Kernsweep begins the commands that a report proposes: the program with the
	// flags that name the reader's files. "" = kernsweep
	Kernsweep string
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
		{"html", writeHTML},
		{"verdicts", writeVerdicts},
		{"csv", writeCSV},
		{"comparisons", writeComparisons},
		{"samples", writeSamples},
		{"json", writeJSON},
		{"bench", writeBench},
		{"junit", writeJUnit},
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

// Report is a run that was read, to be written in several formats.
type Report struct{ src *source }

// Read reads a run and judges it. Errors are those of reading the run.
func Read(run *results.Run) (*Report, error) {
	src, err := load(run)
	if err != nil {
		return nil, err
	}
	return &Report{src}, nil
}

// Write writes one format. Errors: an unknown format, or one of writing w.
func (r *Report) Write(w io.Writer, o Options) error {
	f, o, err := o.format()
	if err != nil {
		return err
	}
	return f.write(w, r.src.calledAs(o.Kernsweep), o)
}

// Write reports on a run. An unknown format is refused before anything is read;
// any other error is one of reading the run or writing w.
func Write(w io.Writer, run *results.Run, o Options) error {
	if _, _, err := o.format(); err != nil {
		return err
	}
	r, err := Read(run)
	if err != nil {
		return err
	}
	return r.Write(w, o)
}

// format is the one that is asked for; what else is not said gets its default.
func (o Options) format() (format, Options, error) {
	if o.Format == "" {
		o.Format = "text"
	}
	if o.Width == 0 {
		o.Width = 80
	}
	o.Width = max(o.Width, 40)
	list := formats()
	i := slices.IndexFunc(list, func(f format) bool { return f.name == o.Format })
	if i < 0 {
		return format{}, o, fmt.Errorf("no report format %q; there are: %s", o.Format, strings.Join(Formats(), ", "))
	}
	return list[i], o, nil
}

// source is what the formats draw on: the document, and the raw files beside it.
type source struct {
	run *results.Run
	doc *Document
}

func load(run *results.Run) (*source, error) {
	state, err := run.Reading()
	if err != nil {
		return nil, err
	}
	return judge(run, state), nil
}

// Of is Read of a run whose state is known already.
func Of(run *results.Run, state *results.State) *Report { return &Report{judge(run, state)} }

func judge(run *results.Run, state *results.State) *source {
	floors, err := compare.ReadFloors(filepath.Dir(run.Dir()))
	j := compare.Judge(run.Name(), state, compare.Options{Findings: validity.Run(run, state), Floors: floors})
	if err != nil {
		j.Notes = append(j.Notes, err.Error())
	}
	doc := build(run, state)
	doc.Judgement = j
	return &source{run: run, doc: doc}
}
