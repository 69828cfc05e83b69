package results

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// FormatVersion of the run directory, in run.json. A reader refuses a newer one.
const FormatVersion = 1

const (
	metaFile = "run.json"
	planFile = "plan.json"
)

// RunMeta is run.json: what was run, by whom, from what.
type RunMeta struct {
	Format   int       `json:"format"`
	Name     string    `json:"name"` // of the run directory; set by Create
	Sweep    string    `json:"sweep"`
	Created  time.Time `json:"created"`
	Who      string    `json:"who"`
	Host     string    `json:"host"` // the controller
	Version  string    `json:"kernsweep_version"`
	Command  []string  `json:"command,omitempty"`
	Seed     int64     `json:"seed"`
	PlanHash string    `json:"plan_hash"`
	// Images: SHA-256 of every image file, by its path as configured.
	Images map[string]string `json:"images,omitempty"`
	// Agents: SHA-256 of the agents, by "go/mipsle", "shell", ….
	Agents map[string]string `json:"agents,omitempty"`
}

// Run is one run directory.
type Run struct {
	Meta RunMeta
	dir  string
}

// Dir is the path of the run directory.
func (r *Run) Dir() string { return r.dir }

// Name is the name of the run directory.
func (r *Run) Name() string { return r.Meta.Name }

// Create makes a new run directory runsDir/20261130T220000Z-SWEEP-XXXX. It is
// built under another name and renamed, so that a run directory is always whole,
// and no name is used twice. Format, Name, Sweep and Created of meta are set here.
func Create(runsDir, sweep string, meta RunMeta, now time.Time) (*Run, error) {
	fail := func(err error) (*Run, error) { return nil, fmt.Errorf("create a run in %s: %w", runsDir, err) }
	if err := os.MkdirAll(runsDir, 0o755); err != nil {
		return fail(err)
	}
	tmp, err := os.MkdirTemp(runsDir, ".new-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(tmp) // gone already when all went well
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fail(err)
	}
	meta.Format, meta.Sweep, meta.Created = FormatVersion, sweep, now.UTC()
	if err := writeNew(filepath.Join(tmp, journalFile), nil); err != nil {
		return fail(err)
	}
	for range 100 {
		var suffix [2]byte
		rand.Read(suffix[:]) // never fails (Go 1.24 and later)
		meta.Name = fmt.Sprintf("%s-%s-%s", now.UTC().Format("20060102T150405Z"), safeName(sweep, false), hex.EncodeToString(suffix[:]))
		if err := writeJSON(filepath.Join(tmp, metaFile), meta); err != nil {
			return fail(err)
		}
		dir := filepath.Join(runsDir, meta.Name)
		err := os.Rename(tmp, dir) // refuses a directory that exists
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = syncDir(runsDir)
		}
		if err != nil {
			return fail(err)
		}
		return &Run{Meta: meta, dir: dir}, nil
	}
	return fail(errors.New("100 names were taken"))
}

// Open opens an existing run directory. It changes nothing there.
func Open(dir string) (*Run, error) {
	b, err := os.ReadFile(filepath.Join(dir, metaFile))
	if err != nil {
		return nil, fmt.Errorf("%s is no run directory: %w", dir, err)
	}
	r := &Run{dir: dir}
	if err := json.Unmarshal(b, &r.Meta); err != nil {
		return nil, fmt.Errorf("%s: %s is damaged: %w", dir, metaFile, err)
	}
	if r.Meta.Format < 1 || r.Meta.Format > FormatVersion {
		return nil, fmt.Errorf("%s has format %d, this kernsweep reads 1 to %d: use the version that made it (%s) or a newer one",
			dir, r.Meta.Format, FormatVersion, r.Meta.Version)
	}
	return r, nil
}

// SetMeta replaces run.json, for facts that are known only after Create (hashes
// of agents). Format, Name, Sweep and Created stay.
func (r *Run) SetMeta(meta RunMeta) error {
	meta.Format, meta.Name, meta.Sweep, meta.Created = r.Meta.Format, r.Meta.Name, r.Meta.Sweep, r.Meta.Created
	if err := writeJSON(filepath.Join(r.dir, metaFile), meta); err != nil {
		return fmt.Errorf("run %s: %w", r.dir, err)
	}
	r.Meta = meta
	return nil
}

// WriteFile writes a file of the run directory (testbeds.hcl, report.txt,
// LANE/boot-003/boot.json) by temp file, fsync, rename and directory fsync. The
// name is relative to the run directory; its directory must exist.
func (r *Run) WriteFile(name string, data []byte) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("run %s: %q is outside the run directory", r.dir, name)
	}
	if err := replaceFile(filepath.Join(r.dir, name), data); err != nil {
		return fmt.Errorf("run %s: %w", r.dir, err)
	}
	return nil
}

// Journal reads the run's journal. The writer is not disturbed: a record that
// is just being written is not there yet.
func (r *Run) Journal() (*Journal, error) {
	f, err := os.Open(filepath.Join(r.dir, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return &Journal{Notes: []string{"nothing recorded: there is no journal"}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", r.dir, err)
	}
	defer f.Close()
	j, err := ReadJournal(f)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", r.dir, err)
	}
	return j, nil
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(b, '\n'))
}
