package results

import (
	"bufio"
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
	dec  decoder
}

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
	if f.file != nil && (!os.SameFile(f.file, info) || info.Size() < f.at) {
		f.at = 0
	}
	f.file = info
	if info.Size() == f.at {
		return nil, nil
	}
	if _, err := file.Seek(f.at, io.SeekStart); err != nil {
		return nil, fmt.Errorf("run %s: its journal cannot be read: %w", f.run.Name(), err)
	}
	return f.lines(file)
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
			continue
		}
		text, _ := stripNUL(s.buf)
		rec, err := f.dec.line(text)
		if err != nil || rec.Seq <= f.seq || rec.Run != "" && f.run.Meta.ID != "" && rec.Run != f.run.Meta.ID {
			continue
		}
		f.seq = rec.Seq
		out = append(out, rec)
	}
}
