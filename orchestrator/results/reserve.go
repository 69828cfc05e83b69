package results

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	reserveFile = "journal.reserve"
	reserveSize = 64 << 10 // bytes: some hundred verdicts
)

// reserved tells the records that may use the room kept for them on a full
// disk: how things ended, and what is owed. Nothing new is begun with it.
func reserved(k Kind) bool {
	switch k {
	case KindEnded, KindJudged, KindBoot, KindLane, KindRun, KindKnob, KindCut:
		return true
	}
	return false
}

// makeReserve fills a file that can be given up when the disk is full.
func (w *Writer) makeReserve() error {
	path := filepath.Join(w.dir, reserveFile)
	b := make([]byte, reserveSize)
	rand.Read(b) // a file system that compresses must not see through it
	err := writeNew(path, b)
	if errors.Is(err, fs.ErrExist) {
		if info, e := os.Lstat(path); e == nil && info.Mode().IsRegular() && info.Size() == reserveSize {
			err = nil // a killed writer's
		}
	}
	if err == nil {
		w.reserve = path
	}
	return err
}

// spendReserve gives the room free; false when it is spent already.
func (w *Writer) spendReserve() bool {
	if w.reserve == "" {
		return false
	}
	path := w.reserve
	w.reserve = ""
	return os.Remove(path) == nil && syncDir(w.dir) == nil
}
