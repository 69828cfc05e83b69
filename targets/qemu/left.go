package qemu

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"kernsweep/targets/localproc"
)

// longestSocket is the longest path of a socket: sun_path of unix(7) without its
// final NUL.
const longestSocket = 107

// leftRecord is what a later controller needs to know of a QEMU process, should
// the one that started it be killed and the process live on.
type leftRecord struct {
	PID        int    `json:"pid"`   // 0: it was about to start
	Start      string `json:"start"` // field 22 of /proc/PID/stat
	Program    string `json:"program"`
	QMP        string `json:"qmp"` // path of its socket, also on its command line
	Target     string `json:"target"`
	Controller struct {
		PID   int    `json:"pid"`
		Start string `json:"start"`
	} `json:"controller"`
	Boot string `json:"boot_id"` // of the controller's machine
	PIDs string `json:"pids"`    // its namespace of process ids
}

// guests is the folder of the records and sockets of this user's QEMU processes.
// It is private: who can write there could have processes ended.
type guests struct{ dir string }

// ourGuests is the folder on this machine, the same for every run of this user.
func ourGuests() guests {
	name := "kernsweep-guests-" + strconv.Itoa(os.Getuid())
	g := guests{filepath.Join(os.TempDir(), name)}
	if len(g.socket(strings.Repeat("x", 16))) > longestSocket || !filepath.IsAbs(g.dir) {
		g.dir = "/tmp/" + name
	}
	return g
}

// open makes the folder, or checks that it is ours alone.
func (g guests) open() error {
	if err := os.Mkdir(g.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := os.Lstat(g.dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || !ok || int(sys.Uid) != os.Getuid() || st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a folder of this user alone (%s): remove it", g.dir, st.Mode())
	}
	return nil
}

func (g guests) socket(id string) string { return filepath.Join(g.dir, id+".qmp") }

// left is the trace of one QEMU process; nil does nothing.
type left struct {
	g   guests
	id  string
	rec leftRecord
}

// leave leaves the trace of a process that is about to start.
func (g guests) leave(program, target string) (*left, error) {
	if err := g.open(); err != nil {
		return nil, err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	l := &left{g: g, id: hex.EncodeToString(id[:])}
	l.rec = leftRecord{Program: program, QMP: g.socket(l.id), Target: target, Boot: localproc.BootID(), PIDs: localproc.Space()}
	l.rec.Controller.PID, l.rec.Controller.Start = os.Getpid(), localproc.Start(os.Getpid())
	if len(l.rec.QMP) > longestSocket {
		return nil, fmt.Errorf("%s is too long a path for a socket", l.rec.QMP)
	}
	return l, l.write()
}

// args give QEMU a second monitor, which outlives the controller.
func (l *left) args() []string {
	if l == nil {
		return nil
	}
	return []string{"-chardev", "socket,id=left,server=on,wait=off," + l.rec.path(), "-mon", "chardev=left,mode=control"}
}

// path is how QEMU's command line names the socket: commas are doubled there.
func (r leftRecord) path() string { return "path=" + strings.ReplaceAll(r.QMP, ",", ",,") }

// started completes the record once the process runs.
func (l *left) started(pid int) error {
	if l == nil {
		return nil
	}
	l.rec.PID, l.rec.Start = pid, localproc.Start(pid)
	return l.write()
}

func (l *left) write() error {
	b, err := json.Marshal(l.rec)
	if err != nil {
		return err
	}
	return renameio.WriteFile(l.record(), append(b, '\n'), 0o600)
}

func (l *left) record() string { return filepath.Join(l.g.dir, l.id+".json") }

// remove takes the trace away once the process is gone, or did not start. What
// stays behind does no harm.
func (l *left) remove() {
	if l == nil {
		return
	}
	_ = os.Remove(l.g.socket(l.id)) // QEMU may have done so
	_ = os.Remove(l.record())
}

// EndLeft ends the QEMU processes whose controller was killed and that live on
// all the same: each is asked over its QMP socket to quit, and killed when it
// does not. One whose controller lives is left alone. note gets a sentence for
// each that was ended, and for a record that makes no sense. The error says what
// could not be ended, or that the folder cannot be used.
func EndLeft(ctx context.Context, note func(string)) error { return ourGuests().endLeft(ctx, note) }
