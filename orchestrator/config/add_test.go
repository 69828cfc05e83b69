package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func adderFor(t *testing.T, path string) *Adder {
	t.Helper()
	a, diags := NewAdder(path, nil, nil)
	if a == nil {
		t.Fatal(diags)
	}
	return a
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func newT(name string) NewTarget {
	return NewTarget{Name: name, Body: []Line{{Name: "ssh", Inside: []Line{{Name: "host", Value: "192.0.2.7"}}}}}
}

const blockText = "target \"n\" {\n  ssh {\n    host = \"192.0.2.7\"\n  }\n}\n"

// TestAddKeepsEveryByte: what was in a file stays, to the byte, around the block.
func TestAddKeepsEveryByte(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"an empty file":          {"", ""},
		"no target":              {"locals {\n\ta   =  1 // odd\n}\n", "\n"},
		"no last newline":        {"# only a comment", "\n\n"},
		"after the last target":  {"target \"a\" { host = \"h\" } # why\n|kernel \"k\" {}\n", ""},
		"a comment that goes on": {"target \"a\" { host = \"h\" } /* one\n two */ # three\n|\n\nkernel \"k\" {}\n", ""},
		"target is the last":     {"kernel \"k\" {}\ntarget \"a\" {\n\thost=\"h\"\n}", ""},
		"of several":             {"target \"a\" { host = \"g\" }\nkernel \"k\" {}\ntarget \"b\" { host = \"h\" }\n|# about c\nkernel \"c\" {}\n", ""},
		"a heredoc with a brace": {"target \"a\" {\n  host = \"h\"\n  note = <<E\n}\nE\n}\n|workload \"iperf\" \"w\" {}\n", ""},
		"CRLF":                   {"target \"a\" { host = \"h\" }\r\n|# more\r\nkernel \"k\" {}\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "testbeds.hcl")
			head, tail, _ := strings.Cut(c.before, "|")
			put(t, path, head+tail)
			x, diags := adderFor(t, path).Add(newT("n"))
			if x == nil {
				t.Fatal(diags)
			}
			if err := x.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, block := get(t, path), blockText
			if name == "CRLF" {
				block = strings.ReplaceAll(block, "\n", "\r\n")
				if strings.Count(got, "\n") != strings.Count(got, "\r\n") {
					t.Errorf("line ends are mixed: %q", got)
				}
			}
			before, after, ok := strings.Cut(got, block)
			if !ok || !strings.HasPrefix(before, head) || !strings.HasSuffix(after, tail) ||
				strings.TrimSpace(before) != strings.TrimSpace(head) || strings.TrimSpace(after) != strings.TrimSpace(tail) {
				t.Errorf("%q", got)
			}
			if strings.Contains(got, "\n\n\n\n") {
				t.Errorf("too many empty lines: %q", got)
			}
			if got := strings.Count(got[:strings.Index(got, block)], "\n") + 1; got != x.Line {
				t.Errorf("the block is on line %d, and line %d is said", got, x.Line)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if _, diags := Load(path, nil, nil); diags.HasErrors() {
				t.Error(diags)
			}
		})
	}
}

// TestAddChoosesTheFile of a folder, and makes what is missing.
func TestAddChoosesTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		path  string
		want  string
	}{
		"no file":                  {nil, "lab.hcl", "lab.hcl"},
		"an empty folder":          {nil, ".", "targets.hcl"},
		"a folder without targets": {map[string]string{"kernels.hcl": "kernel \"k\" {}\n"}, ".", "targets.hcl"},
		"the file with the last": {map[string]string{"a.hcl": "target \"a\" { host = \"a\" }\n", "b.hcl": "target \"b\" { host = \"b\" }\n", "c.hcl": "kernel \"k\" {}\n"},
			".", "b.hcl"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for f, text := range c.files {
				put(t, filepath.Join(dir, f), text)
			}
			path := filepath.Join(dir, c.path)
			x, diags := adderFor(t, path).Add(newT("n"))
			if x == nil {
				t.Fatal(diags)
			}
			if err := x.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := get(t, filepath.Join(dir, c.want)); !strings.HasSuffix(got, blockText) {
				t.Errorf("%q", got)
			}
			lab, diags := Load(path, nil, nil)
			if diags.HasErrors() || lab.Target("n") == nil {
				t.Error(diags)
			}
			if list, _ := filepath.Glob(filepath.Join(dir, ".*")); len(list) > 0 {
				t.Errorf("left behind: %v", list)
			}
		})
	}
}

// TestAddRefusesAFileThatChanged, and one that came into being.
func TestAddRefusesAFileThatChanged(t *testing.T) {
	for name, before := range map[string]string{"changed": "kernel \"k\" {}\n", "made": ""} {
		path := filepath.Join(t.TempDir(), "testbeds.hcl")
		if name == "changed" {
			put(t, path, before)
		}
		x, diags := adderFor(t, path).Add(newT("n"))
		if x == nil {
			t.Fatal(diags)
		}
		put(t, path, "# somebody else\n")
		if err := x.Write(t.Context()); err == nil || !strings.Contains(err.Error(), "by somebody else meanwhile") {
			t.Errorf("%s: %v", name, err)
		}
		if got := get(t, path); got != "# somebody else\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestAddThroughALink writes the file that a link names, and leaves the link.
func TestAddThroughALink(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "real"), "# x\n")
	path := filepath.Join(dir, "testbeds.hcl")
	if err := os.Symlink("real", path); err != nil {
		t.Fatal(err)
	}
	x, diags := adderFor(t, path).Add(newT("n"))
	if x == nil {
		t.Fatal(diags)
	}
	if err := x.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(path); to != "real" || err != nil || !strings.HasSuffix(get(t, filepath.Join(dir, "real")), blockText) {
		t.Errorf("%q, %v", to, err)
	}
}

// TestAddRefusesWhatIsNotValid: nothing is written then.
func TestAddRefusesWhatIsNotValid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "testbeds.hcl")
	put(t, path, "class \"c\" {\n  boot \"cfe\" { tftp = \"192.0.2.1\" }\n}\n")
	b := newT("n")
	b.Class = "c"
	if x, diags := adderFor(t, path).Add(b); x != nil || !strings.Contains(diags.String(), "types on the serial console") {
		t.Errorf("%v", diags)
	}
	put(t, path, "target {\n")
	if a, diags := NewAdder(path, nil, nil); a != nil || !diags.HasErrors() {
		t.Errorf("%v", diags)
	}
}

// TestNewTargetIsInert: no word of a device gets out of its comment or string.
func TestNewTargetIsInert(t *testing.T) {
	evil := "a\n}\ntarget \"x\" {} \x1b[2J \u202e \u2066 ${env(\"HOME\")} %{ if true } \"quoted\" \\ */ #\r\n"
	value := strings.NewReplacer("\x1b", "", "\r", "", "\u202e", "", "\u2066", "").Replace(evil) // in a string these are refused
	b := NewTarget{Name: "n", Head: []string{evil}, Body: []Line{
		{Name: "note", Value: value, Comment: evil}, {Name: "ssh", Comment: evil, Inside: []Line{{Name: "host", Value: "h", Comment: evil}}}},
		Missing: []Missing{{What: evil, Like: []Line{{Name: "boot", Label: "cfe", Comment: evil, Inside: []Line{{Name: "tftp", Value: evil}}}}}}}
	path := filepath.Join(t.TempDir(), "testbeds.hcl")
	x, diags := adderFor(t, path).Add(b)
	if x == nil {
		t.Fatal(diags)
	}
	if len(x.Lab.Targets) != 1 || x.Target.Note != value {
		t.Errorf("%d targets, %q", len(x.Lab.Targets), x.Target.Note)
	}
	for _, r := range x.Text {
		if r < ' ' && r != '\n' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Errorf("%q in %q", r, x.Text)
		}
	}
}

func TestNamesFromHosts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "testbeds.hcl")
	put(t, path, "target \"ap\" { host = \"h\" }\n")
	a := adderFor(t, path)
	for in, want := range map[string]string{
		"router": "router", "AP": "ap_2", "web-1.example.org": "web_1", "10.0.0.7": "t10", "(none)": "target", "": "target", "controller": "controller_2",
		"\x1b[2J": "t2j", strings.Repeat("x", 80): strings.Repeat("x", 64), "-a-": "a", "localhost": "target",
	} {
		if got := a.NameFrom(in); got != want || !ValidName(got) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A lock that somebody holds is waited for, as long as the context allows.
func TestAddToALockedFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "lab.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := lock(ctx, other); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := lock(t.Context(), other); err != nil {
		t.Error(err)
	}
}
