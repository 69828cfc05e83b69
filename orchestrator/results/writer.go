package results

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const journalFile = "journal.jsonl"

// Writer appends to a run's journal. There is one per run directory; it is safe
// for concurrent lanes.
type Writer struct {
	// Before is what the journal held when it was opened.
	Before *Journal

	dir  string
	file *os.File
	lock *runLock
	now  func() time.Time

	turn    chan struct{} // holds one token: whoever has it writes
	seq     int
	laneSeq map[string]int
	size    int64
	broken  error // an append whose fate is unknown: nothing may follow it
}

// OpenWriter makes this process the one writer of the run. A second writer gets
// a *LockedError that names the holder. Damage in the journal is repaired first:
// the file as found is kept as journal.damaged-NNN.jsonl, and a note is recorded.
func (r *Run) OpenWriter(owner string) (*Writer, error) {
	return openWriter(r.dir, owner, time.Now)
}

func openWriter(dir, owner string, now func() time.Time) (*Writer, error) {
	lock, err := lockRun(dir, owner, now())
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, lock: lock, now: now, turn: make(chan struct{}, 1), laneSeq: map[string]int{}}
	w.turn <- struct{}{}
	if err := w.open(); err != nil {
		if w.file != nil {
			err = errors.Join(err, w.file.Close())
		}
		return nil, errors.Join(err, lock.release())
	}
	return w, nil
}

func (w *Writer) open() error {
	path := filepath.Join(w.dir, journalFile)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("run %s: %w", w.dir, err)
	}
	if w.Before, err = readJournal(bytes.NewReader(old), true); err != nil {
		return err
	}
	repaired, err := w.repair(path, old)
	if err != nil {
		return err
	}
	if w.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return fmt.Errorf("run %s: open the journal: %w", w.dir, err)
	}
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	w.size = info.Size()
	w.seq = w.Before.lastNo
	for _, r := range w.Before.Records {
		if r.Lane != "" {
			w.laneSeq[r.Lane] = r.LaneSeq
		}
	}
	w.Before.lines = nil
	return w.openingNotes(repaired)
}

func (w *Writer) openingNotes(repaired string) error {
	var notes []string
	if w.lock.note != "" {
		notes = append(notes, "journal "+w.lock.note)
	}
	if repaired != "" {
		notes = append(notes, fmt.Sprintf("journal repaired (as found: %s): %s", repaired, strings.Join(w.Before.Notes, "; ")))
	}
	for _, n := range notes {
		if _, err := w.Append(context.Background(), Record{Kind: KindNote, Note: n}); err != nil {
			return err
		}
	}
	return nil
}

// repair rewrites a damaged journal without what cannot be believed, after
// putting the file as found aside. It returns the name it put it under.
func (w *Writer) repair(path string, old []byte) (string, error) {
	if w.Before.clean {
		return "", nil
	}
	aside := ""
	for n := 1; aside == ""; n++ {
		name := fmt.Sprintf("journal.damaged-%03d.jsonl", n)
		err := writeNew(filepath.Join(w.dir, name), old)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("run %s: keep the damaged journal: %w", w.dir, err)
		}
		aside = name
	}
	good := bytes.Join(w.Before.lines, []byte("\n"))
	if len(good) > 0 {
		good = append(good, '\n')
	}
	if err := replaceFile(path, good); err != nil {
		return "", fmt.Errorf("run %s: repair the journal: %w", w.dir, err)
	}
	return aside, nil
}

// Append gives the record its numbers and its time, writes it and waits until
// it is on disk. Once it returns without error the record survives a crash. The
// context only bounds the wait for other appends: a record is written even
// after it was cancelled when nobody else is writing, so that how a trial ended
// is never lost to Ctrl-C. After a full disk the next Append may succeed; after
// an error whose extent is unknown every later one fails with that first error.
func (w *Writer) Append(ctx context.Context, r Record) (Record, error) {
	select {
	case <-w.turn:
	default:
		select {
		case <-w.turn:
		case <-ctx.Done():
			return r, fmt.Errorf("run %s: journal: waiting for another append: %w", w.dir, ctx.Err())
		}
	}
	defer func() { w.turn <- struct{}{} }()
	if w.broken != nil {
		return r, w.broken
	}
	r.Seq, r.LaneSeq, r.At = w.seq+1, 0, w.now().UTC()
	if r.Lane != "" {
		r.LaneSeq = w.laneSeq[r.Lane] + 1
	}
	line, err := EncodeLine(finite(r))
	if err != nil {
		return r, err
	}
	if err := w.write(line); err != nil {
		return r, err
	}
	w.seq = r.Seq
	if r.Lane != "" {
		w.laneSeq[r.Lane] = r.LaneSeq
	}
	return r, nil
}

func (w *Writer) write(line []byte) error {
	if _, err := w.file.Write(line); err != nil {
		err = w.explain("write", err)
		if cut := w.file.Truncate(w.size); cut != nil {
			w.broken = errors.Join(err, fmt.Errorf("take back the half-written record: %w", cut))
			return w.broken
		}
		return err
	}
	if err := w.file.Sync(); err != nil {
		// The kernel may have dropped the pages: what is on disk is unknown.
		w.broken = w.explain("fsync", err)
		return w.broken
	}
	w.size += int64(len(line))
	return nil
}

func (w *Writer) explain(step string, err error) error {
	hint := ""
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = ": the disk of the run directory is full; make room, then kernsweep rerun RUN --failed"
	}
	return fmt.Errorf("run %s: journal: %s: %w%s", w.dir, step, err, hint)
}

// Close ends writing and gives the run free.
func (w *Writer) Close() error {
	<-w.turn // a running append ends first; nobody may append afterwards
	w.broken = fmt.Errorf("run %s: journal: closed", w.dir)
	err := w.file.Close()
	if rel := w.lock.release(); err == nil {
		err = rel
	}
	w.turn <- struct{}{}
	return err
}
