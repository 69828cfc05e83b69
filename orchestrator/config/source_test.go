package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOddFiles: what is no readable text is named, and nothing waits for it.
func TestOddFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		want string // "" = valid
	}{
		"a link to nowhere":   {func(d string) error { return os.Symlink("none", d+"/b.hcl") }, "/b.hcl: error: cannot read the file: no such file or directory; mend it"},
		"a link to itself":    {func(d string) error { return os.Symlink("b.hcl", d+"/b.hcl") }, "/b.hcl: error: cannot read the file: too many levels"},
		"a pipe beside it":    {func(d string) error { return syscall.Mkfifo(d+"/b.hcl", 0o600) }, ""},
		"UTF-16":              {text("\xff\xfek\x00e\x00r\x00n\x00"), "/b.hcl:1:1: error: the file is UTF-16 text; save it as UTF-8"},
		"UTF-16, the other":   {text("\xfe\xff\x00k\x00e\x00r\x00n"), "/b.hcl:1:1: error: the file is UTF-16 text"},
		"UTF-8 with a mark":   {text("\xef\xbb\xbfkernel \"b\" {}\r\n"), ""},
		"comments alone":      {text("# one\n// two\n/* three\n*/"), ""},
		"nothing":             {text(""), ""},
		"no last line end":    {text("kernel \"b\" {}"), ""},
		"Latin-1":             {text("kernel \"b\" {\n  note = \"gr\xfcn\"\n}\n"), "/b.hcl:2:13: error: invalid character encoding"},
		"a comment left open": {text("kernel \"b\" {}\n/* and\n"), "/b.hcl:2:1: error"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/a.hcl", []byte("kernel \"a\" {}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := c.make(dir); err != nil {
			t.Fatal(err)
		}
		lab, ds := load(dir, nil, testEnv, testDrivers())
		if c.want == "" && (lab == nil || len(ds) > 0) || c.want != "" && (lab != nil || len(ds) != 1 || !strings.Contains(ds.String(), c.want)) {
			t.Errorf("%s: %v, want %q", name, ds, c.want)
		}
	}
}

func text(s string) func(string) error {
	return func(dir string) error { return os.WriteFile(dir+"/b.hcl", []byte(s), 0o644) }
}

// TestPipe: `-f <(…)` names a pipe, and one that nothing writes to ends at once.
func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p.hcl")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ds := load(name, nil, testEnv, testDrivers()); !strings.Contains(ds.String(), "p.hcl: error: cannot read the file: nothing writes to this pipe") {
		t.Errorf("got %v", ds)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("kernel \"k\" {}\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if lab, ds := load(fmt.Sprintf("/dev/fd/%d", r.Fd()), nil, testEnv, testDrivers()); lab == nil || lab.Kernel("k") == nil {
		t.Errorf("got %v", ds)
	}
}

// TestForward: a path made of locals is the same whatever the order of lines.
func TestForward(t *testing.T) {
	parts := []string{
		"locals { first = \"${local.second}/bin\" }\n", "locals { second = \"/opt\" }\n",
		"target \"r1\" {\n  host = \"192.0.2.1\"\n  path = local.first\n}\n",
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}} {
		lab, ds := loadTexts(t, map[string]string{"lab.hcl": parts[order[0]] + parts[order[1]] + parts[order[2]]}, nil)
		if lab == nil || lab.Targets[0].SSH.Path != "/opt/bin" {
			t.Errorf("order %v: %v", order, ds)
		}
	}
}
