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
	"sync"
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
	id   string // of the run, in every record; "" in a run of format 1
	now  func() time.Time
	up   func() time.Duration // since the writer was opened, by a clock that never jumps

	turn    chan struct{} // holds one token: whoever has it writes
	seq     int
	laneSeq map[string]int
	size    int64
	clock   clock
	reserve string // path of the room kept for ends and verdicts; "" = there is none
	broken  error  // an append whose fate is unknown: nothing may follow it

	mu    sync.Mutex
	queue []*pending // appends that wait for the turn: whoever has it writes them all

	stop, stopped chan struct{} // of the renewal of the lock
}

// opening is how a writer is opened; tests fill it in otherwise.
type opening struct {
	owner string
	id    string
	now   func() time.Time
	beat  time.Duration // between renewals of the lock
	say   func(string)  // told what is waited for; nil: nobody
}

// OpenWriter makes this process the one writer of the run. A second writer gets
// a *LockedError that names the holder. Damage in the journal is repaired first:
// the file as found is kept as journal.damaged-NNN.jsonl, and a note is recorded.
// It waits, for half a minute, only where a holder on another machine may be gone.
func (r *Run) OpenWriter(owner string) (*Writer, error) {
	return r.OpenWriterContext(context.Background(), owner, nil)
}

// OpenWriterContext is OpenWriter with a wait that ctx ends. say, when not nil,
// is told what is waited for.
func (r *Run) OpenWriterContext(ctx context.Context, owner string, say func(string)) (*Writer, error) {
	return openWriter(ctx, r.dir, opening{owner: owner, id: r.Meta.ID, now: time.Now, beat: beat, say: say})
}

func openWriter(ctx context.Context, dir string, o opening) (*Writer, error) {
	lock, err := lockRun(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	w := &Writer{dir: dir, lock: lock, id: o.id, now: o.now, up: func() time.Duration { return time.Since(began) },
		turn: make(chan struct{}, 1), laneSeq: map[string]int{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	w.turn <- struct{}{}
	if err := w.open(); err != nil {
		if w.file != nil {
			err = errors.Join(err, w.file.Close())
		}
		return nil, errors.Join(err, lock.release())
	}
	go func() {
		defer close(w.stopped)
		lock.renew(o.beat, w.stop)
	}()
	return w, nil
}

func (w *Writer) open() error {
	path := filepath.Join(w.dir, journalFile)
	if err := journalIsPlain(path); err != nil {
		return fmt.Errorf("run %s: %w", w.dir, err)
	}
	old, err := readPlain(path)
	if err != nil {
		return fmt.Errorf("run %s: the journal cannot be read: %w", w.dir, err)
	}
	if w.Before, err = readJournal(bytes.NewReader(old), reading{id: w.id, keep: true}); err != nil {
		return err
	}
	if err := w.Before.mismatch(w.id); err != nil {
		return fmt.Errorf("run %s: %w", w.dir, err)
	}
	if len(w.Before.Records) > 0 {
		w.id = w.Before.id // as it was begun
	}
	repaired, err := w.repair(path, old)
	if err != nil {
		return err
	}
	if w.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return fmt.Errorf("run %s: open the journal: %w%s", w.dir, err, advice(w.dir, err))
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
	removeHalfWritten(w.dir)
	return w.openingNotes(repaired)
}

// journalIsPlain refuses what a journal cannot be appended to. One that is
// missing is no new run: what it held would be forgotten in silence.
func journalIsPlain(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is missing: what this run recorded is lost or was moved; put it back, or begin a new run with: kernsweep run SWEEP", journalFile)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is %s, not a plain file: put the journal itself there", journalFile, kindOf(info.Mode()))
	}
	return nil
}

func (w *Writer) openingNotes(repaired string) error {
	notes := w.lock.notes
	if repaired != "" {
		notes = append(notes, fmt.Sprintf("repaired (as found: %s): %s", repaired, strings.Join(w.Before.Notes, "; ")))
	}
	if n := bootDirs(w.dir); len(w.Before.Records) == 0 && n > 0 {
		text := fmt.Sprintf("holds no record, but this run has files of %d boots: what it recorded is LOST; its files are kept, and nothing of it is counted", n)
		w.Before.Notes = append(w.Before.Notes, "the journal "+text)
		notes = append(notes, text)
	}
	if err := w.makeReserve(); err != nil {
		notes = append(notes, fmt.Sprintf("no room is kept for the end of the run, should the disk be full: %v", err))
	}
	for _, n := range notes {
		if _, err := w.Append(context.Background(), Record{Kind: KindNote, Note: "journal " + n}); err != nil {
			return err
		}
	}
	return nil
}

// bootDirs counts the boots that have a folder in a run directory.
func bootDirs(dir string) int {
	found, _ := filepath.Glob(filepath.Join(globSafe(dir), "*", "boot-*"))
	return len(found)
}

func globSafe(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
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
			return "", fmt.Errorf("run %s: keep the damaged journal: %w%s", w.dir, err, advice(w.dir, err))
		}
		aside = name
	}
	good := bytes.Join(w.Before.lines, []byte("\n"))
	if len(good) > 0 {
		good = append(good, '\n')
	}
	if err := replaceFile(path, good); err != nil {
		return "", fmt.Errorf("run %s: repair the journal: %w%s", w.dir, err, advice(w.dir, err))
	}
	return aside, nil
}

// Close ends writing and gives the run free.
func (w *Writer) Close() error {
	<-w.turn // a running append ends first; nobody may append afterwards
	if !w.closed() {
		close(w.stop)
		<-w.stopped
		w.broken = fmt.Errorf("run %s: journal: closed", w.dir)
		err := w.file.Close()
		if w.reserve != "" && w.lock.held() == nil {
			_ = os.Remove(w.reserve)
		}
		if rel := w.lock.release(); err == nil {
			err = rel
		}
		w.turn <- struct{}{}
		return err
	}
	w.turn <- struct{}{}
	return nil
}

func (w *Writer) closed() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}
