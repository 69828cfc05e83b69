package report

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// summaryLine is a line of iperf2 or iperf3 with an interval, a transfer and a
// rate: "[  3]  0.0-10.0 sec  27.4 MBytes  23.0 Mbits/sec".
var summaryLine = regexp.MustCompile(`^\[ *(?:SUM|\d+)\].*\d+\.\d+ *- *\d+\.\d+ +sec +[\d.]+ +[KMGT]?Bytes +([\d.]+) +([KMGT]?)bits/sec`)

const (
	shownRuns = 6       // lines per kernel and scenario; the rest is on file
	tailBytes = 1 << 20 // of an output file: the summary stands at its end
)

// iperfLines prints each trial as iperf printed it, kernel beside kernel. The
// figures follow in the generic table.
func iperfLines(v *view) {
	for _, sc := range v.scenarios {
		for _, k := range v.kernels {
			c := v.cell(k, sc)
			if c == nil || c.Empty != "" {
				continue
			}
			lines, more := v.iperfRuns(c)
			if len(lines) == 0 {
				continue
			}
			v.out.blank()
			v.out.say(v.width, "  ", "%s, %s", k, sc)
			v.out.add(lines...)
			if more > 0 {
				v.out.add(fmt.Sprintf("  … and %d more on file", more))
			}
		}
	}
}

func (v *view) iperfRuns(c *Cell) (lines []string, more int) {
	for _, t := range c.Trials {
		if !t.Counts {
			continue
		}
		rate, ok := megabits(t.Values)
		if !ok {
			continue
		}
		line := noted(t.Notes)
		if line == "" {
			line = printedLine(filepath.Join(v.src.run.Dir(), filepath.FromSlash(t.Dir)), rate)
		}
		if line == "" {
			continue
		}
		if len(lines) == shownRuns {
			more++
			continue
		}
		where := fmt.Sprintf("boot %d.%d", t.Boot, t.Repeat)
		if v.src.doc.Run.Imported != nil && len(c.Figures) > 0 && c.Figures[0].Boots == 1 {
			where = fmt.Sprintf("trial %d", t.Repeat) // of a boot that may be several
		}
		lines = append(lines, cut(fmt.Sprintf("  %s  %s", where, clean(line)), v.width))
	}
	return lines, more
}

// noted is the line that an imported trial keeps in its notes.
func noted(notes []string) string {
	for _, n := range notes {
		if line, ok := strings.CutPrefix(n, results.NotePrinted); ok {
			return line
		}
	}
	return ""
}

// megabits is the trial's primary rate in Mbit/s.
func megabits(values []workloads.Value) (float64, bool) {
	scale := map[string]float64{"bit/s": 1e-6, "kbit/s": 1e-3, "Mbit/s": 1, "Gbit/s": 1e3}
	for _, primary := range []bool{true, false} {
		for _, x := range values {
			if k, ok := scale[x.Unit]; ok && x.Missing == "" && (x.Primary || !primary) {
				return x.Value * k, true
			}
		}
	}
	return 0, false
}

// printedLine finds, in a trial's raw output, the summary line that says the
// rate the trial was judged to have; "" when none does within 1 %.
func printedLine(dir string, rate float64) string {
	files, err := filepath.Glob(filepath.Join(dir, "*stdout*"))
	if err != nil {
		return ""
	}
	best, off := "", 0.01
	for _, f := range files {
		for line := range strings.Lines(tailOf(f)) {
			line = strings.TrimRight(line, "\r\n")
			m := summaryLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			x, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				continue
			}
			x *= map[string]float64{"": 1e-6, "K": 1e-3, "M": 1, "G": 1e3, "T": 1e6}[m[2]]
			// The last of equally good lines is the summary of the whole run.
			if d := math.Abs(x-rate) / math.Max(math.Abs(rate), 1e-9); d <= off {
				best, off = line, d
			}
		}
	}
	return best
}

// tailOf is the end of a file, "" when it cannot be read.
func tailOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return ""
	}
	return string(b)
}
