package workloads_test

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kernsweep/workloads"
)

// tree is a source tree of a few objects, each a little shell work. It knows
// O=, clean and configure; a goal of its own fails.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	makefile := `O ?= .
OBJS = $(addprefix $(O)/,a.o b.o c.o d.o)
all: $(O)/.config $(OBJS)
	@test "$$LC_ALL" = C && test -z "$$MAKEFILES"
	@echo built >>$(O)/../count
$(O)/.config:
	@echo "the tree is not configured" >&2; exit 1
configure:
	mkdir -p $(O) && echo yes >$(O)/.config
$(O)/%.o: %.c
	@i=0; while [ $$i -lt 2000 ]; do i=$$((i+1)); done; cp $< $@
broken: $(O)/a.o
	@echo "b.c:3: error: it does not compile" >&2; exit 1
clean:
	rm -f $(OBJS)
.PHONY: all configure broken clean
`
	files := map[string]string{"Makefile": makefile}
	for _, f := range []string{"a.c", "b.c", "c.c", "d.c"} {
		files[f] = "int " + f[:1] + ";\n"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestKernbenchOnThisMachine(t *testing.T) {
	for _, agent := range []string{"go", "shell"} {
		t.Run(agent, func(t *testing.T) {
			env := both(t, agent)
			k := &workloads.Kernbench{Source: tree(t), Dir: t.TempDir(), Config: []string{"make", "O={build}", "configure"}}
			p, err := once(t, env, k)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range p.Values {
				shellLacks := agent == "shell" && v.Missing != ""
				if !shellLacks && (v.Missing != "" || v.Value < 0 || v.Name == "elapsed" && v.Value == 0) {
					t.Errorf("%s: %v %s", v.Name, v.Value, v.Missing)
				}
			}
			// A second level of the same boot is not configured and warmed up again.
			single := *k
			single.Level = "single"
			if _, err := once(t, env, &single); err != nil {
				t.Fatal(err)
			}
			count, err := os.ReadFile(filepath.Join(k.Dir, "kernsweep-kernbench-"+strconv.Itoa(os.Getuid()), "count"))
			if n := strings.Count(string(count), "built"); err != nil || n != 3 {
				t.Errorf("%d builds, want a warm-up and two that count: %v", n, err)
			}
			if log, err := os.ReadFile(filepath.Join(env.Dir, "build.log")); err != nil {
				t.Errorf("%q %v", log, err)
			}
		})
	}
}

func TestKernbenchFromArchive(t *testing.T) {
	env := both(t, "go")
	file := filepath.Join(t.TempDir(), "tree.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	dir := tree(t)
	for _, name := range []string{"Makefile", "a.c", "b.c", "c.c", "d.c"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: "toy-1.0/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	k := &workloads.Kernbench{Archive: file, Dir: t.TempDir(), InTree: true, Level: "maximal", Config: []string{"make", "configure"}}
	if _, err := once(t, env, k); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(k.Dir, "kernsweep-kernbench-"+strconv.Itoa(os.Getuid()), "source", "d.o")); err != nil {
		t.Error(err)
	}
}

func TestKernbenchFails(t *testing.T) {
	env := both(t, "go")
	env.Dir = t.TempDir()
	var failed *workloads.FailedError
	var unavailable *workloads.UnavailableError
	k := &workloads.Kernbench{Source: tree(t), Dir: t.TempDir(), Config: []string{"make", "O={build}", "configure"}, Goals: []string{"broken"}}
	if err := k.Prepare(t.Context(), env); !errors.As(err, &failed) || !strings.Contains(err.Error(), "b.c:3: error") {
		t.Errorf("warm-up of a tree that does not build: %v", err)
	}
	if err := k.Run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Parse(os.DirFS(env.Dir)); !errors.As(err, &failed) || !strings.Contains(err.Error(), "b.c:3: error") {
		t.Errorf("a build that fails: %v", err)
	}
	k.Config = []string{"sh", "-c", "echo no rule >&2; exit 3"}
	if err := k.Prepare(t.Context(), env); !errors.As(err, &failed) || !strings.Contains(err.Error(), "no rule") {
		t.Errorf("configuring fails: %v", err)
	}
	k.Source = "/nonexistent"
	if err := k.Prepare(t.Context(), env); !errors.As(err, &unavailable) {
		t.Errorf("no tree: %v", err)
	}
	k.Source, k.Archive = "", "/nonexistent.tar"
	if err := k.Prepare(t.Context(), env); !errors.As(err, &unavailable) {
		t.Errorf("no archive: %v", err)
	}
	one := &workloads.Kernbench{Source: "/src", Level: "half"}
	env.CPUs = 2
	if err := one.Run(t.Context(), env); !errors.As(err, &unavailable) {
		t.Errorf("half of two CPUs: %v", err)
	}
}
