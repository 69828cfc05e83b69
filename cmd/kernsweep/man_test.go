package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestManPagesAreCorrect(t *testing.T) {
	dir := t.TempDir()
	if err := writeManual(helpRoot(), dir, "2026-11-30"); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man?", "*"))
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	out, err := exec.Command("mandoc", append([]string{"-Tlint"}, pages...)...).CombinedOutput()
	if len(out) > 0 || err != nil {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
	run, err := exec.Command("mandoc", "-Tutf8", "-Owidth=78", filepath.Join(dir, "man1", "kernsweep-run.1")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kernsweep run overnight --until 07:00", "--detach", "testbeds.hcl(5)"} {
		if !strings.Contains(plainPage(run), want) {
			t.Errorf("kernsweep-run(1) does not say %q:\n%s", want, plainPage(run))
		}
	}
	again := t.TempDir()
	if err := writeManual(helpRoot(), again, "2026-11-30"); err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		rel, _ := filepath.Rel(dir, p)
		a, _ := os.ReadFile(p)
		b, err := os.ReadFile(filepath.Join(again, rel))
		if err != nil || string(a) != string(b) {
			t.Errorf("%s is another one each time (%v)", rel, err)
		}
	}
}

// plainPage takes out the letters that are printed twice to look bold.
func plainPage(b []byte) string {
	var out []rune
	for _, r := range string(b) {
		if r == '\b' {
			out = out[:len(out)-1]
			continue
		}
		out = append(out, r)
	}
	return string(out)
}

// Text that looks like a request, an escape or a terminal's command is text.
func TestManPageTextIsText(t *testing.T) {
	p := newManText("x", "1", "2026-11-30", "short")
	p.section("DESCRIPTION")
	p.text(".so /etc/passwd 'x \\fBbold \x1b[31m \"q\"")
	p.item(`"a" \- b`, "")
	p.verbatim(".sh\n'sh\n  $A \\n")
	cmd := exec.Command("mandoc", "-Tutf8")
	cmd.Stdin = strings.NewReader(string(p.bytes()))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`.so /etc/passwd 'x \fBbold [31m "q"`, `"a" \- b`, ".sh\n", "'sh\n", `  $A \n`} {
		if !strings.Contains(plainPage(out), want) {
			t.Errorf("%q is missing in:\n%s", want, plainPage(out))
		}
	}
}
