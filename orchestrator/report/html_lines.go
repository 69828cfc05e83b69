package report

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kernsweep/orchestrator/report/svg"
)

// linesPart is vmstat over time in one scenario: a panel for each quantity, in
// it a line for each kernel.
type linesPart struct {
	Scenario string
	Panels   []template.HTML
	Says     []string // which trial each line is of, and what could not be drawn
}

// linesBudget shares out the points that all drawings of the page may have.
type linesBudget struct {
	bins   int // of each line, at most
	charts int // drawings of the page
}

// mostPoints bounds the points of all lines of a page, about 12 bytes each.
const mostPoints = 30000

func newLinesBudget(d *Document) *linesBudget {
	b := &linesBudget{}
	lines := 0
	type chart struct{ w, t, s string }
	seen := map[chart]bool{}
	for _, w := range d.Workloads {
		for _, c := range w.Cells {
			seen[chart{w.ID, c.Target, c.Scenario}] = true
			lines += len(panelColumns())
		}
	}
	b.charts = len(seen)
	b.bins = min(300, max(24, mostPoints/max(lines, 1)))
	return b
}

// panelColumns are the quantities that are drawn, by their vmstat column.
func panelColumns() []struct {
	column, name string
	top          float64
} {
	return []struct {
		column, name string
		top          float64
	}{
		{"cs", "context switches per second", 0},
		{"in", "interrupts per second", 0},
		{"us", "user, % of CPU time", 100},
		{"sy", "system, % of CPU time", 100},
		{"id", "idle, % of CPU time", 100},
		{"wa", "waiting for disks, % of CPU time", 100},
	}
}

func (b *linesBudget) parts(src *source, v *cellView) []linesPart {
	var out []linesPart
	for _, sc := range v.scenarios {
		part := linesPart{Scenario: sc}
		var drawn []drawnCell
		for _, c := range v.of(sc) {
			d, why := b.read(src, c)
			if why != "" {
				part.Says = append(part.Says, c.Kernel+": n/a ("+why+")")
				if d == nil {
					continue
				}
			}
			d.class = v.classes[c.Kernel]
			part.Says = append(part.Says, d.say())
			drawn = append(drawn, *d)
		}
		part.Panels = panels(sc, drawn)
		out = append(out, part)
	}
	return out
}

// drawnCell is a cell's representative trial.
type drawnCell struct {
	cell   *Cell
	trial  *Trial
	class  string
	series *vmSeries
}

func (d *drawnCell) say() string {
	return fmt.Sprintf("%s: boot %d, repeat %d, %d samples in %s s", d.cell.Kernel, d.trial.Boot, d.trial.Repeat, d.series.rows, figureText(d.series.length))
}

// read takes the samples of the cell's representative trial; why says what is
// missing, also beside samples that could be read.
func (b *linesBudget) read(src *source, c *Cell) (*drawnCell, string) {
	t := representative(c)
	if t == nil && c.Empty != "" {
		return nil, emptyText(c)
	}
	if t == nil {
		return nil, "no trial that counts has a folder of its own"
	}
	f, name, err := openSamples(filepath.Join(src.run.Dir(), filepath.FromSlash(t.Dir)))
	if err != nil {
		return nil, err.Error()
	}
	defer f.Close()
	s, err := readSeries(f, b.bins)
	why := ""
	if err != nil {
		why = fmt.Sprintf("%s: %v", name, err)
	}
	if s.rows == 0 {
		return nil, joined(": ", "no samples in "+t.Dir+"/"+name, why)
	}
	return &drawnCell{cell: c, trial: t, series: s}, why
}

// openSamples opens the target's own vmstat.csv, else another side's.
func openSamples(dir string) (*os.File, string, error) {
	list, err := filepath.Glob(filepath.Join(dir, "*vmstat.csv"))
	if err != nil || len(list) == 0 {
		return nil, "", fmt.Errorf("no vmstat.csv")
	}
	slices.SortFunc(list, func(x, y string) int { return len(x) - len(y) })
	info, err := os.Lstat(list[0])
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file", filepath.Base(list[0]))
	}
	if err != nil {
		return nil, "", err
	}
	f, err := os.Open(list[0])
	return f, filepath.Base(list[0]), err
}

// representative is the counted trial whose value is the median of the cell's
// first metric with a direction: nearest to what is usual.
func representative(c *Cell) *Trial {
	type candidate struct {
		t *Trial
		v float64
	}
	var list []candidate
	for i := range c.Trials {
		t := &c.Trials[i]
		if !t.Counts || t.Dir == "" {
			continue
		}
		x := candidate{t: t}
		for _, v := range t.Values {
			if v.Missing == "" && (v.Primary || x.v == 0) {
				x.v = v.Value
				if v.Primary {
					break
				}
			}
		}
		list = append(list, x)
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(x, y candidate) int {
		switch {
		case x.v < y.v:
			return -1
		case x.v > y.v:
			return 1
		}
		return 0
	})
	return list[(len(list)-1)/2].t
}

// panels draws every quantity that some kernel has; one that is 0 throughout is
// left out, except the main ones.
func panels(scenario string, drawn []drawnCell) []template.HTML {
	until := 0.0
	for _, d := range drawn {
		until = max(until, d.series.length)
	}
	var list []svg.Panel
	for i, col := range panelColumns() {
		p := svg.Panel{Name: col.name, Until: until, Top: col.top, Time: true}
		var says []string
		some := false
		for _, d := range drawn {
			points, sum := d.series.points(i)
			if sum.n == 0 {
				says = append(says, d.cell.Kernel+" n/a")
				continue
			}
			some = some || sum.max > 0
			say := fmt.Sprintf("%s: mean %s, from %s to %s", d.cell.Kernel, svg.Number(sum.mean(), sum.mean()/1000), figureText(sum.min), figureText(sum.max))
			says = append(says, say)
			p.Series = append(p.Series, svg.Series{Class: d.class, Title: say, Points: points})
		}
		if len(p.Series) == 0 || !some && col.column == "wa" {
			continue
		}
		p.Title = col.name + " over time, " + scenario + ". " + strings.Join(says, "; ")
		list = append(list, p)
	}
	out := make([]template.HTML, len(list))
	for i, p := range list {
		out[i] = template.HTML(svg.Lines(p))
	}
	return out
}
