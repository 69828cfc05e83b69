// Package kernbench reads the log of the kernbench shell script, takes apart
// what it pools over load levels, and prints figures in its format.
package kernbench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Metric is one line of a level.
type Metric int

// The metrics, in the order of the log. Context counts involuntary context
// switches only, Sleeps voluntary ones; times are in seconds.
const (
	Elapsed Metric = iota
	User
	System
	Percent
	Context
	Sleeps
	metrics // their number
)

// String is the label in the log.
func (m Metric) String() string {
	return [metrics]string{"Elapsed Time", "User Time", "System Time", "Percent CPU", "Context Switches", "Sleeps"}[m]
}

// grid is the step that single runs were measured in.
func (m Metric) grid() float64 {
	if m <= System {
		return 0.01
	}
	return 1
}

// Figure is a mean over runs with its sample standard deviation.
type Figure struct {
	Mean, SD float64
	HasSD    bool    // false: one run, the script printed nan, or Open leaves none
	Open     float64 // the mean is within this of Mean: rounding in the log hides the rest; 0 = exact
	Missing  string  // why there is no figure; the rest means nothing then
}

// Level is the block of one load level.
type Level struct {
	Name    string // "Single threaded", "Half load -j 2", "Optimal load -j 4", "Maximal load -j"
	Figures [metrics]Figure
	// Pooled says that the script mixed runs of earlier levels into all but
	// the elapsed time. Unpool undoes that.
	Pooled bool
	Failed bool // the build failed, which the script does not notice
}

// Log is one session of kernbench on one kernel.
type Log struct {
	Date, Release string
	Levels        []Level
}

// ErrNoLevel means that text holds no block of a load level.
var ErrNoLevel = errors.New("no load level in it: is this the log of kernbench?")

// Read reads a kernbench.log, which may hold several sessions, or what the
// script printed. The error names the line, or is ErrNoLevel.
func Read(r io.Reader) ([]Log, error) {
	var logs []Log
	var recent [2]string // the lines before a session's first level: date and release
	var level *Level
	before := ""  // the line before
	told := false // by the script itself, on the terminal
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		line := strings.Join(strings.Fields(in.Text()), " ") // pasted text may have tabs
		if whole, ok := wrapped(before, line); ok {
			line = whole
		}
		before = line
		if line == "" {
			level = nil
			continue
		}
		if name, ok := levelName(line); ok {
			if len(logs) == 0 || recent[1] != "" {
				logs = append(logs, Log{Date: recent[0], Release: strings.TrimSuffix(recent[1], ":")})
			}
			recent, told = [2]string{}, false
			last := &logs[len(logs)-1]
			last.Levels = append(last.Levels, newLevel(name))
			level = &last.Levels[len(last.Levels)-1]
			continue
		}
		if level != nil {
			known, err := level.read(line)
			if err != nil {
				return logs, fmt.Errorf("line %d: %w", n, err)
			}
			if known {
				continue
			}
		}
		if release, ok := strings.CutPrefix(line, "Kernel "); ok {
			recent, told = [2]string{"", release}, true
		} else if !told && !strings.Contains(line, " run number ") && !strings.HasPrefix(line, "Average ") { // progress on the terminal
			recent = [2]string{recent[1], line}
		}
	}
	if err := in.Err(); err != nil {
		return logs, err
	}
	if len(logs) == 0 {
		return nil, ErrNoLevel
	}
	for _, l := range logs {
		for i := range l.Levels {
			l.Levels[i].judge()
		}
	}
	return logs, nil
}

// title of a block; 0.30 names the load inside, and tells no deviation.
var title = regexp.MustCompile(`^Average (.+?) Run(?: \(std deviation\))?:?$`)

// levelName reads "Average NAME Run (std deviation):".
func levelName(line string) (string, bool) {
	if m := title.FindStringSubmatch(line); m != nil {
		return m[1], true
	}
	return "", false
}

// wrapped joins what a mail program broke: a title before "deviation):", a
// figure before its deviation.
func wrapped(before, line string) (string, bool) {
	whole := before + " " + line
	switch {
	case strings.HasPrefix(before, "Average ") && strings.HasSuffix(line, "deviation):"):
		_, ok := levelName(whole)
		return whole, ok
	case strings.HasPrefix(line, "(") && strings.HasSuffix(line, ")"):
		for m := range metrics {
			if strings.HasPrefix(before, m.String()+" ") && !strings.Contains(before, "(") {
				return whole, true
			}
		}
	}
	return "", false
}

func newLevel(name string) Level {
	l := Level{Name: name}
	for m := range metrics {
		l.Figures[m].Missing = "not in the log"
	}
	return l
}

// read reads one line of a block; known is false when it is none.
func (l *Level) read(line string) (known bool, err error) {
	for m := range metrics {
		rest, ok := strings.CutPrefix(line, m.String()+" ")
		if !ok {
			continue
		}
		f, err := readFigure(rest)
		if err != nil {
			return true, fmt.Errorf("%s: %w", m, err)
		}
		l.Figures[m] = f
		return true, nil
	}
	return line == "No data", nil
}

var figure = regexp.MustCompile(`^(\S+)(?: \(([^() ]*)\))?$`)

// readFigure reads "MEAN (SD)" or, of a single run, "MEAN".
func readFigure(s string) (f Figure, err error) {
	if strings.HasPrefix(s, "No ") {
		return Figure{Missing: "no run"}, nil
	}
	m := figure.FindStringSubmatch(s)
	if m == nil {
		return f, fmt.Errorf("%q is not one figure: do two kernels stand side by side? write a file for each", s)
	}
	if f.Mean, err = finite(m[1]); err != nil {
		return f, err
	}
	switch m[2] {
	case "", "nan", "-nan":
		return f, nil
	}
	f.SD, err = finite(m[2])
	f.HasSD = true
	return f, err
}

func finite(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return v, nil
}

// judge finds out whether the level is pooled or of a failed build: the script
// reads GNU time's "Command exited with non-zero status N" as 0 s elapsed and N sleeps.
func (l *Level) judge() {
	for _, m := range []Metric{Elapsed, User, System, Percent} {
		if l.Figures[m].Missing != "" {
			return
		}
	}
	e := l.Figures[Elapsed].Mean
	if e <= 0 {
		l.Failed = true
		for m := range metrics {
			l.Figures[m] = Figure{Missing: "the build failed"}
		}
		return
	}
	l.Pooled = math.Abs(l.Figures[Percent].Mean-100*(l.Figures[User].Mean+l.Figures[System].Mean)/e) > 2
}
