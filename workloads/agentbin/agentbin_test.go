package agentbin

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestBuildsWhatIsNotEmbedded(t *testing.T) {
	cache := t.TempDir()
	gocache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(gocache)))
	t.Setenv("XDG_CACHE_HOME", cache)
	var notes []string
	note := func(s string) { notes = append(notes, s) }
	first, err := build(t.Context(), "mipsle", note)
	if err != nil {
		t.Fatal(err)
	}
	second, err := build(t.Context(), "mipsle", note)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) || len(notes) != 1 || !strings.Contains(notes[0], "building the agent for mipsle") {
		t.Errorf("%d and %d bytes, notes %q", len(first), len(second), notes)
	}
	raw, err := (&Binary{GZ: first}).Raw()
	if err != nil || !bytes.HasPrefix(raw, []byte("\x7fELF\x01\x01")) {
		t.Errorf("not a 32-bit little-endian program: % x, %v", raw[:min(len(raw), 8)], err)
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err = build(t.Context(), "mips", note)
	if err == nil || !strings.Contains(err.Error(), "the Go toolchain is not installed") || !strings.Contains(err.Error(), "scripts/build") {
		t.Errorf("without go: %v", err)
	}
}

func TestGet(t *testing.T) {
	if _, err := Get(t.Context(), "vax", nil); err == nil || !strings.Contains(err.Error(), `no agent for architecture "vax" (there is for amd64`) {
		t.Errorf("vax: %v", err)
	}
	b, err := Get(t.Context(), "amd64", nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Raw()
	if err != nil || int64(len(raw)) != b.Size || len(b.Hash) != 64 || b.Arch != "amd64" {
		t.Errorf("%d bytes, %+v, %v", len(raw), b.Hash, err)
	}
}

// The script and this package must build the same agents.
func TestTheScriptBuildsAllArchitectures(t *testing.T) {
	text, err := os.ReadFile("../../scripts/build")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), strings.Join(Arches(), " ")) {
		t.Errorf("scripts/build does not list %v", Arches())
	}
	for _, e := range BuildEnv("")[2:] {
		if !strings.Contains(string(text), e) {
			t.Errorf("scripts/build does not set %s", e)
		}
	}
}
