package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kernsweep/orchestrator/results"
)

const (
	recordingBack = 64 << 10  // bytes of the past that a reader begins with
	recordingRead = 256 << 10 // bytes of one Next
	lastLineBack  = 2 << 10   // bytes in which a last line is looked for
)

var usualEscape = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// Recording follows what a controller records of the console of one boot, by its
// files: neither the controller nor the target notices. It is not safe for
// concurrent use.
type Recording struct {
	dir  string
	file string           // read last
	at   map[string]int64 // file -> bytes read
}

// Console is the recording of a boot of a lane, which need not have begun.
func Console(run *results.Run, lane string, boot int) *Recording {
	return &Recording{dir: run.BootDir(lane, boot), at: map[string]int64{}}
}

// Next gives what was recorded since the last call, at first the last 64 KiB at
// most; nil when there is nothing. The error is the file system's.
func (r *Recording) Next() ([]byte, error) {
	name, size, _, err := newestRecording(r.dir)
	if err != nil || name == "" {
		return nil, err
	}
	at, known := r.at[name]
	switch {
	case !known && r.file == "":
		at = max(0, size-recordingBack)
	case known && name != r.file:
		at = size // what was in files of its own was put behind it
	}
	b, err := readAt(filepath.Join(r.dir, name), at, recordingRead)
	r.file, r.at[name] = name, at+int64(len(b))
	return b, err
}

// LastLine is the newest line that is not blank, inert, and when it came; "" when
// there is none.
func (r *Recording) LastLine() (string, time.Time) {
	name, size, when, err := newestRecording(r.dir)
	if err != nil || name == "" {
		return "", time.Time{}
	}
	b, err := readAt(filepath.Join(r.dir, name), max(0, size-lastLineBack), lastLineBack)
	if err != nil {
		return "", time.Time{}
	}
	lines := bytes.Split(b, []byte{'\n'})
	for i := len(lines) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(ConsoleLine(lines[i])); s != "" {
			return s, when
		}
	}
	return "", time.Time{}
}

// newestRecording is the file of a boot's directory that is written now: the
// console's log, that of a controller that resumed, or the newest part of a long one.
func newestRecording(dir string) (name string, size int64, when time.Time, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, when, nil // the boot has not begun
	}
	if err != nil {
		return "", 0, when, fmt.Errorf("the console's recording: %w", err)
	}
	for _, e := range entries {
		base, _, part := strings.Cut(e.Name(), ".tail.")
		if !strings.HasPrefix(e.Name(), "console") || strings.HasSuffix(e.Name(), ".timing") || !part && !strings.HasSuffix(base, ".log") {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue // one that was put behind another meanwhile
		}
		if name == "" || info.ModTime().After(when) {
			name, size, when = e.Name(), info.Size(), info.ModTime()
		}
	}
	return name, size, when, nil
}

// readAt reads at most so many bytes of a file from an offset.
func readAt(path string, at int64, most int) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // gone meanwhile, see above
	}
	if err != nil {
		return nil, fmt.Errorf("the console's recording: %w", err)
	}
	defer f.Close()
	b := make([]byte, most)
	n, err := f.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the console's recording: %w", err)
	}
	return b[:n:n], nil
}

// ConsoleLine makes a line of a console inert. Colours and cursor movements of
// the usual form go, for they would only hide the text; anything else is shown.
func ConsoleLine(b []byte) string {
	b = bytes.TrimRight(b, "\r\x00")
	if bytes.IndexByte(b, 0x1b) >= 0 {
		b = usualEscape.ReplaceAll(b, nil)
	}
	return Safe(string(b))
}
