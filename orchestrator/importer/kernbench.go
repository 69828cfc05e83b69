package importer

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
	"kernsweep/workloads/kernbench"
)

// performing is what the script says on the terminal, and not in its log.
var performing = regexp.MustCompile(`(?m)^Performing (\d+) runs of`)

// readKernbench takes every load level of every session for one trial, whose
// values are averages over the script's runs. Figures that the script pooled
// over levels are taken apart; the printed ones stand beside them.
func readKernbench(m *Import, file int, text string) error {
	logs, err := kernbench.Read(strings.NewReader(text))
	if n := 0; err != nil {
		if _, e := fmt.Sscanf(err.Error(), "line %d:", &n); e == nil {
			err = atLine{n, errors.Unwrap(err)}
		}
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("it has a line of more than 64 kB: is this the log of kernbench?")
		}
		return err
	}
	if g := performing.FindStringSubmatch(text); g != nil && m.o.saidRuns == 0 {
		if n, err := strconv.Atoi(g[1]); err == nil && n > 0 && n < 1000 {
			defer func(was int) { m.o.Runs = was }(m.o.Runs)
			m.o.Runs = n
			m.say("kernbench: %s says that each average is over %d runs", shown(m.files[file].Name), n)
		}
	}
	releases := map[string]bool{}
	for _, l := range logs {
		releases[l.Release] = true
	}
	if k := m.files[file].Kernel; k != "" && len(releases) > 1 {
		return fmt.Errorf("it holds %d different kernels: take %s= away, the log names them itself", len(releases), k)
	}
	for _, l := range logs {
		kernel := m.files[file].Kernel
		if kernel == "" {
			kernel = l.Release
		}
		if kernel == "" {
			if kernel, err = m.kernelOf(file); err != nil {
				return err
			}
		}
		if err := nameable(kernel); err != nil {
			return err
		}
		if l.Release != "" {
			m.tell(kernel, told{release: l.Release, by: m.files[file].Name})
		}
		if err := m.kernbenchLog(file, kernel, l); err != nil {
			return err
		}
	}
	if !performing.MatchString(text) || m.o.saidRuns > 0 {
		m.say("kernbench: each average is taken to be over %d runs, which the log does not say (--runs-per-average)", m.o.Runs)
	}
	return nil
}

func (m *Import) kernbenchLog(file int, kernel string, l kernbench.Log) error {
	apart := kernbench.Unpool(l.Levels, m.o.Runs)
	runs := 0 // in the figures of the level as printed
	for i, level := range l.Levels {
		if runs += m.o.Runs; !level.Pooled {
			runs = m.o.Runs
		}
		t := trial{cell: m.place(kernel, m.levelScenario(level.Name)), file: int32(file), more: &extra{notes: []string{"level: " + level.Name}}}
		if l.Date != "" {
			t.more.notes = append(t.more.notes, "dated "+l.Date)
		}
		t.more.warnings = doubts(i, level)
		var values []workloads.Value
		if level.Failed {
			t.more.outcome, t.more.reason = results.Failed, "the build failed, which the script does not notice"
		} else {
			for k, x := range kernbenchMetrics() {
				values = append(values, m.kernbenchValue(x, apart[i].Figures[k], level.Pooled && k > 0))
			}
			if level.Pooled {
				t.more.notes = append(t.more.notes, fmt.Sprintf("the script pooled all figures but the elapsed time over %d runs of this and earlier levels; they were taken apart", runs))
				for k, x := range kernbenchMetrics() {
					if k > 0 {
						values = append(values, printedFigure(x, level.Figures[k], runs))
					}
				}
			}
		}
		if err := m.add(t, values); err != nil {
			return err
		}
	}
	return nil
}

// doubts about a level whose block is not whole.
func doubts(i int, level kernbench.Level) (w []string) {
	var lacks []string
	for k := kernbench.Elapsed; k <= kernbench.Sleeps; k++ {
		if level.Figures[k].Missing != "" && !level.Failed {
			lacks = append(lacks, k.String())
		}
	}
	if len(lacks) > 0 {
		w = append(w, "the block of this level lacks "+strings.Join(lacks, ", ")+": was the log cut off?")
	}
	if i > 0 && slices.Contains(lacks, kernbench.Percent.String()) {
		w = append(w, "without Percent CPU it cannot be told whether the script pooled this level with earlier ones: only its elapsed time is its own for certain")
	}
	return w
}

// levelScenario is "single", "half", "optimal" or "maximal" of a level's name.
func (m *Import) levelScenario(level string) string {
	name := level
	for _, l := range []string{"single", "half", "optimal", "maximal"} {
		if strings.HasPrefix(strings.ToLower(level), l) {
			name = l
		}
	}
	if m.o.Scenario != "default" {
		name = m.o.Scenario + "." + name
	}
	return name
}

// kernbenchMetrics in the order of kernbench.Metric.
func kernbenchMetrics() []workloads.Metric { return (&workloads.Kernbench{}).Metrics() }

func (m *Import) kernbenchValue(x workloads.Metric, f kernbench.Figure, apart bool) workloads.Value {
	x.Primary = false
	v := workloads.Value{Metric: x, Value: f.Mean, Missing: f.Missing}
	if f.Missing != "" {
		return v
	}
	v.Resolution = lastDigit(f.Mean)
	if apart {
		grid := 1.0
		if x.Unit == "s" {
			grid = 0.01
		}
		v.Resolution = math.Max(2*f.Open, grid/float64(m.o.Runs))
	}
	if f.HasSD {
		v.N, v.SD = m.o.Runs, f.SD
	}
	return v
}

func printedFigure(x workloads.Metric, f kernbench.Figure, runs int) workloads.Value {
	x.Name, x.Better, x.Primary = results.MetricPrinted+x.Name, workloads.Informative, false
	v := workloads.Value{Metric: x, Value: f.Mean, Missing: f.Missing}
	if f.Missing == "" {
		v.Resolution = lastDigit(f.Mean)
		if f.HasSD {
			v.N, v.SD = runs, f.SD
		}
	}
	return v
}

// lastDigit is the step of a number that was printed with six digits.
func lastDigit(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-5)
}
