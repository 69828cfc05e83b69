package results

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// FormatVersion of the run directory, in run.json. A reader refuses a newer one,
// and reads all older ones. Since 2 every record names its run.
const FormatVersion = 2

const (
	metaFile = "run.json"
	planFile = "plan.json"
)

// RunMeta is run.json: what was run, by whom, from what.
type RunMeta struct {
	Format   int       `json:"format"`
	Name     string    `json:"name"`         // of the run directory; set by Create
	ID       string    `json:"id,omitempty"` // in every record, so that another run's is known as foreign; set by Create
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
	// Imported: the run was made from other people's logs. Nothing of it was
	// proven, and what their files do not say is not known.
	Imported *Import `json:"imported,omitempty"`
	// Config is the absolute path of the configuration that the run was made from,
	// for the commands that are proposed about it. "" = not known.
	Config string `json:"config,omitempty"`
}

// Import says what an imported run was made from.
type Import struct {
	Files []ImportedFile `json:"files"`
	Note  string         `json:"note,omitempty"` // of whoever imported it: where the logs are from
}

// ImportedFile is a file that was read, and kept whole below the run directory.
type ImportedFile struct {
	Name   string `json:"name"`   // as given
	SHA256 string `json:"sha256"` // of its bytes
	Kept   string `json:"kept"`   // path below the run directory
	Format string `json:"format"` // "iperf", "kernbench", "time", "vmstat", "table"
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
// and no name is used twice. Format, Name, ID, Sweep and Created of meta are set here.
func Create(runsDir, sweep string, meta RunMeta, now time.Time) (*Run, error) {
	fail := func(err error) (*Run, error) {
		hint := ""
		if full(err) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
			hint = ": make room or make it writable, or choose another place with --runs DIR"
		}
		return nil, fmt.Errorf("create a run in %s: %w%s", runsDir, err, hint)
	}
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
	var id [6]byte
	rand.Read(id[:]) // never fails (Go 1.24 and later)
	meta.Format, meta.ID, meta.Sweep, meta.Created = FormatVersion, hex.EncodeToString(id[:]), sweep, now.UTC()
	if err := writeNew(filepath.Join(tmp, journalFile), nil); err != nil {
		return fail(err)
	}
	for range 100 {
		var suffix [2]byte
		rand.Read(suffix[:])
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

// Open opens an existing run directory. It changes nothing there, and needs no
// right to.
func Open(dir string) (*Run, error) {
	b, err := readPlain(filepath.Join(dir, metaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingMeta(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %s cannot be read: %w", dir, metaFile, err)
	}
	r := &Run{dir: dir}
	if err := json.Unmarshal(b, &r.Meta); err != nil || r.Meta.Format < 1 {
		return nil, fmt.Errorf("run %s: %s is damaged (%s): put back a copy of it; what was measured is still in %s and the lanes' folders",
			dir, metaFile, damage(b, err), journalFile)
	}
	if r.Meta.Format > FormatVersion {
		return nil, fmt.Errorf("run %s has format %d, this kernsweep reads 1 to %d: use the version that made it (%s) or a newer one; nothing was changed",
			dir, r.Meta.Format, FormatVersion, r.Meta.Version)
	}
	// A folder that was renamed or copied goes by the name it has now.
	if abs, err := filepath.EvalSymlinks(dir); err == nil {
		if abs, err = filepath.Abs(abs); err == nil {
			r.Meta.Name = filepath.Base(abs)
		}
	}
	return r, nil
}

func missingMeta(dir string, err error) error {
	if _, e := os.Lstat(filepath.Join(dir, journalFile)); e == nil {
		return fmt.Errorf("run %s: %s is missing: put back a copy of it; what was measured is still in %s and the lanes' folders", dir, metaFile, journalFile)
	}
	return fmt.Errorf("%s is no run directory: %w", dir, err)
}

// damage says in few words what is wrong with a JSON file.
func damage(b []byte, err error) string {
	switch {
	case len(b) == 0:
		return "it is empty"
	case len(bytes.Trim(b, "\x00")) == 0:
		return "it holds only NUL bytes"
	case err == nil:
		return "it names no format"
	}
	return err.Error()
}

// SetMeta replaces run.json, for facts that are known only after Create (hashes
// of agents). Format, Name, ID, Sweep and Created stay.
func (r *Run) SetMeta(meta RunMeta) error {
	meta.Format, meta.Name, meta.ID, meta.Sweep, meta.Created = r.Meta.Format, r.Meta.Name, r.Meta.ID, r.Meta.Sweep, r.Meta.Created
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
		return fmt.Errorf("run %s: %w%s", r.dir, err, advice(r.dir, err))
	}
	return nil
}

// WriteJSON writes v to a file inside the run directory, named by its path as
// BootDir and TrialDir give it, in the way of WriteFile.
func (r *Run) WriteJSON(path string, v any) error {
	name, err := filepath.Rel(r.dir, path)
	if err != nil || !filepath.IsLocal(name) {
		return fmt.Errorf("run %s: %q is outside the run directory", r.dir, path)
	}
	if err := writeJSON(path, v); err != nil {
		return fmt.Errorf("run %s: %s: %w", r.dir, name, err)
	}
	return nil
}

// Journal reads the run's journal. The writer is not disturbed: a record that
// is just being written is not there yet.
func (r *Run) Journal() (*Journal, error) {
	j, err := r.readJournal()
	if err != nil || j.torn == "" {
		return j, err
	}
	// Half a record is no damage while somebody writes. A writer that ended
	// meanwhile has finished its line.
	if j, err = r.readJournal(); err != nil {
		return nil, err
	}
	if _, held := r.HeldBy(); !held {
		j.noteTorn()
	}
	return j, nil
}

func (r *Run) readJournal() (*Journal, error) {
	f, err := openPlain(filepath.Join(r.dir, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return &Journal{Notes: []string{"nothing recorded: " + journalFile + " is missing; what this run recorded is lost or was moved"}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: the journal cannot be read: %w", r.dir, err)
	}
	defer f.Close()
	j, err := readJournal(f, reading{id: r.Meta.ID})
	if err == nil {
		err = j.mismatch(r.Meta.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", r.dir, err)
	}
	if n := bootDirs(r.dir); len(j.Records) == 0 && n > 0 {
		j.Notes = append(j.Notes, fmt.Sprintf("files of %d boots are here: what this run recorded of them is LOST", n))
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
