package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Follower reads a journal as it grows: each call of Next gives what is new,
// and reads no byte twice. It is for eyes, not for verdicts: a line that is
// damaged is passed over, and Run.State says what is wrong with the file.
type Follower struct {
	run  *Run
	at   int64 // offset of the first byte not taken yet
	seq  int   // of the last record given
	file os.FileInfo
	mark []byte // the bytes before at, as they were read
	dec  decoder
}

const markLen = 64 // bytes; the checksum of a line is in them

// Follow begins at the start of the journal.
func (r *Run) Follow() *Follower { return &Follower{run: r} }

// Next gives the whole lines that were appended since the last call, nil when
// there are none. A journal that was rewritten (a repair) is read from its
// start, without the records that were given. An error is the file system's.
func (f *Follower) Next() ([]Record, error) {
	file, err := os.Open(filepath.Join(f.run.dir, journalFile))
	if err != nil {
		return nil, fmt.Errorf("run %s: its journal cannot be read: %w", f.run.Name(), err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("run %s: its journal cannot be read: %w", f.run.Name(), err)
	}
	same := f.file != nil && os.SameFile(f.file, info)
	f.file = info
	if same && info.Size() == f.at {
		return nil, nil
	}
	if info.Size() < f.at || !f.goesOn(file) {
		f.at, f.mark = 0, nil
	}
	if _, err := file.Seek(f.at, io.SeekStart); err != nil {
		return nil, fmt.Errorf("run %s: its journal cannot be read: %w", f.run.Name(), err)
	}
	return f.lines(file)
}

// goesOn says that the file still has before at what was read there: a new file may
// have the number of an old one, and be as long.
func (f *Follower) goesOn(file io.ReaderAt) bool {
	was := make([]byte, len(f.mark))
	n, _ := file.ReadAt(was, f.at-int64(len(was))) // what cannot be read is not the same
	return n == len(was) && bytes.Equal(was, f.mark)
}

// marks remembers the end of a line.
func (f *Follower) marks(line []byte) {
	f.mark = append(append(f.mark, line...), '\n')
	f.mark = append([]byte(nil), f.mark[max(0, len(f.mark)-markLen):]...)
}

func (f *Follower) lines(file io.Reader) ([]Record, error) {
	s := scanner{in: bufio.NewReaderSize(file, 64<<10)}
	var out []Record
	for {
		size, ended, err := s.next()
		switch {
		case err != nil && !errors.Is(err, fs.ErrClosed):
			return out, fmt.Errorf("run %s: its journal cannot be read: %w", f.run.Name(), err)
		case !ended:
			return out, nil // not whole yet
		}
		f.at += int64(size)
		if size > maxLine {
			f.mark = nil // of such a line not all was kept
			continue
		}
		f.marks(s.buf)
		text, _ := stripNUL(s.buf)
		rec, err := f.dec.line(text)
		if err != nil || rec.Seq <= f.seq || rec.Run != "" && f.run.Meta.ID != "" && rec.Run != f.run.Meta.ID {
			continue
		}
		f.seq = rec.Seq
		out = append(out, rec)
	}
}
