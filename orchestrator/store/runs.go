package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kernsweep/orchestrator/results"
)

// oneRun is a run directory as Prune sees it.
type oneRun struct {
	name   string
	run    *results.Run // nil when it cannot be read
	unread string       // why not
	link   bool         // to a folder elsewhere
	refs   map[string]bool
	used   time.Time // last written to
	bytes  int64
	why    string // it goes; "" = it stays
}

// readRuns reads the folder, oldest run first.
func (p *prune) readRuns(ctx context.Context) ([]*oneRun, error) {
	list, err := os.ReadDir(p.runs)
	if err != nil {
		return nil, fmt.Errorf("prune: %w", err)
	}
	var out []*oneRun
	for _, d := range list {
		dir := filepath.Join(p.runs, d.Name())
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if d.Name() == Folder || strings.HasPrefix(d.Name(), ".") || !isRun(dir) {
			continue
		}
		out = append(out, readRun(d.Name(), dir))
	}
	slices.SortStableFunc(out, func(a, b *oneRun) int { // as results.Latest orders them
		x, _, _ := strings.Cut(a.name, "-")
		y, _, _ := strings.Cut(b.name, "-")
		if x != y || a.run == nil || b.run == nil {
			return strings.Compare(a.name, b.name)
		}
		return a.run.Meta.Created.Compare(b.run.Meta.Created)
	})
	return out, nil
}

// isRun tells run directories, also damaged ones, from what else may lie there.
func isRun(dir string) bool {
	st, err := os.Stat(dir)
	if err != nil || !st.IsDir() {
		return false
	}
	for _, f := range []string{"run.json", "journal.jsonl", "plan.json"} {
		if _, err := os.Lstat(filepath.Join(dir, f)); !errors.Is(err, fs.ErrNotExist) {
			return true // it is there, or that cannot be seen
		}
	}
	return false
}

func readRun(name, dir string) *oneRun {
	r := &oneRun{name: name, refs: map[string]bool{}, bytes: size(dir)}
	if st, err := os.Lstat(dir); err == nil {
		r.link = st.Mode()&fs.ModeSymlink != 0
	}
	run, err := results.Open(dir)
	if err != nil {
		r.unread = err.Error()
		return r
	}
	r.run, r.used = run, run.Meta.Created
	for _, hash := range slices.Concat(slices.Collect(maps.Values(run.Meta.Images)), slices.Collect(maps.Values(run.Meta.Agents))) {
		r.refs[hash] = true
	}
	switch k, err := ReadKept(dir); {
	case err == nil:
		for _, i := range k.Images {
			r.refs[i.Hash] = true
		}
	case !errors.Is(err, fs.ErrNotExist):
		r.unread = err.Error()
	}
	if st, err := os.Stat(filepath.Join(dir, "journal.jsonl")); err == nil && st.ModTime().After(r.used) {
		r.used = st.ModTime()
	}
	return r
}

// dropRuns removes the runs that are chosen, and returns those that stay.
func (p *prune) dropRuns(runs []*oneRun, entries []entry) []*oneRun {
	latest := ""
	if l, err := results.Latest(p.runs); err == nil {
		latest = l.Name()
	}
	var free []*oneRun // those that may go, oldest first
	newest := 0
	for i, r := range slices.Backward(runs) {
		holder, held := heldBy(r)
		if held && (p.Keep >= 0 || p.OlderThan > 0 || p.MaxSize > 0) {
			p.warn("%s stays: it is in use by %s", r.name, holder)
		}
		if asked := p.Keep >= 0 || p.OlderThan > 0 || p.MaxSize > 0; r.link && asked {
			p.warn("%s stays: it is a link to a folder elsewhere; remove the link yourself", r.name)
		}
		switch {
		case r.link:
		case r.run == nil || r.unread != "" || r.run.Name() == latest || r.name == latest || i == len(runs)-1 || held:
		case p.Keep >= 0 && newest < p.Keep-1: // the newest run is one of them
			newest++
		default:
			free = append(free, r)
			continue
		}
	}
	slices.Reverse(free)
	p.byAge(free)
	p.bySize(runs, free, entries)
	var stay []*oneRun
	for _, r := range runs {
		if r.why == "" || !p.dropRun(r) {
			stay = append(stay, r)
		}
	}
	return stay
}

func heldBy(r *oneRun) (results.Holder, bool) {
	if r.run == nil {
		return results.Holder{}, false
	}
	return r.run.HeldBy()
}

// byAge chooses by age, or all that Keep does not spare when that alone is asked for.
func (p *prune) byAge(free []*oneRun) {
	for _, r := range free {
		age := p.Now.Sub(r.used)
		switch {
		case p.OlderThan > 0 && age > p.OlderThan:
			r.why = fmt.Sprintf("last written to %d days ago", int(age.Hours()/24))
		case p.Keep >= 0 && p.OlderThan == 0 && p.MaxSize == 0:
			r.why = fmt.Sprintf("not one of the newest %d", max(p.Keep, 1))
		}
	}
}

// bySize chooses the oldest until what stays, with its part of the store, is
// small enough.
func (p *prune) bySize(runs, free []*oneRun, entries []entry) {
	if p.MaxSize <= 0 {
		return
	}
	for _, r := range runs {
		if r.unread != "" { // the store would stay, and runs would go for nothing
			p.warn("no run is removed for its size, as long as %s cannot be read", r.name)
			return
		}
	}
	for _, r := range free {
		if sizeOf(runs, entries) <= p.MaxSize {
			return
		}
		if r.why == "" {
			r.why = "the oldest, and the folder is larger than " + Bytes(p.MaxSize)
		}
	}
	if n := sizeOf(runs, entries); n > p.MaxSize {
		p.warn("%s still takes %s: what is left may not be removed", p.runs, Bytes(n))
	}
}

func sizeOf(runs []*oneRun, entries []entry) int64 {
	var n int64
	refs := map[string]bool{}
	for _, r := range runs {
		if r.why == "" {
			n += r.bytes
			maps.Copy(refs, r.refs)
		}
	}
	for _, e := range entries {
		if refs[e.hash] {
			n += e.bytes
		}
	}
	return n
}

// dropRun removes a run that nobody writes. Holding its journal keeps others
// from beginning to; a full disk has no room for that, but it is the one that
// has to be pruned.
func (p *prune) dropRun(r *oneRun) bool {
	if !p.DryRun {
		w, err := r.run.OpenWriter("prune")
		switch {
		case err == nil:
			defer w.Close() // its own files are gone by then
		case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		default:
			p.warn("%s stays: %v", r.name, err)
			return false
		}
	}
	return p.drop(filepath.Join(p.runs, r.name), Removed{"run", r.name, r.why, r.bytes})
}
