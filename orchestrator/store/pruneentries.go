package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Sparing says which of the store's entries that no run refers to are spared; the
// zero value spares none.
type Sparing struct {
	OlderThan time.Duration // only those put there longer ago go; 0: whatever their age
	Keep      int           // the newest so many stay
	MaxSize   int64         // the oldest go until the others take no more bytes; 0: whatever they take
}

// unused says why an entry goes that no run refers to, "" when it is spared. n newer
// ones are unused too, and with it they take so many bytes.
func (s Sparing) unused(age time.Duration, n int, bytes int64) string {
	switch {
	case n < s.Keep:
		return ""
	case s.OlderThan == 0 && s.MaxSize == 0:
		return "no run refers to it"
	case s.OlderThan > 0 && age > s.OlderThan:
		return fmt.Sprintf("no run refers to it, and it was put there %d days ago", int(age.Hours()/24))
	case s.MaxSize > 0 && bytes > s.MaxSize:
		return "no run refers to it, and such take more than " + Bytes(s.MaxSize)
	}
	return ""
}

// entry is a folder of the store.
type entry struct {
	hash  string
	names []string
	bytes int64
	put   time.Time // or last added to
	young bool
}

func (p *prune) readStore(ctx context.Context) ([]entry, error) {
	list, err := os.ReadDir(p.store)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("prune: %w", err)
	}
	var out []entry
	for _, d := range list {
		if !isHash(d.Name()) || !d.IsDir() {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		e := entry{hash: d.Name(), bytes: size(filepath.Join(p.store, d.Name()))}
		if files, err := os.ReadDir(filepath.Join(p.store, d.Name())); err == nil {
			for _, f := range files {
				e.names = append(e.names, f.Name())
			}
		}
		if st, err := d.Info(); err == nil {
			e.put, e.young = st.ModTime(), p.Now.Sub(st.ModTime()) < leftoverAge
		}
		out = append(out, e)
	}
	return out, nil
}

// dropEntries removes what no run that stays refers to, but for what is spared.
func (p *prune) dropEntries(stay []*oneRun, entries []entry) {
	used := map[string]bool{}
	for _, r := range stay {
		if r.unread != "" {
			p.warn("%s: %s: it may refer to anything, so the store is left as it is", r.name, r.unread)
			for _, e := range entries {
				p.out.Stay += e.bytes
			}
			return
		}
		for h := range r.refs {
			used[h] = true
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return b.put.Compare(a.put) }) // the newest first
	n, bytes := 0, int64(0)
	for _, e := range entries {
		if used[e.hash] || !p.sure && e.young {
			p.out.Stay += e.bytes
			continue
		}
		why := p.Store.unused(p.Now.Sub(e.put), n, bytes+e.bytes)
		if n++; why == "" || !p.drop(filepath.Join(p.store, e.hash), Removed{"store", strings.Join(append([]string{e.hash[:12]}, e.names...), " "), why, e.bytes}) {
			p.out.Stay += e.bytes
			bytes += e.bytes
		}
	}
}
