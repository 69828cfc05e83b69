package story

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kernsweep/orchestrator/live"
)

// said is a line of a console, and when its last byte came.
type said struct {
	at   time.Time
	text string
}

// mostConsole bounds what is read of one recording, in bytes; the recorder keeps less.
const mostConsole = 64 << 20

// recorded are the lines of a boot's console in their order, and the file that has
// them; a resumed boot has several recordings. Without any the path is "".
func recorded(dir string) (lines []said, path string, err error) {
	for n := 1; ; n++ {
		base := filepath.Join(dir, "console")
		if n > 1 {
			base = fmt.Sprintf("%s-%d", base, n)
		}
		part, err := recording(base)
		if errors.Is(err, fs.ErrNotExist) {
			return lines, path, nil
		}
		if path = base + ".log"; err != nil {
			return lines, path, err
		}
		lines = append(lines, part...)
	}
}

// recording reads BASE.log and its tails, which are there while it is written.
func recording(base string) ([]said, error) {
	at := started(base)
	var all []said
	first := true // of the recording: the timing leaves out the first line
	var pending []byte
	for _, f := range parts(base) {
		log, err := readMost(f.log)
		if err != nil {
			return all, err
		}
		timing, err := os.Open(f.timing)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return all, err
		}
		c := clockwork{at: at, first: first}
		if err == nil {
			c.in = bufio.NewScanner(timing)
		}
		for _, l := range bytes.SplitAfter(log, []byte{'\n'}) {
			if len(l) == 0 {
				continue
			}
			at = c.after(len(l))
			if pending = append(pending, l...); l[len(l)-1] == '\n' {
				all, pending = append(all, line(at, pending)), pending[:0]
			}
		}
		first = false
		if timing != nil {
			_ = timing.Close() // nothing was written
		}
	}
	if len(pending) > 0 {
		all = append(all, line(at, pending))
	}
	return slices.DeleteFunc(all, func(s said) bool { return strings.TrimSpace(s.text) == "" }), nil
}

func line(at time.Time, b []byte) said {
	return said{at, live.ConsoleLine(bytes.TrimSuffix(b, []byte{'\n'}))}
}

// started is when a recording began, or its file was made.
func started(base string) time.Time {
	if b, err := os.ReadFile(base + ".start"); err == nil {
		if t, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(b))); err == nil {
			return t
		}
	}
	if st, err := os.Stat(base + ".log"); err == nil {
		return st.ModTime()
	}
	return time.Time{}
}

type part struct{ log, timing string }

// parts are the files of a recording, oldest first.
func parts(base string) []part {
	list := []part{{base + ".log", base + ".timing"}}
	entries, _ := os.ReadDir(filepath.Dir(base)) // then there is no log either
	var tails []int
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), filepath.Base(base)+".tail."); ok {
			if n, err := strconv.Atoi(rest); err == nil {
				tails = append(tails, n)
			}
		}
	}
	slices.Sort(tails)
	for _, n := range tails {
		path := fmt.Sprintf("%s.tail.%d", base, n)
		list = append(list, part{path, path + ".timing"})
	}
	return list
}

// clockwork plays a timing file: the time of each byte of the log.
type clockwork struct {
	in    *bufio.Scanner // nil: there is none
	at    time.Time
	room  int  // bytes of the present entry that are not used up
	first bool // the next line has no entry
}

// after is the time at which the next n bytes had come.
func (c *clockwork) after(n int) time.Time {
	if c.first {
		c.first = false
		return c.at
	}
	for n > c.room && c.in != nil && c.in.Scan() {
		delay, count, _ := strings.Cut(c.in.Text(), " ")
		d, err1 := strconv.ParseFloat(delay, 64)
		b, err2 := strconv.Atoi(count)
		if err1 != nil || err2 != nil || b <= 0 || !(d >= 0 && d < 1e8) {
			continue // a torn line
		}
		c.at = c.at.Add(time.Duration(d * float64(time.Second)))
		c.room += b
	}
	c.room = max(0, c.room-n)
	return c.at
}

func readMost(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostConsole))
}

// lastLines are the last lines of a file that are not blank; more says that there
// are others before them. A file that is not there has none.
func lastLines(path string, most int) (lines []string, more bool, err error) {
	const back = 16 << 10
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	from := max(0, st.Size()-back)
	b, err := io.ReadAll(io.LimitReader(io.NewSectionReader(f, from, back), back))
	for _, l := range bytes.Split(b, []byte{'\n'}) {
		if s := live.ConsoleLine(l); strings.TrimSpace(s) != "" {
			lines = append(lines, s)
		}
	}
	more = from > 0 || len(lines) > most
	return lines[max(0, len(lines)-most):], more, err
}
