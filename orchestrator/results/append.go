package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"kernsweep/orchestrator/paste"
)

// pending is an append that waits to be written.
type pending struct {
	rec  Record
	err  error
	done chan struct{}
}

// Append gives the record its numbers and its time, writes it and waits until
// it is on disk. Once it returns without error the record survives a crash. The
// context only bounds the wait for other appends: a record is written even
// after it was cancelled when nobody else is writing, so that how a trial ended
// is never lost to Ctrl-C. After a full disk the next Append may succeed; after
// an error whose extent is unknown every later one fails with that first error.
// Lanes that append at once share one write and one fsync.
func (w *Writer) Append(ctx context.Context, r Record) (Record, error) {
	p := &pending{rec: r, done: make(chan struct{})}
	w.mu.Lock()
	w.queue = append(w.queue, p)
	w.mu.Unlock()
	select {
	case <-w.turn:
	default:
		select {
		case <-w.turn:
		case <-p.done:
			return p.rec, p.err
		case <-ctx.Done():
			if w.withdraw(p) {
				return r, fmt.Errorf("run %s: journal: waiting for another append: %w", w.dir, ctx.Err())
			}
			<-p.done
			return p.rec, p.err
		}
	}
	w.commit()
	w.turn <- struct{}{}
	<-p.done
	return p.rec, p.err
}

// AppendAll is Append for many records at once, in their order, with one write
// and one fsync. All of them are there afterwards, or none.
func (w *Writer) AppendAll(ctx context.Context, list []Record) ([]Record, error) {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("run %s: journal: waiting for another append: %w", w.dir, ctx.Err())
	}
	batch := make([]*pending, len(list))
	for i := range list {
		batch[i] = &pending{rec: list[i]}
	}
	err := w.append(batch)
	w.turn <- struct{}{}
	if err != nil {
		return nil, err
	}
	out := make([]Record, len(batch))
	for i, p := range batch {
		out[i] = p.rec
	}
	return out, nil
}

// withdraw takes back an append that nobody has begun to write.
func (w *Writer) withdraw(p *pending) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.queue)
	w.queue = slices.DeleteFunc(w.queue, func(q *pending) bool { return q == p })
	return len(w.queue) < n
}

// commit writes all that waits. The caller has the turn.
func (w *Writer) commit() {
	w.mu.Lock()
	batch := w.queue
	w.queue = nil
	w.mu.Unlock()
	if err := w.append(batch); err != nil && len(batch) > 1 && w.broken == nil {
		for _, p := range batch { // one that is too many must not take the others along
			p.err = w.append([]*pending{p})
		}
	} else {
		for _, p := range batch {
			p.err = err
		}
	}
	for _, p := range batch {
		close(p.done)
	}
}

// append writes a batch whole, or nothing of it.
func (w *Writer) append(batch []*pending) error {
	if w.broken != nil {
		return w.broken
	}
	if err := w.whole(); err != nil {
		w.broken = err
		return err
	}
	clock, seq, lanes := w.clock, w.seq, map[string]int{}
	var text []byte
	add := func(r *Record) error {
		seq++
		r.Run, r.Seq, r.LaneSeq = w.id, seq, 0
		if r.Lane != "" {
			if _, ok := lanes[r.Lane]; !ok {
				lanes[r.Lane] = w.laneSeq[r.Lane]
			}
			lanes[r.Lane]++
			r.LaneSeq = lanes[r.Lane]
		}
		line, err := fitting(*r)
		text = append(text, line...)
		return err
	}
	for _, p := range batch {
		r := &p.rec
		r.At, r.UpMS = w.now().UTC(), max(1, w.up().Milliseconds())
		if jump := clock.jump(r); jump != "" {
			if err := add(&Record{Kind: KindNote, Note: jump, At: r.At, UpMS: r.UpMS}); err != nil {
				return err
			}
		}
		if err := add(r); err != nil {
			return err
		}
	}
	err := w.write(text)
	if full(err) && w.broken == nil && slices.ContainsFunc(batch, func(p *pending) bool { return reserved(p.rec.Kind) }) && w.spendReserve() {
		err = w.write(text)
	}
	if err != nil {
		return err
	}
	w.clock, w.seq = clock, seq
	for l, n := range lanes {
		w.laneSeq[l] = n
	}
	return nil
}

// whole makes sure that what is written now will be found: the run is still
// this process's, and the file is still the one under the journal's name.
func (w *Writer) whole() error {
	if err := w.lock.held(); err != nil {
		return fmt.Errorf("journal: %w; nothing more is recorded", err)
	}
	return w.inPlace()
}

func (w *Writer) inPlace() error {
	there, err := os.Lstat(filepath.Join(w.dir, journalFile))
	mine, e := w.file.Stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("run %s: journal: %s, or the whole run directory, was moved or deleted while it was being written; nothing more is recorded", w.dir, journalFile)
	case err != nil || e != nil:
		return nil // it cannot be seen now; if the file system is ill, the write tells
	case !os.SameFile(mine, there):
		return fmt.Errorf("run %s: journal: %s was replaced by another file while it was being written; nothing more is recorded", w.dir, journalFile)
	}
	return nil
}

func (w *Writer) write(text []byte) error {
	if _, err := w.file.Write(text); err != nil {
		return w.takeBack(w.explain("write", err))
	}
	if err := w.file.Sync(); err != nil {
		err = w.explain("fsync", err)
		if full(err) { // NFS says so only now
			return w.takeBack(err)
		}
		// The kernel may have dropped the pages: what is on disk is unknown.
		w.broken = err
		return err
	}
	if err := w.inPlace(); err != nil {
		w.broken = err // it was written, but where nobody will find it
		return err
	}
	w.size += int64(len(text))
	return nil
}

// takeBack removes what a failed write left.
func (w *Writer) takeBack(err error) error {
	cut := w.file.Truncate(w.size)
	if cut == nil {
		cut = w.file.Sync()
	}
	if cut != nil {
		w.broken = errors.Join(err, fmt.Errorf("take back the half-written record: %w", cut))
		return w.broken
	}
	return err
}

func (w *Writer) explain(step string, err error) error {
	return fmt.Errorf("run %s: journal: %s: %w%s", w.dir, step, err, advice(w.dir, err))
}

func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// advice is what to do about an error of the run directory's file system.
func advice(dir string, err error) string {
	resume := "kernsweep resume " + paste.Word(filepath.Base(dir))
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return ": the disk of the run directory is full; all that was acknowledged is kept; make room, then: " + resume
	case errors.Is(err, syscall.EDQUOT):
		return ": the disk quota is used up; all that was acknowledged is kept; make room, then: " + resume
	case errors.Is(err, syscall.EROFS):
		return ": the run directory's file system is or turned read-only, often after disk errors (see dmesg); make it writable again, then: " + resume +
			" (or put runs elsewhere with --runs DIR)"
	case errors.Is(err, syscall.EIO):
		return ": the disk or file server of the run directory has errors (see dmesg); when it is well again: " + resume
	case errors.Is(err, syscall.ESTALE):
		return ": the file server no longer knows the run directory; mount it again, then: " + resume
	case errors.Is(err, fs.ErrPermission):
		return ": this user may not write there; use the account that began the run, or another place with --runs DIR"
	}
	return ""
}
