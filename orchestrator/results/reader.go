package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// maxLine bounds one journal line; a longer one is no journal line.
const maxLine = 16 << 20

// Journal is what a reader made of a journal file.
type Journal struct {
	// Records that can be believed, in the order of Seq.
	Records []Record
	// Doubtful records are intact, but records of their lane before them are
	// missing, or two records claim one number. They are never counted.
	Doubtful []Record
	// Notes say what is wrong with the file, a sentence each.
	Notes []string

	id     string   // the run that the records name; "" = they name none
	alien  string   // the run that every record names, and it is not this one; "" = there are others, or none
	lines  [][]byte // of Records, when the reader keeps them
	lastNo int      // highest Seq seen, doubtful ones included
	clean  bool     // the file is exactly the lines of Records
	torn   string   // a note on the last line, which is not whole: not yet in Notes
}

// reading is what the reader is told beforehand.
type reading struct {
	id   string // of the run; "" = the one that most records name
	keep bool   // the lines themselves
}

type rawLine struct {
	rec  Record
	text []byte // without line end
	no   int
}

// ReadJournal reads a journal to its end. It tolerates any damage: what is
// wrong is in Notes. The error is only ever that r could not be read.
// Records of another run than the one that most name are left out.
func ReadJournal(r io.Reader) (*Journal, error) {
	j, err := readJournal(r, reading{})
	if err == nil {
		j.noteTorn()
	}
	return j, err
}

func readJournal(r io.Reader, o reading) (*Journal, error) {
	s := scanner{in: bufio.NewReaderSize(r, 64<<10), keep: o.keep, clean: true}
	if err := s.run(); err != nil {
		return nil, fmt.Errorf("journal: read: %w", err)
	}
	s.own(o.id)
	j := &Journal{Notes: s.notes, clean: s.clean, torn: s.torn, id: s.id, alien: s.alien}
	if len(s.lines) == 0 {
		j.Notes = append(j.Notes, "nothing recorded: the journal holds no record")
		return j, nil
	}
	j.order(s.lines)
	j.newer()
	return j, nil
}

func (j *Journal) noteTorn() {
	if j.torn != "" {
		j.Notes = append(j.Notes, j.torn)
	}
}

// newer notes kinds of records that this version does not know.
func (j *Journal) newer() {
	n := map[Kind]int{}
	for _, r := range j.Records {
		if !r.Kind.known() {
			n[r.Kind]++
		}
	}
	for _, k := range slices.Sorted(maps.Keys(n)) {
		j.Notes = append(j.Notes, fmt.Sprintf("%d records of kind %q are of a newer kernsweep: kept, but not understood and not counted", n[k], k))
	}
}

// scanner splits the file into lines and decodes them.
type scanner struct {
	in    *bufio.Reader
	keep  bool
	clean bool
	lines []rawLine
	notes []string
	torn  string
	id    string
	alien string
	buf   []byte
	dec   decoder
}

func (s *scanner) note(format string, args ...any) {
	s.clean = false
	const limit = 50 // a file that is no journal at all must not fill the report
	switch {
	case len(s.notes) < limit:
		s.notes = append(s.notes, fmt.Sprintf(format, args...))
	case len(s.notes) == limit:
		s.notes = append(s.notes, "more damage of this kind is not listed")
	}
}

func (s *scanner) run() error {
	for no := 1; ; no++ {
		size, ended, err := s.next()
		if err != nil {
			return err
		}
		if size == 0 && !ended {
			return nil
		}
		s.line(no, size, ended)
		if !ended {
			return nil
		}
	}
}

// next reads a line into s.buf (at most maxLine bytes of it) and tells its
// length and whether it had a line end.
func (s *scanner) next() (size int, ended bool, err error) {
	s.buf = s.buf[:0]
	for {
		part, err := s.in.ReadSlice('\n')
		size += len(part)
		if len(s.buf)+len(part) <= maxLine {
			s.buf = append(s.buf, part...)
		}
		switch {
		case err == nil:
			s.buf = bytes.TrimSuffix(s.buf, []byte{'\n'})
			return size, true, nil
		case errors.Is(err, io.EOF):
			return size, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return size, false, err
		}
	}
}

func (s *scanner) line(no, size int, ended bool) {
	if size > maxLine {
		s.note("line %d: ignored: %d bytes are no journal line", no, size)
		return
	}
	text, nuls := stripNUL(s.buf)
	if nuls > 0 {
		text := fmt.Sprintf("line %d: %d NUL bytes ignored (left by a power cut or a full disk)", no, nuls)
		if !ended && nuls == len(s.buf) {
			s.clean, s.torn = false, text
			return
		}
		s.note("%s", text)
	}
	rec, err := s.dec.line(text)
	if err == nil {
		if !ended {
			s.clean = false // the next append must not join this line
		}
		l := rawLine{rec: rec, no: no}
		if s.keep {
			l.text = bytes.Clone(text)
		}
		s.lines = append(s.lines, l)
		return
	}
	if !ended {
		s.clean = false
		s.torn = fmt.Sprintf("line %d: torn tail of %d bytes dropped: its record was never acknowledged", no, size)
		return
	}
	s.note("line %d: ignored: %v", no, err)
}

// order sorts by sequence number and parts what can be believed from the rest.
func (j *Journal) order(lines []rawLine) {
	bySeq := func(a, b rawLine) int { return a.rec.Seq - b.rec.Seq }
	if !slices.IsSortedFunc(lines, bySeq) {
		j.bad("records out of order: read in the order of their numbers")
		slices.SortStableFunc(lines, bySeq)
	}
	last := 0
	laneSeq := map[string]int{}
	broken := map[string]bool{}
	for i, l := range lines {
		if i > 0 && l.rec.Seq == last {
			j.double(lines[i-1], l)
			continue
		}
		if l.rec.Seq != last+1 {
			j.gap(last+1, l.rec.Seq-1)
		}
		last = l.rec.Seq
		if lane := l.rec.Lane; lane != "" {
			if !broken[lane] && l.rec.LaneSeq != laneSeq[lane]+1 {
				broken[lane] = true
				j.bad("lane %s: record %d does not follow its record %d: it and the later records of the lane are NOT believed; the lane's last good record is %d",
					lane, l.rec.LaneSeq, laneSeq[lane], laneSeq[lane])
			}
			if broken[lane] {
				j.Doubtful = append(j.Doubtful, l.rec)
				continue
			}
			laneSeq[lane] = l.rec.LaneSeq
		}
		j.Records = append(j.Records, l.rec)
		if l.text != nil {
			j.lines = append(j.lines, l.text)
		}
	}
	j.lastNo = last
}

func (j *Journal) bad(format string, args ...any) {
	j.clean = false
	j.Notes = append(j.Notes, fmt.Sprintf(format, args...))
}

// gap notes missing numbers. A gap that was noted and repaired before leaves
// the lanes whole, so the file is still clean.
func (j *Journal) gap(from, to int) {
	if from == to {
		j.Notes = append(j.Notes, fmt.Sprintf("record %d is missing", from))
		return
	}
	j.Notes = append(j.Notes, fmt.Sprintf("records %d to %d are missing", from, to))
}

func (j *Journal) double(first, second rawLine) {
	if sameRecord(first.rec, second.rec) {
		j.bad("line %d: record %d is there twice: counted once", second.no, second.rec.Seq)
		return
	}
	j.Doubtful = append(j.Doubtful, second.rec)
	j.bad("lines %d and %d: two different records claim number %d (two writers?): the first is kept, the second is NOT believed",
		first.no, second.no, second.rec.Seq)
}

func sameRecord(a, b Record) bool {
	x, errA := EncodeLine(a)
	y, errB := EncodeLine(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}
