package store

import (
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

const (
	leftoverAge = 24 * time.Hour // of what an unfinished write left behind
	pruneWait   = time.Minute    // for runs that are just being made
)

// Pruning says what Prune may remove. The newest run and runs in use stay
// whatever it says.
type Pruning struct {
	// OlderThan removes runs that nobody has written to for longer; 0: none.
	OlderThan time.Duration
	// Keep removes all runs but the newest so many, or spares these from the
	// other two; below 0: neither.
	Keep int
	// MaxSize removes the oldest runs until the folder takes no more bytes; 0: none.
	MaxSize int64
	// Store says which entries of the store go that no run refers to.
	Store  Sparing
	DryRun bool
	Now    time.Time
}

// Removed is one thing that Prune removed, or would.
type Removed struct {
	What  string `json:"what"` // run, image or agent, leftover
	Name  string `json:"name"`
	Why   string `json:"why"`
	Bytes int64  `json:"bytes"`
}

// Pruned is what Prune did.
type Pruned struct {
	Removed  []Removed `json:"removed"`
	Bytes    int64     `json:"bytes"` // freed
	Runs     int       `json:"runs"`  // runs that stay
	Stay     int64     `json:"stay"`  // bytes that stay, of these runs and of the store
	Warnings []string  `json:"warnings,omitempty"`
	DryRun   bool      `json:"dry_run,omitempty"`
}

// prune is one Prune at work.
type prune struct {
	Pruning
	runs  string
	store string
	sure  bool // nobody puts anything meanwhile
	gone  []string
	out   Pruned
}

// Prune removes from a folder of run directories the runs that o names, then
// what the store holds for none of the runs that stay, and what unfinished
// writes left. A run that cannot be read, or is of a newer format, may refer to
// anything: then the store is left as it is, with a warning. It waits for runs
// that are just being made; the error is of that, or of the folder.
func Prune(ctx context.Context, runs string, o Pruning) (Pruned, error) {
	s, err := Open(runs)
	if err != nil {
		return Pruned{}, err
	}
	p := &prune{Pruning: o, runs: filepath.Dir(s.dir), store: s.dir, out: Pruned{Removed: []Removed{}, DryRun: o.DryRun}}
	if _, err := os.Stat(p.runs); err != nil {
		return p.out, fmt.Errorf("prune: %w", err)
	}
	release, err := p.alone(ctx)
	if err != nil {
		return p.out, err
	}
	err = p.choose(ctx)
	release()
	for _, path := range p.gone { // they have dot names, so nobody looks for them
		if e := os.RemoveAll(path); e != nil {
			p.warn("%s is removed only in part: %v", path, e)
		}
	}
	return p.out, err
}

func (p *prune) warn(format string, v ...any) {
	p.out.Warnings = append(p.out.Warnings, fmt.Sprintf(format, v...))
}

// alone keeps new runs away from the store.
func (p *prune) alone(ctx context.Context) (release func(), err error) {
	if _, err := os.Stat(p.store); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, pruneWait, errors.New("a run is just being made; try again when it has begun"))
	defer stop()
	f := (&Store{p.store}).lock()
	p.sure, err = f.TryLockContext(ctx, lockRetry)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("prune %s: %w", p.runs, context.Cause(ctx))
	case err != nil && !unlockable(err) && !errors.Is(err, syscall.EROFS):
		return nil, fmt.Errorf("prune %s: lock: %w", p.store, err)
	case err != nil:
		p.warn("files cannot be locked in %s (%v): what is younger than a day stays in the store", p.store, err)
	}
	return func() { _ = f.Close() }, nil
}

func (p *prune) choose(ctx context.Context) error {
	runs, err := p.readRuns(ctx)
	if err != nil {
		return err
	}
	entries, err := p.readStore(ctx)
	if err != nil {
		return err
	}
	stay := p.dropRuns(runs, entries)
	p.dropEntries(stay, entries)
	p.out.Runs = len(stay)
	for _, r := range stay {
		p.out.Stay += r.bytes
	}
	return p.dropLeftovers()
}

// drop moves path aside, to be removed when the lock is given back.
func (p *prune) drop(path string, r Removed) bool {
	if !p.DryRun {
		aside := filepath.Join(filepath.Dir(path), gonePrefix+strings.TrimPrefix(filepath.Base(path), gonePrefix))
		if aside != path {
			if err := os.RemoveAll(aside); err != nil {
				p.warn("%s: %v", aside, err)
				return false
			}
			if err := os.Rename(path, aside); err != nil {
				p.warn("%s stays: %v", path, err)
				return false
			}
		}
		p.gone = append(p.gone, aside)
	}
	p.out.Removed = append(p.out.Removed, r)
	p.out.Bytes += r.Bytes
	return true
}

// dropLeftovers removes what writes and prunes that were cut off left behind.
func (p *prune) dropLeftovers() error {
	for _, dir := range []string{p.runs, p.store} {
		list, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("prune: %w", err)
		}
		for _, d := range list {
			st, err := d.Info()
			if err != nil {
				continue // gone meanwhile
			}
			path := filepath.Join(dir, d.Name())
			// Whoever makes a run, or stores a file, holds the lock meanwhile.
			unfinished := strings.HasPrefix(d.Name(), newPrefix) && (p.Now.Sub(st.ModTime()) > leftoverAge || p.sure)
			if unfinished || strings.HasPrefix(d.Name(), gonePrefix) && !p.mine(path) {
				p.drop(path, Removed{"leftover", filepath.Base(dir) + "/" + d.Name(), "left by a kernsweep that was cut off", size(path)})
			}
		}
	}
	return nil
}

// mine says that path was moved aside just now.
func (p *prune) mine(path string) bool {
	for _, g := range p.gone {
		if g == path {
			return true
		}
	}
	return false
}

// size is what a file or a tree takes on disk, in bytes, as far as it can be read.
func size(path string) int64 {
	var n int64
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				n += st.Blocks * 512
			}
		}
		return nil
	})
	return n
}
