package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Limits of what is taken from a target after a crash.
const (
	maxCrashFiles = 64
	maxCrashFile  = 4 << 20  // bytes; a dmesg is smaller, a vmcore is not wanted
	maxCrashAll   = 16 << 20 // bytes, all files of one collection
)

// The script mounts pstore where it is not, and lists "KIND SIZE MTIME PATH":
// pstore's own records, those that systemd-pstore moved away, and the newest
// kernel log that kdump left (kdump-tools: /var/crash/*/dmesg*, kexec-tools:
// vmcore-dmesg.txt).
const crashScript = `
d=/sys/fs/pstore
if [ -d $d ] && [ -z "$(ls -A $d 2>/dev/null)" ]; then mount -t pstore pstore $d 2>/dev/null; fi
list() {
	k=$1; shift
	for f in "$@"; do
		if [ -f "$f" ] && [ -r "$f" ]; then
			echo "$k $(wc -c <"$f") $(date -r "$f" +%s 2>/dev/null || echo 0) $f"
		fi
	done
}
list pstore $d/*
list moved /var/lib/systemd/pstore/* /var/lib/systemd/pstore/*/* /var/lib/systemd/pstore/*/*/*
newest=$(ls -t /var/crash/*/dmesg* /var/crash/*/vmcore-dmesg.txt /var/crash/vmcore-dmesg.txt 2>/dev/null | head -n 1)
if [ -n "$newest" ]; then list kdump "$newest"; fi
exit 0`

// Crashes takes what crashed kernels left on a target: pstore and ramoops
// records (kernel Documentation/admin-guide/ramoops.rst) and kdump's kernel log.
// The zero value is ready; one belongs to one target.
type Crashes struct{ seen map[string]bool }

type crashFile struct {
	kind, path string
	size       int64
	id         string // kind, size, time and path: whether it is a new one
}

// Collect copies what is new into dir, which is made when there is something,
// and returns the names there. A pstore record is removed from the target once
// it lies on the disk as a whole, so that the store does not fill up; everything
// else stays. old says that no boot has failed yet: what lies around is then not
// taken, pstore apart. notes say what could not be had. The error is the link's
// or the disk's, and what was saved before it stays.
func (c *Crashes) Collect(ctx context.Context, conn Conn, dir string, old bool) (saved, notes []string, err error) {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	var out bytes.Buffer
	if _, err := conn.Run(ctx, Cmd{Argv: []string{"sh", "-c", crashScript}, Stdout: limited(&out, 1<<18)}); err != nil {
		return nil, nil, err
	}
	left := int64(maxCrashAll)
	for _, f := range crashFiles(out.String()) {
		if c.seen[f.id] && f.kind != "pstore" {
			continue
		}
		c.seen[f.id] = true
		switch {
		case old && f.kind != "pstore":
			continue
		case len(saved) >= maxCrashFiles || f.size > min(left, maxCrashFile):
			notes = append(notes, fmt.Sprintf("%s (%d bytes) stays on the target: more than the limit", f.path, f.size))
			continue
		}
		name, err := f.fetch(ctx, conn, dir)
		if err != nil {
			return saved, notes, fmt.Errorf("%s: %w", f.path, err)
		}
		left -= f.size
		saved = append(saved, name)
		if f.kind == "pstore" {
			if why := remove(ctx, conn, f.path); why != "" {
				notes = append(notes, f.path+" could not be removed from the store: "+why)
			}
		}
	}
	return saved, notes, nil
}

// crashFiles reads the script's list. Lines that are none are a file name with a
// line break in it, which nobody needs.
func crashFiles(list string) []crashFile {
	var out []crashFile
	for line := range strings.Lines(list) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(f) != 4 || !strings.HasPrefix(f[3], "/") {
			continue
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || size <= 0 || f[0] != "pstore" && f[0] != "moved" && f[0] != "kdump" {
			continue
		}
		if f[0] == "pstore" && path.Dir(f[3]) != "/sys/fs/pstore" {
			continue // only what lies there is ever removed
		}
		out = append(out, crashFile{kind: f[0], path: f[3], size: size, id: line})
	}
	return out
}

// fetch copies a file into dir under a name of its own and syncs both. What did
// not come whole is not kept.
func (f crashFile) fetch(ctx context.Context, conn Conn, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	to, err := f.create(dir)
	if err != nil {
		return "", err
	}
	count := &counting{w: to, most: f.size}
	err = conn.Get(ctx, f.path, count)
	if err == nil && count.n != f.size {
		err = fmt.Errorf("%d bytes came, %d were listed", count.n, f.size)
	}
	if err == nil {
		err = to.Sync()
	}
	if e := to.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(to.Name()) // the first error is the one that matters
		return "", err
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer d.Close()
	return filepath.Base(to.Name()), d.Sync()
}

// create opens a new file; one of an earlier collection is not overwritten.
func (f crashFile) create(dir string) (*os.File, error) {
	name := f.kind + "-" + plainName(strings.TrimPrefix(strings.TrimPrefix(f.path, "/sys/fs/pstore/"), "/var/"))
	for n := 1; ; n++ {
		at := filepath.Join(dir, name)
		if n > 1 {
			at += fmt.Sprintf(".%d", n)
		}
		to, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, os.ErrExist) || n >= 1000 {
			return to, err
		}
	}
}

// plainName makes a name from a target harmless: letters, digits, dot, dash and
// underscore, none that hides or leaves its folder.
func plainName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 100)]
}

// remove deletes one file there and says why it could not, "" when it did.
func remove(ctx context.Context, conn Conn, path string) string {
	var said bytes.Buffer
	e, err := conn.Run(ctx, Cmd{Argv: []string{"rm", "--", path}, Stderr: limited(&said, 300)})
	switch {
	case err != nil:
		return err.Error()
	case !e.OK():
		return fmt.Sprintf("rm %s: %s", e, strings.TrimSpace(said.String()))
	}
	return ""
}

// counting refuses more than a file was said to have.
type counting struct {
	w       io.Writer
	n, most int64
}

func (c *counting) Write(p []byte) (int, error) {
	if c.n += int64(len(p)); c.n > c.most {
		return 0, fmt.Errorf("it is longer than the %d bytes that were listed", c.most)
	}
	return c.w.Write(p)
}
