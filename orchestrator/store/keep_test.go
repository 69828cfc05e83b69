package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

const labText = `
variable "loops" { default = 1 }
target "a" {
  arch = "amd64"
  ssh { user = "root" }
  boot "qemu" { memory = 256 }
}
kernel "old" {
  scheduler = "cfs"
  image "amd64" {
    kernel  = "img/vmlinuz"
    initrd  = "img/base.cpio,img/mods.cpio"
    cmdline = "quiet"
  }
}
kernel "new" {
  image "amd64" { kernel = "img/bzImage" }
  image "arm64" { kernel = "img/Image" }
}
workload "exec" "up" {
  command = ["sleep", format("%d", var.loops)]
  metrics = { time = "time:elapsed" }
}
sweep "s" {
  kernels  = [kernel.old, kernel.new]
  baseline = kernel.old
  boots    = 2
  repeat   = 1
  matrix {
    targets   = [target.a]
    workloads = [workload.exec.up]
  }
}
`

// bench is a lab with its files, and a run of it.
type bench struct {
	t     *testing.T
	dir   string
	store *Store
	plan  *plan.Plan
	run   *results.Run
}

func (b *bench) lab(edits ...string) *config.Lab {
	b.t.Helper()
	text := strings.NewReplacer(edits...).Replace(labText)
	lab, diags := config.Load(file(b.t, filepath.Join(b.dir, "testbeds.hcl"), text), nil, nil)
	if diags.HasErrors() {
		b.t.Fatal(diags)
	}
	return lab
}

func (b *bench) image(name string) string { return filepath.Join(b.dir, "img", name) }

// begun is a bench whose run has begun; kept is left out on demand.
func begun(t *testing.T, keep bool) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	for _, n := range []string{"vmlinuz", "base.cpio", "mods.cpio", "bzImage"} {
		file(t, b.image(n), "bytes of "+n)
	}
	lab := b.lab()
	runs := filepath.Join(b.dir, "runs")
	b.store = must(Open(runs))
	b.plan = must(plan.Expand(lab, lab.Sweeps[0], 1, plan.Filter{}, plan.History{}))
	meta := results.RunMeta{Images: map[string]string{}}
	if !keep {
		for _, i := range current(lab, pairs(lab, b.plan)) {
			meta.Images[i.Path] = must(Hash(t.Context(), i.Path))
		}
		b.run = must(results.Create(runs, "s", meta, time.Now()))
		return b
	}
	k := must(b.store.Keep(t.Context(), lab, b.plan))
	meta.Images = k.Hashes()
	b.run = must(results.Create(runs, "s", meta, time.Now()))
	if err := k.Write(b.run); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) boots(lab *config.Lab, kernel string) (bytes []string) {
	b.t.Helper()
	k, _ := lab.Kernel(kernel).For(lab.Target("a"))
	for _, p := range parts(k.Image) {
		if !strings.HasPrefix(p.Path, b.store.dir) {
			b.t.Errorf("%s boots %s", kernel, p.Path)
		}
		bytes = append(bytes, filepath.Base(p.Path)+"="+string(must(os.ReadFile(p.Path))))
	}
	return bytes
}

func TestARunBootsItsOwnBytes(t *testing.T) {
	b := begun(t, true)
	for _, n := range []string{"vmlinuz", "base.cpio", "mods.cpio"} {
		file(t, b.image(n), "rebuilt")
	}
	if err := os.Remove(b.image("bzImage")); err != nil {
		t.Fatal(err)
	}
	lab := b.lab()
	diffs := must(Differences(t.Context(), lab, b.plan, b.run))
	if len(diffs) != 4 || !strings.Contains(strings.Join(diffs, "\n"), "bzImage is gone") {
		t.Errorf("differences: %q", diffs)
	}
	if err := b.store.Use(t.Context(), lab, b.plan, b.run); err != nil {
		t.Fatal(err)
	}
	if got := b.boots(lab, "old"); !slices.Equal(got, []string{"vmlinuz=bytes of vmlinuz", "base.cpio=bytes of base.cpio", "mods.cpio=bytes of mods.cpio"}) {
		t.Errorf("old boots %q", got)
	}
	if got := b.boots(lab, "new"); !slices.Equal(got, []string{"bzImage=bytes of bzImage"}) {
		t.Errorf("new boots %q", got)
	}
	if k, _ := lab.Kernel("old").For(lab.Target("a")); k.Image.Cmdline != "quiet" {
		t.Errorf("its command line is %q", k.Image.Cmdline)
	}
}

func TestBytesThatAreLost(t *testing.T) {
	b := begun(t, true)
	lost := b.store.Path(b.run.Meta.Images[b.image("vmlinuz")], "vmlinuz")
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Use(t.Context(), b.lab(), b.plan, b.run); err != nil { // the file on disk is the same
		t.Fatal(err)
	}
	if !exists(lost) {
		t.Error("the entry did not come back")
	}
	if err := errors.Join(os.Chmod(lost, 0o644), os.WriteFile(lost, []byte("bytes of vmlinuX"), 0o644)); err != nil {
		t.Fatal(err)
	}
	file(t, b.image("vmlinuz"), "rebuilt")
	err := b.store.Use(t.Context(), b.lab(), b.plan, b.run)
	var e *LostError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), "the file has changed") || !strings.Contains(err.Error(), "kernel old on a") {
		t.Errorf("%v", err)
	}
}

// Everything that a rerun would do otherwise is named, and nothing else.
func TestDifferencesOfTheConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		edits []string
		want  []string
	}{
		"nothing":        {nil, nil},
		"layout":         {[]string{"\ntarget", "\n\n# the one\ntarget"}, nil},
		"a setting":      {[]string{"256", "512"}, []string{"target a: the configuration has changed boot.memory"}},
		"two settings":   {[]string{"256", "512", `"root"`, `"me"`}, []string{"target a: the configuration has changed boot.memory, ssh.user"}},
		"an addition":    {[]string{`boot "qemu" {`, "settle = \"3s\"\nboot \"qemu\" {"}, []string{"target a: the configuration has changed settle"}},
		"a variable":     {[]string{"default = 1", "default = 2"}, []string{"workload exec.up (default): the configuration has changed command"}},
		"a command line": {[]string{`"quiet"`, `"debug"`}, []string{"kernel old: the configuration has changed image amd64.cmdline"}},
		"a scheduler":    {[]string{`"cfs"`, `"eevdf"`}, []string{"kernel old: the configuration has changed scheduler"}},
		"another image":  {[]string{"img/bzImage", "img/vmlinuz"}, []string{"kernel new on a: the configuration names other image files"}},
		"an unused one":  {[]string{"img/Image", "img/other"}, nil},
		"a longer sweep": {[]string{"boots    = 2", "boots    = 9"}, nil},
		"no image":       {[]string{`image "amd64" { kernel = "img/bzImage" }`, ""}, []string{"kernel new on a: the configuration names other image files (none)"}},
	} {
		b := begun(t, true)
		got := must(Differences(t.Context(), b.lab(tt.edits...), b.plan, b.run))
		ok := len(got) == len(tt.want)
		for i := range min(len(got), len(tt.want)) {
			ok = ok && strings.HasPrefix(got[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The record must not give secrets away, whatever it is compared with.
func TestSettingsKeepNoValues(t *testing.T) {
	b := begun(t, true)
	raw := string(must(os.ReadFile(filepath.Join(b.run.Dir(), keptFile))))
	for _, value := range []string{"root\"", "quiet", "sleep"} {
		if strings.Contains(raw, value) {
			t.Errorf("%s holds %q", keptFile, value)
		}
	}
}

func TestARunOfBefore(t *testing.T) {
	b := begun(t, false)
	file(t, b.image("vmlinuz"), "rebuilt")
	lab := b.lab()
	diffs := strings.Join(must(Differences(t.Context(), lab, b.plan, b.run)), "\n")
	if !strings.Contains(diffs, "kept no images") || !strings.Contains(diffs, "vmlinuz has changed since the run began, and its old bytes were not kept") {
		t.Errorf("differences: %s", diffs)
	}
	if err := b.store.Use(t.Context(), lab, b.plan, b.run); err != nil {
		t.Fatal(err)
	}
	if got := b.boots(lab, "old"); got[0] != "vmlinuz=rebuilt" {
		t.Errorf("boots %q", got)
	}
	file(t, b.image("vmlinuz"), "rebuilt again")
	lab = b.lab()
	diffs = strings.Join(must(Differences(t.Context(), lab, b.plan, b.run)), "\n")
	if !strings.Contains(diffs, "those of its first rerun are booted") {
		t.Errorf("differences at the second rerun: %s", diffs)
	}
	if err := b.store.Use(t.Context(), lab, b.plan, b.run); err != nil {
		t.Fatal(err)
	}
	if got := b.boots(lab, "old"); got[0] != "vmlinuz=rebuilt" {
		t.Errorf("the second rerun boots %q", got)
	}
}

func TestADamagedRecord(t *testing.T) {
	b := begun(t, true)
	for _, text := range []string{"", "{", `{"images":[{"kernel":"old","target":"a","part":"kernel","path":"/x","sha256":"../../../etc"}]}`, `{"images":[{}]}`} {
		file(t, filepath.Join(b.run.Dir(), keptFile), text)
		if _, err := Differences(t.Context(), b.lab(), b.plan, b.run); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%q: %v", text, err)
		}
		if err := b.store.Use(t.Context(), b.lab(), b.plan, b.run); err == nil {
			t.Errorf("%q: used", text)
		}
	}
}

func TestACommaInTheFolder(t *testing.T) {
	b := begun(t, true)
	b.store.dir = strings.Replace(b.store.dir, "runs", "a,b", 1)
	if err := b.store.Use(t.Context(), b.lab(), b.plan, b.run); err == nil || !strings.Contains(err.Error(), "comma") {
		t.Errorf("%v", err)
	}
}

func TestOverwrittenDuringARun(t *testing.T) {
	b := begun(t, true)
	file(t, b.image("base.cpio"), "while the run was made")
	first := NewWatch(t.Context(), b.run.Dir(), true)
	later := NewWatch(t.Context(), b.run.Dir(), false)
	file(t, b.image("vmlinuz"), "in the middle")
	text := strings.Join(first.Overwritten(t.Context()), "\n")
	for _, want := range []string{"base.cpio was overwritten during the run", "vmlinuz was overwritten during the run; the run booted the bytes it began with"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if text := strings.Join(later.Overwritten(t.Context()), "\n"); strings.Contains(text, "base.cpio") || !strings.Contains(text, "vmlinuz") {
		t.Errorf("a later session: %s", text)
	}
	if got := NewWatch(t.Context(), t.TempDir(), true).Overwritten(t.Context()); len(got) > 0 {
		t.Errorf("of nothing: %q", got)
	}
}

// The same configuration is the same, whatever drivers it uses.
func TestSettingsOfTheProjectsOwnLab(t *testing.T) {
	load := func() *config.Lab {
		env := func(string) (string, bool) { return "", false }
		lab, diags := config.Load("../../testbeds.hcl", nil, env)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return lab
	}
	one, two := load(), load()
	for i, s := range one.Sweeps {
		p := must(plan.Expand(one, s, 1, plan.Filter{}, plan.History{}))
		then, _ := settings(one, p)
		now, _ := settings(two, must(plan.Expand(two, two.Sweeps[i], 1, plan.Filter{}, plan.History{})))
		if len(then) < 10 {
			t.Errorf("%s: only %v", s.Name, then)
		}
		if diffs := compare(then, now); len(diffs) > 0 {
			t.Errorf("%s: %q", s.Name, diffs)
		}
	}
}
