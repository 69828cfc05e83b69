package leases

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	mailPrefix = "notes-"
	mailMost   = 100                 // notes for one run
	mailAge    = 30 * 24 * time.Hour // of notes that nobody fetched
)

// letter is a note for the journal of a run that its process could not write.
type letter struct {
	ID   string    `json:"id"`
	What string    `json:"what"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// runPath names a run directory alike for alike.
func runPath(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

// SameRun says that two paths lead to one run directory; "" leads nowhere.
func SameRun(a, b string) bool { return a != "" && b != "" && runPath(a) == runPath(b) }

func (f *Folder) mailFile(runDir string) string {
	sum := sha256.Sum256([]byte(runPath(runDir)))
	return filepath.Join(f.dir, mailPrefix+hex.EncodeToString(sum[:12])+".json")
}

// mail reads the notes for a run; what cannot be read is lost.
func (f *Folder) mail(runDir string) ([]letter, error) {
	b, _, err := readFile(f.mailFile(runDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []letter
	if json.Unmarshal(b, &list) != nil {
		list = nil
	}
	return list, nil
}

// post leaves a note about a takeover for the run that lost the lease.
func (g *guard) post(over Takeover, by Record) error {
	if over.From.RunDir == "" || over.From.RunDir == by.RunDir {
		return nil
	}
	list, err := g.f.mail(over.From.RunDir)
	if err != nil {
		return err
	}
	n := letter{ID: newID(), What: over.What, By: by.String(), At: by.Since, Text: fmt.Sprintf(
		"%s: the lease that this run had since %s was taken over by %s at %s: %s", over.From.What, stamp(over.From.Since), by, stamp(by.Since), over.Why)}
	same := func(o letter) bool { return o.What == n.What && o.By == n.By && n.At.Sub(o.At) < g.f.times.ttl }
	if slices.ContainsFunc(list, same) { // a thing may have several keys
		return nil
	}
	list = append(list, n)
	if more := len(list) - mailMost; more > 0 {
		list = list[more:]
	}
	g.f.forgetOld()
	return g.putMail(over.From.RunDir, list)
}

func (g *guard) putMail(runDir string, list []letter) error {
	path := g.f.mailFile(runDir)
	if len(list) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return g.put(path, append(b, '\n'))
}

// forgetOld removes notes that nobody fetched: their runs are gone.
func (f *Folder) forgetOld() {
	files, _ := filepath.Glob(filepath.Join(f.dir, mailPrefix+"*.json"))
	for _, path := range files {
		if st, err := os.Lstat(path); err == nil && f.clock.now().Sub(st.ModTime()) > mailAge {
			_ = os.Remove(path)
		}
	}
}

// Deliver hands every note that was left for a run to add, which makes it durable
// in the run's journal, and removes it then. Whoever opens a journal for writing
// calls it. The error is add's first, or the folder's.
func (f *Folder) Deliver(ctx context.Context, runDir string, add func(note string) error) error {
	list, err := f.mail(runDir)
	if err != nil || len(list) == 0 {
		return err
	}
	done := map[string]bool{}
	for _, n := range list {
		if err = add(n.Text); err != nil {
			break
		}
		done[n.ID] = true
	}
	if len(done) == 0 {
		return err
	}
	e := f.change(ctx, func(g *guard) error {
		now, err := f.mail(runDir)
		if err != nil {
			return err
		}
		return g.putMail(runDir, slices.DeleteFunc(now, func(n letter) bool { return done[n.ID] }))
	})
	if err == nil && e != nil {
		err = f.fail(e)
	}
	return err
}
