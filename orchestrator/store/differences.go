package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// Differences names what has changed since the run began, of what the plan
// uses, a sentence each: image files, other files, settings of targets, kernels
// and workloads. The lab names its own files still (before Use). Nothing is
// changed by it; the error is of the run directory.
func Differences(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run) ([]string, error) {
	k, err := ReadKept(run.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return before(ctx, lab, p, run), nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	if k.Late {
		out = append(out, "the run began with a kernsweep that kept no images: what is known of them is from its first rerun")
	}
	out = append(out, imageDifferences(ctx, lab, p, run, k)...)
	now, files := settings(lab, p)
	for _, f := range files {
		if was, ok := k.Files[f]; ok {
			if got, err := Hash(ctx, f); err != nil || got != was {
				out = append(out, fmt.Sprintf("file %s has changed since the run began, and is used as it is now", f))
			}
		}
	}
	return append(out, compare(k.Settings, now)...), ctx.Err()
}

func imageDifferences(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run, k *Kept) []string {
	var out []string
	say := func(format string, v ...any) {
		if s := fmt.Sprintf(format, v...); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	const stays = "the run's own bytes are booted, from the store"
	for _, c := range pairs(lab, p) {
		then, today := of(k.Images, c), current(lab, []pair{c})
		if len(then) == 0 {
			for _, i := range today {
				say("image %s (kernel %s on %s): the run did not use it, so it is booted as it is now", i.Path, c.kernel, c.target)
			}
			continue
		}
		if !slices.Equal(paths(then), paths(today)) {
			say("kernel %s on %s: the configuration names other image files (%s) than the run's (%s); %s", c.kernel, c.target,
				named(today), named(then), stays)
		}
		for _, i := range then {
			if first := run.Meta.Images[i.Path]; first != "" && first != i.Hash {
				say("image %s: the run began with other bytes, which were not kept; those of its first rerun are booted", i.Path)
			}
			switch got, err := Hash(ctx, i.Path); {
			case errors.Is(err, fs.ErrNotExist):
				say("image %s is gone; %s", i.Path, stays)
			case err != nil:
				say("image %s cannot be read (%v); %s", i.Path, err, stays)
			case got != i.Hash:
				say("image %s has changed since the run began (SHA-256 %s…, now %s…); %s", i.Path, i.Hash[:12], got[:12], stays)
			}
		}
	}
	return out
}

func named(images []Image) string {
	if len(images) == 0 {
		return "none"
	}
	return strings.Join(paths(images), ", ")
}

// before are the differences of a run that kept no record.
func before(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run) []string {
	out := []string{"the run began with a kernsweep that kept no images: those on disk are booted, and kept from now on"}
	for _, path := range paths(current(lab, pairs(lab, p))) {
		was := run.Meta.Images[path]
		switch got, err := Hash(ctx, path); {
		case was == "":
			out = append(out, fmt.Sprintf("image %s: what it was when the run began is not known", path))
		case err != nil:
			out = append(out, fmt.Sprintf("image %s cannot be read: %v", path, err))
		case got != was:
			out = append(out, fmt.Sprintf("image %s has changed since the run began, and its old bytes were not kept: old and new attempts are of different kernels", path))
		}
	}
	return out
}

// compare names the blocks whose settings differ, and which settings.
func compare(then, now map[string]string) []string {
	blocks := map[string][]string{}
	known := map[string]bool{}
	for key := range then {
		block, _, _ := strings.Cut(key, ": ")
		known[block] = true
	}
	for key := range now {
		block, _, _ := strings.Cut(key, ": ")
		blocks[block] = nil
	}
	all := maps.Clone(now)
	maps.Copy(all, then)
	for key := range all {
		block, setting, _ := strings.Cut(key, ": ")
		if _, used := blocks[block]; used && known[block] && then[key] != now[key] {
			blocks[block] = append(blocks[block], setting)
		}
	}
	var out []string
	for _, b := range slices.Sorted(maps.Keys(blocks)) {
		switch list := blocks[b]; {
		case !known[b]:
			out = append(out, b+": the run did not use it")
		case len(list) > 0:
			slices.Sort(list)
			out = append(out, fmt.Sprintf("%s: the configuration has changed %s", b, strings.Join(list, ", ")))
		}
	}
	return out
}

// Watch notices source files that are overwritten while a run boots their bytes.
type Watch struct {
	kept  *Kept
	files map[string]string // what may be overwritten: hash by path
}

// NewWatch begins to watch the files of a run's record. first says that the run
// begins now: then a file that differs already was overwritten since it was
// kept. A run without a record has nothing to watch.
func NewWatch(ctx context.Context, dir string, first bool) *Watch {
	w := &Watch{files: map[string]string{}}
	k, err := ReadKept(dir)
	if err != nil {
		return w
	}
	w.kept = k
	all := maps.Clone(k.Files)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, k.Hashes())
	for path, hash := range all {
		if got, err := Hash(ctx, path); first || err == nil && got == hash {
			w.files[path] = hash
		}
	}
	return w
}

// Overwritten says, a sentence each, which files changed since.
func (w *Watch) Overwritten(ctx context.Context) []string {
	var out []string
	images := map[string]bool{}
	if w.kept != nil {
		for _, i := range w.kept.Images {
			images[i.Path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(w.files)) {
		got, err := Hash(ctx, path)
		if ctx.Err() != nil {
			return out
		}
		how := "was overwritten"
		if errors.Is(err, fs.ErrNotExist) {
			how = "was removed"
		}
		switch {
		case err == nil && got == w.files[path]:
		case images[path]:
			out = append(out, fmt.Sprintf("image %s %s during the run; the run booted the bytes it began with (SHA-256 %s…, in the store as %s)",
				path, how, w.files[path][:12], filepath.Base(path)))
		default:
			out = append(out, fmt.Sprintf("file %s %s during the run: what ran before and after may have used different bytes", path, how))
		}
	}
	return out
}
