package wire

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// ErrTorn means that a spool has no end record, or breaks off in a record: the
// agent or its machine died, or the file was damaged.
var ErrTorn = errors.New("the spool is torn")

// maxRecord bounds the memory that a damaged length can ask for.
const maxRecord = 64 << 20

// tornError is ErrTorn with the place and the reason.
type tornError struct {
	at  int64
	why string
}

func (e *tornError) Error() string {
	return "the spool is torn at byte " + strconv.FormatInt(e.at, 10) + ": " + e.why
}

func (e *tornError) Is(target error) bool { return target == ErrTorn }

// Read reads a spool to its end. When it is torn, what was read comes with an
// error that is ErrTorn. Other errors are those of r.
func Read(r io.Reader) (*Spool, error) {
	s := &Spool{Begin: map[string]string{}, Points: map[string][][]int64{}, Values: map[string]map[string]string{}}
	rd := NewReader(r)
	for {
		rec, err := rd.Next()
		if err == io.EOF {
			if s.End == nil {
				return s, &tornError{rd.at, "no end record"}
			}
			return s, nil
		}
		if err != nil {
			return s, err
		}
		if s.End != nil {
			return s, &tornError{rd.at, "a record follows the end record"}
		}
		if why := s.add(rec); why != "" {
			return s, &tornError{rd.at, rec.Type + " record: " + why}
		}
	}
}

// Reader reads the records of a spool one by one.
type Reader struct {
	b     *bufio.Reader
	at    int64 // bytes read
	begun bool
}

// NewReader reads a spool from r.
func NewReader(r io.Reader) *Reader { return &Reader{b: bufio.NewReader(r)} }

// Next returns the next record, io.EOF after the last whole one, or an error
// that is ErrTorn, or r's own.
func (r *Reader) Next() (Record, error) {
	if !r.begun {
		if err := r.magic(); err != nil {
			return Record{}, err
		}
	}
	head, err := r.line()
	if err != nil {
		return Record{}, err
	}
	rec, n, why := parseHead(head)
	if why != "" {
		return Record{}, &tornError{r.at, why}
	}
	var body strings.Builder
	got, err := io.CopyN(&body, r.b, int64(n)+1)
	r.at += got
	if err == io.EOF {
		return Record{}, &tornError{r.at, "the file ends inside a " + rec.Type + " record"}
	}
	if err != nil {
		return Record{}, err
	}
	text := body.String()
	if text[n] != '\n' {
		return Record{}, &tornError{r.at, "no line end after a " + rec.Type + " record"}
	}
	rec.Body = []byte(text[:n])
	return rec, nil
}

// magic reads the first line. An agent's own output, read directly, has up to two
// lines before it: "ready" and "ended STATUS".
func (r *Reader) magic() error {
	for range 2 {
		start, _ := r.b.Peek(len(Ended)) // too short a stream is told below
		if s := string(start); !strings.HasPrefix(s, Ready) && s != Ended {
			break
		}
		line, err := r.b.ReadString('\n')
		r.at += int64(len(line))
		if err != nil && err != io.EOF {
			return err
		}
	}
	b := make([]byte, len(Magic))
	n, err := io.ReadFull(r.b, b)
	r.at += int64(n)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	if string(b) != Magic {
		return &tornError{r.at, "it does not begin with " + strconv.Quote(strings.TrimSpace(Magic))}
	}
	r.begun = true
	return nil
}

// line reads a record's first line. Its parts are short: a longer line is damage.
func (r *Reader) line() (string, error) {
	b, err := r.b.ReadSlice('\n')
	r.at += int64(len(b))
	switch {
	case err == nil:
		return string(b[:len(b)-1]), nil
	case err == bufio.ErrBufferFull:
		return "", &tornError{r.at, "a record's first line is too long"}
	case err == io.EOF && len(b) > 0:
		return "", &tornError{r.at, "the file ends in a record's first line"}
	}
	return "", err
}

func parseHead(head string) (rec Record, n int, why string) {
	f := strings.SplitN(head, " ", 4)
	if len(f) < 3 || f[0] == "" {
		return rec, 0, "not a record: " + strconv.Quote(cut(head))
	}
	mono, err := strconv.ParseInt(f[1], 10, 64)
	length, err2 := strconv.Atoi(f[2])
	if err != nil || err2 != nil || mono < 0 || length < 0 || length > maxRecord {
		return rec, 0, "not a record: " + strconv.Quote(cut(head))
	}
	rec.Type, rec.MonoNS = f[0], mono
	if len(f) == 4 {
		rec.Name = f[3]
	}
	return rec, length, ""
}

func cut(s string) string { return s[:min(len(s), 60)] }

// add puts one record in its place; why says what is wrong with it. Unknown
// types are skipped: a newer agent may know more.
func (s *Spool) add(rec Record) (why string) {
	switch rec.Type {
	case TypeBegin:
		s.Begin, s.BeginNS = Pairs(rec.Body), rec.MonoNS
	case TypeEnd:
		s.End, s.EndNS = Pairs(rec.Body), rec.MonoNS
	case TypeStat, TypeVMStat, TypeMem, TypeLoad, TypeFreq:
		s.snapshot(rec)
	case TypeState:
		s.States = append(s.States, State{MonoNS: rec.MonoNS, Files: files(rec.Body)})
	case TypeOut:
		s.Stdout = append(s.Stdout, rec.Body...)
	case TypeErr:
		s.Stderr = append(s.Stderr, rec.Body...)
	case TypeNote:
		s.Notes = append(s.Notes, string(rec.Body))
	case TypeValue:
		s.Values[rec.Name] = Pairs(rec.Body)
	case TypeTask:
		t, why := parseTask(rec)
		if why != "" {
			return why
		}
		s.Tasks = append(s.Tasks, t)
	case TypePoints:
		rows, why := parsePoints(rec.Body)
		if why != "" {
			return why
		}
		s.Points[rec.Name] = append(s.Points[rec.Name], rows...)
	}
	return ""
}

// snapshot joins the records of one moment.
func (s *Spool) snapshot(rec Record) {
	n := len(s.Snapshots)
	if n == 0 || s.Snapshots[n-1].MonoNS != rec.MonoNS || *s.Snapshots[n-1].file(rec.Type) != nil {
		s.Snapshots = append(s.Snapshots, Snapshot{MonoNS: rec.MonoNS})
		n++
	}
	*s.Snapshots[n-1].file(rec.Type) = rec.Body
}

func (s *Snapshot) file(typ string) *[]byte {
	switch typ {
	case TypeStat:
		return &s.Stat
	case TypeVMStat:
		return &s.VMStat
	case TypeMem:
		return &s.Mem
	case TypeFreq:
		return &s.Freq
	}
	return &s.Load
}

// files reads the body of a state record.
func files(body []byte) map[string]string {
	m := Pairs(body)
	for path, text := range m {
		m[path] = strings.ReplaceAll(text, ";", "\n")
	}
	return m
}

// Pairs reads "key=value" lines; lines without "=" are left out.
func Pairs(body []byte) map[string]string {
	m := map[string]string{}
	for _, ln := range strings.Split(string(body), "\n") {
		if k, v, ok := strings.Cut(ln, "="); ok {
			m[k] = v
		}
	}
	return m
}

func parseTask(rec Record) (t Task, why string) {
	m := Pairs(rec.Body)
	t.Name = rec.Name
	num := func(key string) int64 {
		v, ok := m[key]
		if !ok {
			return 0
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil && why == "" {
			why = key + "=" + cut(v) + " is not a number"
		}
		return n
	}
	t.PID = int(num("pid"))
	t.Exit, t.Signal = int(num("exit")), int(num("signal"))
	if t.Signal != 0 {
		t.Exit = -1
	}
	t.StartNS, t.EndNS = num("start_ns"), num("end_ns")
	t.UserUS, t.SystemUS = num("utime_us"), num("stime_us")
	t.Voluntary, t.Involuntary, t.MaxRSSKB = num("nvcsw"), num("nivcsw"), num("maxrss_kb")
	t.TimedOut, t.Stopped = num("timeout") == 1, num("stopped") == 1
	t.Missing = missing(m)
	return t, why
}

// missing lists the figures that a task record lacks: the shell agent cannot
// have them all, and 0 would be a lie.
func missing(m map[string]string) []string {
	var keys []string
	for _, k := range []string{"utime_us", "stime_us", "nvcsw", "nivcsw", "maxrss_kb"} {
		if _, ok := m[k]; !ok {
			keys = append(keys, k)
		}
	}
	return keys
}

func parsePoints(body []byte) (rows [][]int64, why string) {
	for _, ln := range strings.Split(string(body), "\n") {
		f := strings.Fields(ln)
		if len(f) == 0 {
			continue
		}
		row := make([]int64, len(f))
		for i, s := range f {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return nil, strconv.Quote(cut(s)) + " is not an integer"
			}
			row[i] = n
		}
		rows = append(rows, row)
	}
	return rows, ""
}
