package main

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// One platform of a release: the others differ by what the compiler is told, and
// TestEverySystemIsBuiltFor looks at them.
func TestRelease(t *testing.T) {
	out := filepath.Join(t.TempDir(), "dist")
	script(t, "../..", "scripts/release", "--out", out, "--only", "linux/amd64", "9.8.7~rc1")
	script(t, out, "sha256sum", "--check", "--strict", "SHA256SUMS")
	const name = "kernsweep-9.8.7~rc1-linux-amd64"
	for _, f := range []string{name + ".tar.gz", name + ".cdx.json", "kernsweep_9.8.7~rc1_amd64.deb"} {
		if sums, _ := os.ReadFile(filepath.Join(out, "SHA256SUMS")); !strings.Contains(string(sums), "  "+f+"\n") {
			t.Fatalf("SHA256SUMS does not name %s:\n%s", f, sums)
		}
	}
	listed := script(t, out, "tar", "tzf", name+".tar.gz")
	for _, f := range []string{"kernsweep", "LICENSE", "README.md", "testbeds.hcl", "man/man1/kernsweep.1", "man/man5/testbeds.hcl.5",
		"completions/kernsweep.zsh", "systemd/kernsweep-serve.service", "examples/historic/README.md"} {
		if !strings.Contains(listed, name+"/"+f+"\n") {
			t.Errorf("the archive has no %s", f)
		}
	}
	root := filepath.Join(out, "root")
	script(t, out, "dpkg-deb", "-x", "kernsweep_9.8.7~rc1_amd64.deb", root)
	script(t, out, "dpkg-deb", "-e", "kernsweep_9.8.7~rc1_amd64.deb", filepath.Join(root, "DEBIAN"))
	script(t, root, "md5sum", "--check", "--quiet", "DEBIAN/md5sums")
	for _, f := range []string{"usr/share/bash-completion/completions/kernsweep", "usr/share/zsh/vendor-completions/_kernsweep",
		"usr/share/fish/vendor_completions.d/kernsweep.fish", "usr/share/man/man1/kernsweep-run.1.gz", "usr/share/man/man5/testbeds.hcl.5.gz",
		"usr/lib/systemd/system/kernsweep-serve.service", "etc/kernsweep/testbeds.hcl", "usr/share/doc/kernsweep/copyright"} {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			t.Error(err)
		}
	}
	if conf, _ := os.ReadFile(filepath.Join(root, "DEBIAN/conffiles")); !strings.Contains(string(conf), "/etc/kernsweep/testbeds.hcl\n") {
		t.Errorf("conffiles: %s", conf)
	}
	binary := filepath.Join(root, "usr/bin/kernsweep")
	if v := script(t, root, binary, "version"); !strings.HasPrefix(v, "kernsweep 9.8.7~rc1 (") || strings.Contains(v, "none, they are built") {
		t.Errorf("the binary says %s", v)
	}
	script(t, root, binary, "-f", "etc/kernsweep/testbeds.hcl", "validate")
	unitStarts(t, root, binary)
	isStatic(t, binary)
	billOfMaterials(t, filepath.Join(out, name+".cdx.json"), binary)
}

// unitStarts: the options of the unit are those that the command has.
func unitStarts(t *testing.T, root, binary string) {
	t.Helper()
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/kernsweep-serve.service"))
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(unit), "\nExecStart=")
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) < 3 || words[0] != "/usr/bin/kernsweep" || words[len(words)-1] != "$KERNSWEEP_SERVE_OPTIONS" {
		t.Fatalf("ExecStart=%s", line)
	}
	script(t, root, binary, append(words[1:len(words)-1], "--help")...)
	options, err := os.ReadFile(filepath.Join(root, "etc/default/kernsweep-serve"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(options), `#KERNSWEEP_SERVE_OPTIONS="`)
	example, _, ok := strings.Cut(example, `"`)
	if !ok {
		t.Fatalf("no example in %s", options)
	}
	script(t, root, binary, append(append(words[1:len(words)-1], strings.Fields(example)...), "--help")...)
}

func isStatic(t *testing.T, binary string) {
	t.Helper()
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is linked dynamically (%s)", binary, p.Type)
		}
	}
}

// billOfMaterials: it has every module of the binary, with version and hash.
func billOfMaterials(t *testing.T, file, binary string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat  string
		Components []struct {
			Name, Version string
			Hashes        []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal(raw, &bom); err != nil || bom.BOMFormat != "CycloneDX" {
		t.Fatalf("%s: %q, %v", file, bom.BOMFormat, err)
	}
	have := map[string]bool{}
	for _, c := range bom.Components {
		have[c.Name+" "+c.Version] = len(c.Hashes) > 0
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil || len(info.Deps) < 20 {
		t.Fatalf("%d modules, %v", len(info.Deps), err)
	}
	for _, m := range info.Deps {
		if !have[m.Path+" "+m.Version] {
			t.Errorf("the bill of materials has no %s %s with a hash", m.Path, m.Version)
		}
	}
}

// script runs a program in dir, and returns what it prints.
func script(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	if strings.HasPrefix(name, "scripts/") {
		c.Path, _ = filepath.Abs(filepath.Join(dir, name))
	}
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, errs.String())
	}
	return string(out)
}
