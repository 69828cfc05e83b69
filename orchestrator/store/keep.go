package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// keptFile is the record's name in a run directory.
const keptFile = "kept.json"

// Kept is what a run keeps in order to be repeated. It is kept.json in the run
// directory; the bytes of the images are in the store.
type Kept struct {
	// Late says that the run began without the record, and a rerun made it: what
	// the run itself began with is not known.
	Late   bool    `json:"late,omitempty"`
	Images []Image `json:"images"`
	// Files that drivers and workloads read besides, such as boot loaders and
	// source archives: SHA-256 by path. They are compared, their bytes are not kept.
	Files map[string]string `json:"files,omitempty"`
	// Settings of the plan's targets, kernels and workloads: "target x: ssh.host"
	// and a few digits of a hash of the value, which tell that it changed and no more.
	Settings map[string]string `json:"settings"`
}

// Image is one file of a kernel's image on a target. Several initrds of one
// kernel stand in their order.
type Image struct {
	Kernel string `json:"kernel"`
	Target string `json:"target"`
	Part   string `json:"part"` // kernel, initrd, dtb
	Path   string `json:"path"` // as configured
	Hash   string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

// Keep puts the images of a plan into the store and says what a run of it keeps.
// The lab still names its own files afterwards; see Use. Call it under Hold, and
// release that when the run directory names the hashes.
func (s *Store) Keep(ctx context.Context, lab *config.Lab, p *plan.Plan) (*Kept, error) {
	k := &Kept{Images: current(lab, pairs(lab, p)), Files: map[string]string{}}
	var files []string
	k.Settings, files = settings(lab, p)
	for _, f := range files {
		h, err := Hash(ctx, f)
		if err != nil {
			return nil, err
		}
		k.Files[f] = h
	}
	entries, err := s.Put(ctx, paths(k.Images))
	if err != nil {
		return nil, err
	}
	for i := range k.Images {
		e := entries[k.Images[i].Path]
		k.Images[i].Hash, k.Images[i].Size = e.Hash, e.Size
	}
	return k, nil
}

// Hashes are the images' hashes by path, for run.json.
func (k *Kept) Hashes() map[string]string {
	out := map[string]string{}
	for _, i := range k.Images {
		out[i.Path] = i.Hash
	}
	return out
}

// Write leaves the record in the run directory.
func (k *Kept) Write(run *results.Run) error {
	raw, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	return run.WriteFile(keptFile, append(raw, '\n'))
}

// ReadKept is the record of the run in dir; fs.ErrNotExist for a run of a
// version that made none.
func ReadKept(dir string) (*Kept, error) {
	raw, err := os.ReadFile(filepath.Join(dir, keptFile))
	if err != nil {
		return nil, err
	}
	k := new(Kept)
	if err := json.Unmarshal(raw, k); err != nil {
		return nil, fmt.Errorf("run %s: %s is damaged: %w", dir, keptFile, err)
	}
	for _, i := range k.Images {
		if !isHash(i.Hash) || i.Path == "" {
			return nil, fmt.Errorf("run %s: %s is damaged: %q is no hash of %q", dir, keptFile, i.Hash, i.Path)
		}
	}
	return k, nil
}

// Use makes the lab's kernels name the run's own images in the store, for what
// the plan boots. An entry that is missing or damaged comes back from the file
// on disk when that still has the hash; otherwise the error says what is gone. A
// run without a record gets one of today's files.
func (s *Store) Use(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run) error {
	release, err := s.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	k, err := ReadKept(run.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		if k, err = s.Keep(ctx, lab, p); err == nil {
			k.Late = true
			err = k.Write(run)
		}
	}
	if err != nil {
		return err
	}
	if err := s.complete(ctx, lab, p, run, k); err != nil {
		return err
	}
	done := map[string]bool{}
	for _, c := range pairs(lab, p) {
		for _, i := range of(k.Images, c) {
			if done[i.Hash+i.Path] {
				continue
			}
			if err := s.restore(ctx, i); err != nil {
				return err
			}
			done[i.Hash+i.Path] = true
		}
	}
	return s.apply(lab, p, k)
}

// complete adds images to the record that the plan needs and the run did not:
// another known-good kernel, for instance.
func (s *Store) complete(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run, k *Kept) error {
	extra := unrecorded(lab, p, k)
	if len(extra) == 0 {
		return nil
	}
	entries, err := s.Put(ctx, paths(extra))
	if err != nil {
		return err
	}
	for _, i := range extra {
		e := entries[i.Path]
		i.Hash, i.Size = e.Hash, e.Size
		k.Images = append(k.Images, i)
	}
	return k.Write(run)
}

// unrecorded are today's images of kernels that the record knows nothing of.
func unrecorded(lab *config.Lab, p *plan.Plan, k *Kept) []Image {
	var out []Image
	for _, c := range pairs(lab, p) {
		if len(of(k.Images, c)) == 0 {
			out = append(out, current(lab, []pair{c})...)
		}
	}
	return out
}

// restore makes sure that the bytes of an image are there.
func (s *Store) restore(ctx context.Context, i Image) error {
	name := filepath.Base(i.Path)
	wrong := s.Verify(ctx, i.Hash, name)
	if wrong == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(wrong, fs.ErrNotExist) {
		wrong = errors.New("it is not in the store")
	}
	disk := "the file has changed"
	got, err := Hash(ctx, i.Path)
	switch {
	case err != nil:
		disk = err.Error()
	case got == i.Hash:
		if err := s.room(i.Size, 1); err != nil {
			return err
		}
		e, err := s.copySettled(ctx, i.Path)
		if err != nil {
			return err
		}
		if e.Hash == i.Hash {
			return nil
		}
	}
	return &LostError{i, wrong, disk}
}

// LostError says that the bytes of an image that a run booted are nowhere.
type LostError struct {
	Image Image
	Store error  // what is wrong in the store
	Disk  string // what is wrong with the file that they came from
}

func (e *LostError) Error() string {
	i := e.Image
	return fmt.Sprintf("image %s (kernel %s on %s) cannot be booted as the run booted it, with SHA-256 %s…: %v, and on disk %s; put that file back, or start a new run",
		i.Path, i.Kernel, i.Target, i.Hash[:12], e.Store, e.Disk)
}

// apply puts the entries in the place of the lab's files. An image of a target's
// name goes before one of its architecture, so each target gets its own.
func (s *Store) apply(lab *config.Lab, p *plan.Plan, k *Kept) error {
	if strings.Contains(s.dir, ",") {
		return fmt.Errorf("the folder of the runs, %s, has a comma in its name, which separates initrds: choose another with --runs", filepath.Dir(s.dir))
	}
	for _, c := range pairs(lab, p) {
		images := of(k.Images, c)
		if len(images) == 0 {
			continue
		}
		kernel, t := lab.Kernel(c.kernel), lab.Target(c.target)
		var at config.Image
		if old := kernel.ImageFor(t); old != nil {
			at = *old
		}
		at.For = c.target
		at.Kernel, at.Initrd, at.DTB = "", "", ""
		for _, i := range images {
			s.place(&at.Image, i)
		}
		setImage(kernel, at)
	}
	return nil
}

func (s *Store) place(to *targets.Image, i Image) {
	path := s.Path(i.Hash, filepath.Base(i.Path))
	field := map[string]*string{"kernel": &to.Kernel, "initrd": &to.Initrd, "dtb": &to.DTB}[i.Part]
	if field == nil {
		return
	}
	if *field != "" {
		path = *field + "," + path
	}
	*field = path
}

func setImage(k *config.Kernel, i config.Image) {
	for n := range k.Images {
		if k.Images[n].For == i.For {
			k.Images[n] = i
			return
		}
	}
	k.Images = append(k.Images, i)
}
