package files

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
)

// ways are connections to unlike targets by name: with SFTP and without, and with
// fewer and fewer programs.
func ways(t *testing.T) map[string]targets.Conn {
	sshd, dropbear := targetstest.SSHD(t), targetstest.Dropbear(t)
	dial := func(d *targetstest.Daemon) targets.Conn {
		c, err := sshconn.New(zap.NewNop()).Dial(t.Context(), d.SSH, targets.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	busybox, dash := targetstest.Tool(t, "busybox", "/bin/busybox"), targetstest.Tool(t, "dash", "/bin/dash")
	with := func(c targets.Conn, applets string) targets.Conn {
		dir := t.TempDir()
		if err := os.Symlink(dash, filepath.Join(dir, "sh")); err != nil { // BusyBox's has all applets in itself
			t.Fatal(err)
		}
		for _, a := range strings.Fields(applets) {
			program := busybox
			if a == "cksum" { // Debian's BusyBox has none
				program = targetstest.Tool(t, a, "/usr/bin/cksum")
			}
			if err := os.Symlink(program, filepath.Join(dir, a)); err != nil {
				t.Fatal(err)
			}
		}
		return &poor{c, dir}
	}
	const few = "cat chmod mkdir mv rm wc dd ln touch find df "
	return map[string]targets.Conn{
		"sshd":                dial(sshd),
		"dropbear":            dial(dropbear),
		"busybox":             with(dial(dropbear), few+"tar sha256sum stat readlink"),
		"md5sum, no tar":      with(dial(dropbear), few+"md5sum"),
		"cksum, no stat":      with(dial(sshd), few+"cksum tar"),
		"neither sum nor tar": with(dial(sshd), few),
	}
}

// poor is a target with few programs.
type poor struct {
	targets.Conn
	dir string
}

func (p *poor) Run(ctx context.Context, c targets.Cmd) (targets.Exit, error) {
	argv := slices.Clone(c.Argv)
	argv[0] = filepath.Join(p.dir, filepath.Base(argv[0]))
	c.Argv = append([]string{"/usr/bin/env", "-i", "PATH=" + p.dir}, argv...)
	return p.Conn.Run(ctx, c)
}

// tree makes a folder with what is awkward about names and modes.
func tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a tree")
	for name, mode := range map[string]fs.FileMode{"plain": 0o644, "-dash": 0o600, "with space /end ": 0o755, "q'u\"o$te\\n": 0o640, "sub/deep/ü": 0o444, "*": 0o600} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("this is "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Date(2021, 2, 3, 4, 5, len(name), 0, time.UTC)
		if err := errors.Join(os.Chmod(at, mode), os.Chtimes(at, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o750), os.Symlink("plain", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// list is what a folder holds: names, kinds, modes, times of files and contents.
func list(t *testing.T, dir string, links bool) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(at)
			if links {
				fmt.Fprintf(&b, "%q -> %q\n", rel, to)
			}
			return err
		case d.IsDir():
			fmt.Fprintf(&b, "%q/\n", rel)
		default:
			text, err := os.ReadFile(at)
			fmt.Fprintf(&b, "%q %v %d %q\n", rel, info.Mode(), info.ModTime().Unix(), text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func push(t *testing.T, c targets.Conn, dest string, from ...string) Pushed {
	t.Helper()
	p, err := Pack(from, dest)
	if err != nil {
		t.Fatal(err)
	}
	done, err := p.Push(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Remarks) > 0 {
		t.Errorf("remarks: %q", done.Remarks)
	}
	return done
}

// A folder goes there, again without a byte, and back, on every kind of target.
func TestThereAndBack(t *testing.T) {
	for name, c := range ways(t) {
		t.Run(name, func(t *testing.T) {
			from, dest := tree(t), filepath.Join(t.TempDir(), "new place")
			if got := push(t, c, dest, from); got.Sent != 6 || got.Files != 6 {
				t.Errorf("first: %+v", got)
			}
			want := list(t, from, true)
			if got := list(t, filepath.Join(dest, "a tree"), true); got != want {
				t.Errorf("arrived:\n%swant:\n%s", got, want)
			}
			hashes := name != "neither sum nor tar"
			if got := push(t, c, dest, from); hashes && (got.Sent != 0 || got.Bytes != 0) || !hashes && got.Sent != 6 {
				t.Errorf("again: %+v", got)
			}
			// One file changes, another only its mode and time.
			if err := errors.Join(os.WriteFile(filepath.Join(from, "plain"), []byte("other"), 0o644), os.Chmod(filepath.Join(from, "-dash"), 0o640),
				os.Chtimes(filepath.Join(from, "-dash"), time.Now(), time.Unix(1e9, 0))); err != nil {
				t.Fatal(err)
			}
			if got := push(t, c, dest, from); hashes && got.Sent != 1 {
				t.Errorf("one changed: %+v", got)
			}
			want = list(t, from, true)
			if got := list(t, filepath.Join(dest, "a tree"), true); got != want {
				t.Errorf("after the change:\n%swant:\n%s", got, want)
			}
			onlyEntries(t, dest, "a tree")

			here, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer here.Close()
			got, err := Pull(t.Context(), c, filepath.Join(dest, "a tree")+"/", here, nil)
			if err != nil || got.Files != 6 || len(got.Refused) > 0 {
				t.Fatalf("%+v, %v", got, err)
			}
			if !strings.Contains(name, "stat") && !strings.Contains(name, "tar") {
				if back := list(t, filepath.Join(here.Name(), "a tree"), false); back != list(t, from, false) {
					t.Errorf("back:\n%swant:\n%s", back, list(t, from, false))
				}
				if got.Left["symbolic link"] != 1 {
					t.Errorf("left out: %v", got.Left)
				}
			}
			if text, err := os.ReadFile(filepath.Join(here.Name(), "a tree", "q'u\"o$te\\n")); err != nil || string(text) != "this is q'u\"o$te\\n" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

func onlyEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// One file: its place, a link there, a folder in its way, no room.
func TestOneFile(t *testing.T) {
	for name, c := range ways(t) {
		t.Run(name, func(t *testing.T) {
			dir, dest := t.TempDir(), t.TempDir()
			big := make([]byte, 300_000)
			if _, err := rand.Read(big); err != nil {
				t.Fatal(err)
			}
			from := filepath.Join(dir, "tool")
			if err := os.WriteFile(from, big, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, to := range []string{dest, dest + "/", dest + "/made/deep/", dest + "/other name"} {
				push(t, c, to, from)
			}
			if err := os.Symlink("/etc/passwd", filepath.Join(dest, "l")); err != nil {
				t.Fatal(err)
			}
			push(t, c, dest+"/l", from)
			for _, at := range []string{"tool", "made/deep/tool", "other name", "l"} {
				got, err := os.ReadFile(filepath.Join(dest, at))
				info, serr := os.Lstat(filepath.Join(dest, at))
				if err != nil || serr != nil || !bytes.Equal(got, big) || info.Mode() != 0o755 {
					t.Errorf("%s: %d bytes, %v, %v", at, len(got), err, info)
				}
			}
			p, err := Pack([]string{from}, dest+"/nowhere/x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = p.Push(t.Context(), c, nil); !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "end the place in /") {
				t.Error(err)
			}
		})
	}
}

// A target without room says so before a byte is sent, and keeps what it had.
func TestNoRoom(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dest, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "none", dest).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dest).Run() })
	from := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(from, make([]byte, 100_000), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range ways(t) {
		p, err := Pack([]string{from}, dest+"/")
		if err != nil {
			t.Fatal(err)
		}
		sent := int64(0)
		_, err = p.Push(t.Context(), c, func(n int64) { sent += n })
		var failed *Failed
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "65.5 kB free, and 100.0 kB are to be sent") || sent > 0 {
			t.Errorf("%s: %v, after %d bytes", name, err, sent)
		}
		onlyEntries(t, dest)
	}
}

func TestPackRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(t.TempDir(), "a")
	if err := errors.Join(os.Mkdir(sub, 0o755), os.WriteFile(filepath.Join(sub, "x\ny"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for want, paths := range map[string][]string{
		"is a named pipe, which cannot be sent": {dir},
		"no such file":                          {filepath.Join(dir, "none")},
		"have the same name":                    {filepath.Join(dir, "a"), sub},
		"has a line end in its name":            {sub},
		"is a device, which cannot":             {"/dev/null"},
	} {
		if _, err := Pack(paths, "/tmp"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", paths, err)
		}
	}
}

// An archive that wants to write elsewhere does not.
func TestHostileArchive(t *testing.T) {
	parent := t.TempDir()
	inside := filepath.Join(parent, "in")
	x := filepath.Join(inside, "x") // where an earlier pull, or a person, left a link
	if err := errors.Join(os.MkdirAll(x, 0o755), os.Symlink(parent, filepath.Join(x, "d")), os.Mkdir(filepath.Join(x, "d2"), 0o755)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "../out", Typeflag: tar.TypeReg, Size: 1},
		{Name: "/out", Typeflag: tar.TypeReg, Size: 1},
		{Name: "a/../../../out", Typeflag: tar.TypeReg, Size: 1},
		{Name: "esc", Typeflag: tar.TypeSymlink, Linkname: ".."},
		{Name: "esc/out", Typeflag: tar.TypeReg, Size: 1, Mode: 0o4777},
		{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"},
		{Name: "hard2", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
		{Name: "null", Typeflag: tar.TypeChar},
		{Name: "fifo", Typeflag: tar.TypeFifo},
		{Name: "d", Typeflag: tar.TypeDir, Mode: 0o000},
		{Name: "d/out", Typeflag: tar.TypeReg, Size: 1},
		{Name: "\x1b[2Jx", Typeflag: tar.TypeReg, Size: 1},
		{Name: "good", Typeflag: tar.TypeReg, Size: 1, Mode: 0o6755},
		{Name: "again", Typeflag: tar.TypeLink, Linkname: "./good"},
		{Name: "d2", Typeflag: tar.TypeReg, Size: 1},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	// The target says that it sends an archive, and sends this.
	got, err := Pull(t.Context(), says("archive\n"+b.String()), "/x/.", root, nil)
	if err != nil {
		t.Fatal(err)
	}
	onlyEntries(t, parent, "in")
	refused := strings.Join(got.Refused, "\n")
	for _, name := range []string{`"../out"`, `"/out"`, `"a/../../../out"`, "etc/passwd", `"d/out"`, `"d2"`} {
		if !strings.Contains(refused, name) {
			t.Errorf("%s was not refused: %s", name, refused)
		}
	}
	if strings.Contains(refused, "\x1b") || got.Left["device"] != 1 || got.Left["symbolic link"] != 1 || got.Left["named pipe"] != 1 {
		t.Errorf("%q, left out %v", refused, got.Left)
	}
	info, err := os.Stat(filepath.Join(inside, "x", "good"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}

// says is a target that answers everything with the same bytes.
type says string

func (s says) Run(_ context.Context, c targets.Cmd) (targets.Exit, error) {
	if c.Stdout != nil {
		if _, err := c.Stdout.Write([]byte(s)); err != nil {
			return targets.Exit{}, err
		}
	}
	return targets.Exit{}, nil
}

func (says) Put(context.Context, string, fs.FileMode, io.Reader) error { return errors.ErrUnsupported }
func (says) Get(context.Context, string, io.Writer) error              { return errors.ErrUnsupported }
func (says) Close() error                                              { return nil }

// Answers that make no sense are errors, never panics or files.
func TestNonsense(t *testing.T) {
	from := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(from, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "hello", "into 1\nhave 0 0 0\nend\n", "into 1\nsums sha256sum\nhave 7\nffff\nend\n", "archive\nnot a tar", "file", "names\n../../x\n", strings.Repeat("\x00", 2000)} {
		p, err := Pack([]string{from}, "/nowhere/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Push(t.Context(), says(text), nil); err == nil {
			t.Errorf("push: %.40q is taken for an answer", text)
		}
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		got, err := Pull(t.Context(), says(text), "/etc/x", root, nil)
		if err == nil && len(got.Refused) == 0 {
			t.Errorf("pull: %.40q is taken for an answer", text)
		}
		root.Close()
	}
}

// A link that breaks in the middle of a file leaves nothing that looks whole.
func TestBrokenPull(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	link := &targets.LinkError{Phase: "exec", Err: errors.New("the cable")}
	_, err = Pull(t.Context(), &breaks{"file 644 1000000000\nhalf of it", link}, "/etc/x", root, nil)
	if !errors.Is(err, link) {
		t.Error(err)
	}
	onlyEntries(t, root.Name())
}

type breaks struct {
	says
	err error
}

func (b *breaks) Run(ctx context.Context, c targets.Cmd) (targets.Exit, error) {
	_, err := b.says.Run(ctx, c)
	return targets.Exit{}, errors.Join(err, b.err)
}

// The sums are those of the programs.
func TestSums(t *testing.T) {
	at := filepath.Join(t.TempDir(), "f")
	for _, n := range []int{0, 1, 255, 256, 70_000} {
		if err := os.WriteFile(at, bytes.Repeat([]byte{'k'}, n), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, k := range sumKinds() {
			out, err := exec.Command(k.program, at).Output()
			if err != nil {
				t.Fatal(err)
			}
			sum, err := k.of(at)
			if err != nil || !strings.HasPrefix(string(out), sum+" ") {
				t.Errorf("%s of %d bytes: %s, want %s (%v)", k.program, n, sum, out, err)
			}
		}
	}
}
