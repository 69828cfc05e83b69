package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kernsweep/workloads"
)

// writeBench prints the Go benchmark format (golang.org/design/14313): a line
// for each boot value, so that `benchstat -col kernel` takes boots as samples and
// its centers are our medians. A value that is missing has no line. What a verdict
// would not rest on has the key doubt, so that benchstat puts it in a table apart:
// unproven, hard-finding, or controller-load.
func writeBench(w io.Writer, src *source, _ Options) error {
	out := bufio.NewWriter(w)
	units := benchUnits(src.doc)
	fmt.Fprintf(out, "run: %s\n", safeName(src.doc.Run.Name))
	for _, u := range units.list {
		better := ""
		if u.better != workloads.Informative && u.better != "" {
			better = " better=" + string(u.better)
		}
		fmt.Fprintf(out, "Unit %s%s assume=nothing\n", u.name, better)
	}
	doubts := doubtsOf(src.doc)
	var target, kernel string
	doubt := ""
	for _, wl := range src.doc.Workloads {
		for i := range wl.Cells {
			c := &wl.Cells[i]
			for k := range c.Figures {
				f := &c.Figures[k]
				if len(f.BootValues) == 0 {
					continue
				}
				if c.Target != target || c.Kernel != kernel {
					target, kernel = c.Target, c.Kernel
					fmt.Fprintf(out, "target: %s\nkernel: %s\n", safeName(target), safeName(kernel))
				}
				for i, v := range f.BootValues {
					if d := doubts.about(c, f, i); d != doubt {
						doubt = d
						fmt.Fprintf(out, "%s\n", strings.TrimSpace("doubt: "+d))
					}
					benchLine(out, c, f, i, v, units.of(f.Metric))
				}
			}
		}
	}
	return out.Flush()
}

func benchLine(out *bufio.Writer, c *Cell, f *Figure, i int, v float64, unit string) {
	n := 1 // trials in the boot; of a printed average those behind it
	if i < len(f.Raw) {
		n = len(f.Raw[i])
	}
	fmt.Fprintf(out, "%s %d %s %s\n", benchName(c, f.Name), n, strconv.FormatFloat(v, 'g', -1, 64), unit)
}

// benchName is "BenchmarkIperf.to_target/scenario=default/metric=rate". It ends
// on a metric's name, since a "-8" at the end would be read as GOMAXPROCS.
func benchName(c *Cell, metric string) string {
	wl := safeName(c.Workload)
	if wl[0] >= 'a' && wl[0] <= 'z' { // the format wants no small letter here
		wl = string(wl[0]-'a'+'A') + wl[1:]
	}
	return "Benchmark" + wl + "/scenario=" + safeName(c.Scenario) + "/metric=" + safeName(metric)
}

// safeName is a name in which only letters, digits, '.', '_', '+' and inner '-'
// stand for themselves; all other bytes are %XX, so that no two names meet.
func safeName(s string) string {
	if s == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '+', c == '-' && i > 0 && i < len(s)-1:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

type benchUnit struct {
	name   string
	better workloads.Direction
}

// unitTable gives metrics the names of their units. The format has one direction
// for a unit; where metrics of one unit disagree, the unit is named after the metric.
type unitTable struct {
	list  []benchUnit
	split map[string]bool
}

func benchUnits(d *Document) *unitTable {
	t := &unitTable{split: map[string]bool{}}
	better := map[string]workloads.Direction{}
	var metrics []workloads.Metric
	for _, w := range d.Workloads {
		for _, c := range w.Cells {
			for _, f := range c.Figures {
				if len(f.BootValues) == 0 {
					continue
				}
				u := unitName(f.Unit)
				if have, ok := better[u]; ok && have != f.Better {
					t.split[u] = true
				}
				better[u] = f.Better
				metrics = append(metrics, f.Metric)
			}
		}
	}
	seen := map[string]bool{}
	for _, m := range metrics {
		if u := t.of(m); !seen[u] {
			seen[u] = true
			t.list = append(t.list, benchUnit{u, m.Better})
		}
	}
	return t
}

func (t *unitTable) of(m workloads.Metric) string {
	u := unitName(m.Unit)
	if !t.split[u] {
		return u
	}
	direction := string(m.Better)
	if direction == "" {
		direction = "none"
	}
	return u + "(" + direction + ")"
}

// unitName is a unit without spaces; "/" and "%" stay.
func unitName(u string) string {
	if u == "" {
		return "value"
	}
	var b strings.Builder
	for i := range len(u) {
		if c := u[i]; c > ' ' && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
