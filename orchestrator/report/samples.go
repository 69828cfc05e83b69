package report

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kernsweep/workloads/vmstat"
)

// sampleHead names the columns of --format samples: a row for each vmstat row of
// each attempt, warm-ups included; side is "peer" where the peer's is meant. An
// attempt without samples has one row, whose note says why. Missing is empty.
func sampleHead() []string {
	return append(append([]string{"target", "kernel", "workload", "scenario", "block", "boot", "repeat", "attempt", "counts", "side", "t_s", "seconds"},
		sampleColumns()...), "note")
}

func sampleColumns() []string {
	var list []string
	for c := vmstat.R; c <= vmstat.Gu; c++ {
		list = append(list, c.String())
	}
	return list
}

// writeSamples streams; it keeps one row of one file at a time.
func writeSamples(w io.Writer, src *source, _ Options) error {
	out := csv.NewWriter(bufio.NewWriterSize(w, 64<<10))
	if err := out.Write(sampleHead()); err != nil {
		return err
	}
	for _, wl := range src.doc.Workloads {
		for i := range wl.Cells {
			c := &wl.Cells[i]
			for k := range c.Trials {
				if err := sampleTrial(out, src, c, &c.Trials[k]); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func sampleTrial(out *csv.Writer, src *source, c *Cell, t *Trial) error {
	key := []string{csvText(c.Target), csvText(c.Kernel), csvText(c.Workload), csvText(c.Scenario), strconv.Itoa(t.Block), strconv.Itoa(t.Boot),
		strconv.Itoa(t.Repeat), strconv.Itoa(t.Attempt), strconv.FormatBool(t.Counts)}
	none := func(side, why string) error {
		row := append(slices.Clone(key), side)
		row = append(row, make([]string, 2+len(sampleColumns()))...)
		return out.Write(append(row, csvText("n/a ("+why+")")))
	}
	if t.Dir == "" {
		return none("", "not executed: "+string(t.Outcome))
	}
	files, err := filepath.Glob(filepath.Join(globSafe(src.run.Dir()), globSafe(filepath.FromSlash(t.Dir)), "*vmstat.csv"))
	if err != nil || len(files) == 0 {
		return none("", "no vmstat.csv in "+t.Dir)
	}
	for _, f := range files {
		side := strings.TrimRight(strings.TrimSuffix(filepath.Base(f), "vmstat.csv"), "-.")
		s := sampler{out: out, row: append(append(slices.Clone(key), csvText(side)), make([]string, 2+len(sampleColumns())+1)...), at: len(key) + 1}
		err := s.file(f)
		var bad *badFile
		if errors.As(err, &bad) {
			err = none(side, filepath.Base(f)+": "+bad.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// badFile is an error of the file that is read, not of what is written.
type badFile struct{ error }

// sampler copies one file.
type sampler struct {
	out *csv.Writer
	row []string
	at  int // of t_s in row
}

func (s *sampler) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return &badFile{err}
	}
	defer f.Close()
	in := csv.NewReader(bufio.NewReaderSize(f, 64<<10))
	in.ReuseRecord, in.FieldsPerRecord = true, -1
	head, err := in.Read()
	if err != nil {
		return &badFile{noSamples(err)}
	}
	to := places(head)
	first, rows := int64(math.MinInt64), 0
	for ; ; rows++ {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &badFile{err}
		}
		if err := s.fill(rec, to, &first); err != nil {
			return err
		}
	}
	if rows == 0 {
		return &badFile{noSamples(io.EOF)}
	}
	return nil
}

func noSamples(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it holds no samples")
	}
	return err
}

const (
	monoNS = -1 // becomes t_s, the time since the file's first sample
	unused = -2
)

// places says where each column of the file goes, counted from t_s.
func places(head []string) []int {
	names := sampleColumns()
	to := make([]int, len(head))
	for i, h := range head {
		switch k := slices.Index(names, h); {
		case h == "mono_ns":
			to[i] = monoNS
		case h == "seconds":
			to[i] = 1
		case h == "note":
			to[i] = 2 + len(names)
		case k >= 0:
			to[i] = 2 + k
		default:
			to[i] = unused
		}
	}
	return to
}

func (s *sampler) fill(rec []string, to []int, first *int64) error {
	row := s.row[s.at:]
	clear(row)
	note := &row[len(row)-1]
	for i, text := range rec {
		if i >= len(to) || to[i] == unused {
			continue
		}
		switch {
		case to[i] == monoNS:
			ns, err := strconv.ParseInt(text, 10, 64)
			if err != nil || ns == 0 { // read from the text of another tool
				continue
			}
			if *first == math.MinInt64 {
				*first = ns
			}
			row[0] = strconv.FormatFloat(float64(ns-*first)/1e9, 'f', 3, 64)
		case to[i] == len(row)-1:
			*note += csvText(text)
		default:
			if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
				row[to[i]] = text
			} else if text != "n/a" {
				*note += csvText(fmt.Sprintf("column %s: no number: %q; ", s.name(to[i]), text))
			}
		}
	}
	return s.out.Write(s.row)
}

func (s *sampler) name(at int) string { return sampleHead()[s.at+at] }

// globSafe quotes what filepath.Glob would take for a pattern.
func globSafe(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
