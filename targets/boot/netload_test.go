package boot

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kernsweep/targets"
)

// served is a TFTP server that remembers what it serves.
type served struct {
	listen string
	files  map[string]string
	live   int
	err    error
}

func (s *served) serve(_ context.Context, listen string, files map[string]string) (*targets.Serving, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.listen, s.files = listen, files
	s.live++
	done := false
	return &targets.Serving{Addr: netip.MustParseAddrPort("127.0.0.1:69"), Transfers: func() []targets.Transfer { return nil },
		Release: func() {
			if !done {
				done = true
				s.live--
			}
		}}, nil
}

func parts(t *testing.T, sizes map[string]int) targets.Image {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(strings.Repeat(name[:1], sizes[name])), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	return targets.Image{Kernel: at("kernel"), Initrd: at("one") + "," + at("two"), DTB: at("dtb")}
}

// Files are served from one publish to the next, under names that change with
// their content; sizes are those that a loader sees, and nothing is left behind.
func TestPublish(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left := func() int {
		all, err := filepath.Glob(filepath.Join(os.TempDir(), "kernsweep-initrd-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	s := &served{}
	tg := &targets.Target{Serve: s.serve}
	n := &Netload{TFTP: "192.0.2.1"}
	image := parts(t, map[string]int{"kernel": 700, "one": 5, "two": 3, "dtb": 1})
	names, err := n.publish(t.Context(), tg, targets.Kernel{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	if s.listen != "192.0.2.1:69" || s.files[names.Kernel] != image.Kernel || s.files[names.DTB] != image.DTB || n.sizes != (fileSizes{700, 12, 1}) {
		t.Errorf("%s %q %+v", s.listen, s.files, n.sizes)
	}
	for _, name := range []string{names.Kernel, names.Initrd, names.DTB} {
		if !regexp.MustCompile(`^ks-[0-9a-f]{12}\.[kid]$`).MatchString(name) {
			t.Error(name)
		}
	}
	if b, err := os.ReadFile(s.files[names.Initrd]); string(b) != "ooooo\x00\x00\x00ttt\x00" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if err := os.WriteFile(image.Kernel, []byte("built anew"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := n.publish(t.Context(), tg, targets.Kernel{Image: image})
	if err != nil || again.Kernel == names.Kernel || again.Initrd != names.Initrd || s.live != 1 || left() != 0 { // a killed controller leaves nothing either
		t.Errorf("%+v %v, %d served, %d left", again, err, s.live, left())
	}
	for range 2 {
		if err := n.Close(); err != nil || s.live != 0 || left() != 0 {
			t.Errorf("%v, %d served, %d left", err, s.live, left())
		}
	}
}

// What cannot be published leaves nothing behind and serves nothing.
func TestPublishFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	good := parts(t, map[string]int{"kernel": 1, "one": 1, "two": 1, "dtb": 1})
	noDTB, noInitrd, empty := good, good, parts(t, map[string]int{"kernel": 0, "one": 1, "two": 1, "dtb": 1})
	noDTB.DTB, noInitrd.Initrd = good.DTB+"x", good.Initrd+",/nonexistent"
	for name, c := range map[string]struct {
		image targets.Image
		s     served
		want  string
	}{
		"no DTB": {noDTB, served{}, "no such file"}, "no initrd": {noInitrd, served{}, "no such file"}, "empty": {empty, served{}, "is empty"},
		"no server": {good, served{err: errors.New("address already in use")}, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &Netload{TFTP: "192.0.2.1"}
			_, err := n.publish(t.Context(), &targets.Target{Serve: c.s.serve}, targets.Kernel{Image: c.image})
			has(t, err, c.want)
			if all, _ := filepath.Glob(filepath.Join(os.TempDir(), "kernsweep-initrd-*")); len(all) != 0 || c.s.live != 0 {
				t.Errorf("%q is left, %d served", all, c.s.live)
			}
			if n.Notes() != nil {
				t.Errorf("%q", n.Notes())
			}
		})
	}
	_, err := (&Netload{TFTP: "192.0.2.1"}).publish(t.Context(), &targets.Target{}, targets.Kernel{Image: good})
	has(t, err, "set tftp_root")
}

// Another server's folder gets whole files that it can read, once.
func TestPublishToFolder(t *testing.T) {
	root := t.TempDir()
	n := &Netload{TFTP: "192.0.2.1", Root: root}
	image := parts(t, map[string]int{"kernel": 100_000, "one": 1, "two": 1, "dtb": 1})
	for range 2 {
		names, err := n.publish(t.Context(), &targets.Target{}, targets.Kernel{Image: image})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(root, names.Kernel))
		if err != nil || info.Size() != 100_000 || info.Mode().Perm() != 0o644 {
			t.Errorf("%v %v", info, err)
		}
	}
	if all, _ := os.ReadDir(root); len(all) != 3 {
		t.Errorf("%v", all)
	}
	// A copy that was cut off, by a full disk, is not taken for the file.
	names, err := n.publish(t.Context(), &targets.Target{}, targets.Kernel{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(root, names.Kernel)
	if err := os.Truncate(at, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := n.publish(t.Context(), &targets.Target{}, targets.Kernel{Image: image}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(at); err != nil || info.Size() != 100_000 {
		t.Errorf("%v %v", info, err)
	}
	n.Root = filepath.Join(root, "missing")
	_, err = n.publish(t.Context(), &targets.Target{}, targets.Kernel{Image: image})
	has(t, err, "tftp_root")
}
