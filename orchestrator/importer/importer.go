// Package importer makes runs out of other people's logs: iperf, kernbench and
// time output, vmstat text, and tables. It reads every file before anything is
// written, keeps the files byte for byte below the run directory, and records
// nothing that they do not say: no boot of such a run is proven.
//
// Read understands files, Import.Write records them. The figures of a log become
// trials; which of them ran in one boot is what whoever imports says, and unless
// somebody says so, all trials of a kernel count as one boot.
package importer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// Boots: which trials ran in one boot.
const (
	BootsUnknown  = "unknown"   // all trials of a kernel count as one boot
	BootsEachFile = "each-file" // a file is a boot
	BootsEachRow  = "each-row"  // a trial is a boot
	BootsColumn   = "column"    // the table has a column boot
)

// Options are what whoever imports knows beside the files.
type Options struct {
	Format     string // a name of Formats
	Name       string // of the sweep; "" = "imported-FORMAT"
	Target     string // of files that do not say; "" = "imported"
	Kernel     string // of files that do not say
	Baseline   string // "" = the first kernel
	Workload   string // KIND.NAME; "" = the format's
	Scenario   string // of files that do not say; "" = "default"
	Boots      string // one of the constants; "" = the table's column boot, else unknown
	Better     map[string]workloads.Direction
	Primary    string // metric that verdicts are about; "" = the kind's
	DidNotBoot []Dead
	Runs       int    // behind each average of a kernbench log; 0 = 5
	FirstRow   string // "keep": the first row of a vmstat is a sample; "" and "drop": the average since boot
	Note       string
	// Inherited is the plan of the run that is added to: its kernels may be the baseline.
	Inherited results.PlanSummary

	saidRuns int // Runs as asked for
}

// Dead is a kernel that did not boot, and why, as somebody told.
type Dead struct{ Kernel, Reason string }

// File is one file to read.
type File struct {
	Name   string // as given
	Kernel string // that it is of; "" = the file says so, or Options.Kernel
	Data   []byte
}

// reader understands one format.
type reader struct {
	name     string
	workload string // where nobody names one
	read     func(*Import, int, string) error
}

// formats is the table of formats: a new one is one line here.
func formats() []reader {
	return []reader{
		{"iperf", "iperf.imported", readIperf},
		{"kernbench", "kernbench.imported", readKernbench},
		{"time", "time.imported", readTime},
		{"vmstat", "vmstat.imported", readVmstat},
		{"table", "table.imported", readTable},
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

// Import is what was understood of files.
type Import struct {
	o        Options
	files    []File
	workload string // where the file does not say

	trials []trial
	vals   []val // arena
	cells  []results.Cell
	cellAt map[results.Cell]int32
	nas    map[results.Cell]string // cells that the files name without a figure, and why
	metric []workloads.Metric
	findAt map[metricKey]int32
	names  []string // boots and reasons
	nameAt map[string]int32
	told   map[string]told // by kernel
	notes  []string        // what a reader of the run has to know
	column bool            // a table has a column boot
}

type metricKey struct{ workload, name string }

// told is what files say of a kernel.
type told struct{ release, scheduler, detail, by string }

// trial is one execution as a file tells of it. It is small: there may be millions.
type trial struct {
	cell, boot, file, line, repeat int32 // boot: index of names; repeat: 0 = not told
	order                          float64
	ordered                        bool
	from, to                       int32 // of Import.vals
	more                           *extra
}

// val is one value; why is an index of names, for a value that is missing.
type val struct {
	metric, why, n int32
	v, res, sd     float64
}

// extra is what few trials have.
type extra struct {
	outcome         results.Outcome // "" = ok
	reason          string
	notes, warnings []string
	activity        *results.Activity
}

// Read understands files. Every one of them is read; the error names each that
// cannot be, with the line and its text, and nothing was written then.
func Read(o Options, files []File) (*Import, error) {
	i := slices.IndexFunc(formats(), func(f reader) bool { return f.name == o.Format })
	if i < 0 {
		return nil, fmt.Errorf("no import format %q; there are: %s", o.Format, strings.Join(Formats(), ", "))
	}
	f := formats()[i]
	o = o.filled(f)
	if err := o.check(); err != nil {
		return nil, err
	}
	m := &Import{o: o, files: files, workload: o.Workload, cellAt: map[results.Cell]int32{}, nas: map[results.Cell]string{},
		findAt: map[metricKey]int32{}, names: []string{""}, nameAt: map[string]int32{"": 0}, told: map[string]told{}}
	if err := m.same(); err != nil {
		return nil, err
	}
	var errs []error
	for i := range files {
		text, err := decode(files[i].Data)
		if err == nil && !jsonText(text) {
			text = unquoted(text, f.name != "table")
			err = lineLengths(text)
		}
		if err == nil {
			err = f.read(m, i, text)
		}
		if err != nil {
			errs = append(errs, located(files[i].Name, err))
		}
	}
	if err := joined(errs, len(files)); err != nil {
		return nil, err
	}
	return m, m.finish()
}

func (o Options) filled(f reader) Options {
	o.Name = cmp.Or(o.Name, "imported-"+f.name)
	o.Target = cmp.Or(o.Target, "imported")
	o.Workload = cmp.Or(o.Workload, f.workload)
	o.Scenario = cmp.Or(o.Scenario, "default")
	o.saidRuns, o.Runs = o.Runs, cmp.Or(o.Runs, 5)
	return o
}

func (o Options) check() error {
	for _, n := range []struct{ what, name string }{{"--name", o.Name}, {"--target", o.Target}, {"--kernel", o.Kernel},
		{"--baseline", o.Baseline}, {"--workload", o.Workload}, {"--scenario", o.Scenario}} {
		if err := nameable(n.name); n.name != "" && err != nil {
			return fmt.Errorf("%s: %w", n.what, err)
		}
	}
	if kind, name, _ := strings.Cut(o.Workload, "."); kind == "" || name == "" {
		return fmt.Errorf("--workload %s: write KIND.NAME, as in iperf.to_target", o.Workload)
	}
	switch {
	case o.Boots != "" && !slices.Contains([]string{BootsUnknown, BootsEachFile, BootsEachRow, BootsColumn}, o.Boots):
		return fmt.Errorf("--boots %s: there are unknown, each-file, each-row, column", o.Boots)
	case o.Boots == BootsColumn && o.Format != "table":
		return errors.New("--boots column is for tables; there are unknown, each-file, each-row")
	case o.Runs < 1 || o.Runs > 1e6:
		return fmt.Errorf("--runs-per-average %d: must be from 1 to 1000000", o.Runs)
	case o.FirstRow != "" && o.FirstRow != "keep" && o.FirstRow != "drop":
		return fmt.Errorf("--first-row %s: write keep or drop", o.FirstRow)
	}
	for _, d := range o.DidNotBoot {
		if err := nameable(d.Kernel); err != nil {
			return fmt.Errorf("--did-not-boot: %w", err)
		}
	}
	return nil
}

// nameable refuses what cannot be the name of anything.
func nameable(s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return errors.New("a name is empty")
	case len(s) > 200:
		return fmt.Errorf("%q… is too long for a name: at most 200 bytes", s[:60])
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }):
		return fmt.Errorf("%q has a control character, which no name has", s)
	}
	return nil
}

// finish checks what only all files together tell.
func (m *Import) finish() error {
	if len(m.trials) == 0 && len(m.nas) == 0 {
		return errors.New("the files hold no figure at all")
	}
	if m.o.Boots == BootsColumn && !m.column {
		return errors.New("--boots column: the table has no column boot; there are unknown, each-file, each-row")
	}
	if m.o.Boots == "" {
		m.o.Boots = BootsUnknown
		if m.column {
			m.o.Boots = BootsColumn
		}
	}
	m.derive()
	if err := m.primaries(); err != nil {
		return err
	}
	kernels := m.kernels()
	for _, c := range m.o.Inherited.Cells {
		if m.o.Baseline == "" {
			m.o.Baseline = c.Baseline
		}
		if !slices.Contains(kernels, c.Kernel) {
			kernels = append(kernels, c.Kernel)
		}
	}
	if m.o.Baseline == "" {
		m.o.Baseline = kernels[0]
	}
	if !slices.Contains(kernels, m.o.Baseline) {
		return fmt.Errorf("--baseline %s: the files have no such kernel; there are: %s", m.o.Baseline, strings.Join(kernels, ", "))
	}
	for _, d := range m.o.DidNotBoot {
		if slices.ContainsFunc(m.trials, func(t trial) bool { return m.cells[t.cell].Kernel == d.Kernel }) {
			return fmt.Errorf("--did-not-boot %s: the files have figures of it", d.Kernel)
		}
	}
	return nil
}

// kernels in the order the files name them, those that did not boot last.
func (m *Import) kernels() []string {
	var out []string
	for _, c := range m.cells {
		if !slices.Contains(out, c.Kernel) {
			out = append(out, c.Kernel)
		}
	}
	for _, d := range m.o.DidNotBoot {
		if !slices.Contains(out, d.Kernel) {
			out = append(out, d.Kernel)
		}
	}
	return out
}
