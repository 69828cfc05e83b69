package validity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kernsweep/orchestrator/results"
)

// mostBytes of a file of a boot that are read: the probe keeps no more.
const mostBytes = 8 << 20

// bootFiles reads what a run keeps beside its journal. A file that is absent is
// absent; one that is there and cannot be read is remembered.
type bootFiles struct {
	run    *results.Run
	failed []string
	// configs that were parsed, by the SHA-256 of their bytes.
	configs map[[32]byte]kernelConfig
}

func newBootFiles(run *results.Run) *bootFiles {
	return &bootFiles{run: run, configs: map[[32]byte]kernelConfig{}}
}

// boot reads a file of a boot, by its name below the boot's directory. Boots that
// were imported have none, however many they are.
func (f *bootFiles) boot(b *results.BootState, name string) ([]byte, bool) {
	if f.run.Meta.Imported != nil {
		return nil, false
	}
	return f.read(filepath.Join(f.run.BootDir(b.Lane, b.Number), name), mostBytes)
}

// read reads at most limit bytes of a regular file.
func (f *bootFiles) read(path string, limit int64) ([]byte, bool) {
	text, err := readRegular(path, limit)
	switch {
	case err == nil:
		return text, true
	case !errors.Is(err, fs.ErrNotExist):
		f.fail(path, err)
	}
	return nil, false
}

func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would never end
		return nil, errors.New("not a regular file")
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text := bytes.NewBuffer(make([]byte, 0, min(info.Size(), limit)+1))
	_, err = io.Copy(text, io.LimitReader(r, limit))
	return text.Bytes(), err
}

func (f *bootFiles) fail(path string, err error) {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if rel, e := filepath.Rel(f.run.Dir(), path); e == nil {
		path = rel
	}
	f.failed = append(f.failed, fmt.Sprintf("%s: %v", path, err))
}

// unread is the one finding about all files that could not be read.
func (f *bootFiles) unread() []results.Found {
	if len(f.failed) == 0 {
		return nil
	}
	r := unreadableRule()
	text := "could not be checked: " + f.failed[0]
	if n := len(f.failed) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more files)", n)
	}
	return []results.Found{{Finding: results.Finding{Rule: r.Name, Threshold: r.Threshold, Text: text}, Detail: f.failed}}
}

// keptFile names the images that each kernel of each target was booted from.
const keptFile = "kept.json"

// images are the hashes of the kernel images of a run; none in an imported one.
func (f *bootFiles) images() map[kernelKey]string {
	path := filepath.Join(f.run.Dir(), keptFile)
	text, ok := f.read(path, mostBytes)
	if !ok {
		return nil
	}
	var kept struct {
		Images []struct{ Kernel, Target, Part, SHA256 string }
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		f.fail(path, err)
		return nil
	}
	images := map[kernelKey]string{}
	for _, i := range kept.Images {
		if i.Part == "kernel" {
			images[kernelKey{i.Target, i.Kernel}] = i.SHA256
		}
	}
	return images
}

// agent is what the spool of a trial says of the agent that wrote it: "go 1.26
// mipsle", "shell"; "" when nothing is on file.
func (f *bootFiles) agent(a *results.Attempt) string {
	head, ok := f.read(filepath.Join(f.run.TrialDir(a.Slot, a.Number), "spool"), 4096)
	if !ok {
		return ""
	}
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return "" // the end of the first record
		}
		if agent, ok := bytes.CutPrefix(line, []byte("agent=")); ok {
			return string(agent)
		}
	}
	return ""
}
