package console

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Close ends the recording and puts the tail behind the head. It may be called
// again.
func (r *Recording) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.part
	if last == nil {
		return nil
	}
	err := r.err
	if err == nil {
		err = r.entry()
	}
	r.part = nil
	if e := last.close(); err == nil {
		err = e
	}
	if err == nil && r.number > 0 {
		err = r.join(last)
	}
	if err != nil {
		return fmt.Errorf("console recording: %w", err)
	}
	return nil
}

// join appends the tails to the head and removes their files.
func (r *Recording) join(last *part) (err error) {
	log, err := os.OpenFile(r.head.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	timing, err := os.OpenFile(r.head.timing.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, timing.Close()) }()
	tails := []*part{last}
	if r.before != nil {
		tails = []*part{r.before, last}
	}
	left := r.size - r.head.size
	for _, t := range tails {
		left -= t.size
	}
	if left > 0 {
		note := fmt.Sprintf("\r\n[kernsweep: %d bytes of the console are left out here]\r\n", left)
		_, e1 := io.WriteString(log, note)
		_, e2 := fmt.Fprintf(timing, "%.6f %d\n", tails[0].from.Sub(r.head.to).Seconds(), len(note))
		if err := errors.Join(e1, e2); err != nil {
			return err
		}
	}
	for _, t := range tails {
		if err := errors.Join(appendFile(log, t.path), appendFile(timing, t.timing.Name())); err != nil {
			return err
		}
	}
	for _, t := range tails {
		if err := t.remove(); err != nil {
			return err
		}
	}
	return nil
}

func appendFile(to *os.File, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
