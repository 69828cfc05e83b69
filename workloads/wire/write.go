package wire

import (
	"errors"
	"io"
	"strconv"
	"sync"
)

// ErrFull means that a record was dropped because the spool reached its limit.
var ErrFull = errors.New("the spool is full")

// small is the room kept behind the limit for records that are never dropped:
// begin, task, value, note and end.
const small = 64 << 10

// Writer appends records to a spool. It is safe for concurrent use and, once
// its buffer has grown, allocates nothing. The first error of the underlying
// writer is kept: later bulk records are dropped, the others are still tried.
type Writer struct {
	mu    sync.Mutex
	w     io.Writer
	limit int64 // 0 = none
	size  int64
	full  bool
	err   error
	buf   []byte
}

// NewWriter writes the magic line to w and returns the Writer. Bulk records
// (samples, output, points) that would pass limit bytes are dropped; 0 is no limit.
func NewWriter(w io.Writer, limit int64) (*Writer, error) {
	n, err := io.WriteString(w, Magic)
	if err != nil {
		return nil, err
	}
	return &Writer{w: w, limit: limit, size: int64(n)}, nil
}

// Write appends one record. It returns ErrFull when the record was dropped for
// lack of room, or the error of the underlying writer.
func (w *Writer) Write(typ string, monoNS int64, name string, body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = appendRecord(w.buf[:0], typ, monoNS, name, body)
	return w.flush(typ)
}

// WriteAll appends records of one kind with a single write: all or none.
func (w *Writer) WriteAll(rs []Record) error {
	if len(rs) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = w.buf[:0]
	for i := range rs {
		w.buf = appendRecord(w.buf, rs[i].Type, rs[i].MonoNS, rs[i].Name, rs[i].Body)
	}
	return w.flush(rs[0].Type)
}

func appendRecord(b []byte, typ string, monoNS int64, name string, body []byte) []byte {
	b = append(b, typ...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, monoNS, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(body)), 10)
	if name != "" {
		b = append(b, ' ')
		b = append(b, name...)
	}
	b = append(b, '\n')
	b = append(b, body...)
	return append(b, '\n')
}

// flush writes the buffer, which holds records like typ.
func (w *Writer) flush(typ string) error {
	if !w.fits(typ, int64(len(w.buf))) {
		w.full = true
		return ErrFull
	}
	n, err := w.w.Write(w.buf)
	w.size += int64(n)
	if err != nil && w.err == nil {
		w.err = err
	}
	return err
}

func (w *Writer) fits(typ string, n int64) bool {
	switch typ {
	case TypeBegin, TypeTask, TypeValue, TypeNote, TypeEnd:
		return w.limit == 0 || w.size+n <= w.limit+small
	}
	return w.err == nil && !w.full && (w.limit == 0 || w.size+n <= w.limit)
}

// Full reports whether a bulk record has been dropped.
func (w *Writer) Full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full || w.err != nil
}

// AppendTask appends the body of a task record.
func AppendTask(b []byte, t Task) []byte {
	b = pair(b, "pid", int64(t.PID))
	if t.Signal != 0 {
		b = pair(b, "signal", int64(t.Signal))
	} else {
		b = pair(b, "exit", int64(t.Exit))
	}
	b = pair(b, "start_ns", t.StartNS)
	b = pair(b, "end_ns", t.EndNS)
	b = pair(b, "utime_us", t.UserUS)
	b = pair(b, "stime_us", t.SystemUS)
	b = pair(b, "nvcsw", t.Voluntary)
	b = pair(b, "nivcsw", t.Involuntary)
	b = pair(b, "maxrss_kb", t.MaxRSSKB)
	if t.TimedOut {
		b = pair(b, "timeout", 1)
	}
	if t.Stopped {
		b = pair(b, "stopped", 1)
	}
	return b
}

func pair(b []byte, key string, v int64) []byte {
	b = append(b, key...)
	b = append(b, '=')
	b = strconv.AppendInt(b, v, 10)
	return append(b, '\n')
}
