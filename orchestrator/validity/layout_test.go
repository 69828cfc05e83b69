package validity

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/targets"
	"kernsweep/workloads"
)

// build is a kernel of a layout test: its scheduler, its image and its figure.
type build struct {
	kernel, scheduler, image string
	rate                     float64
}

func layoutRig(t *testing.T, builds ...build) *rig {
	r := newRig(t, false)
	ms := metrics(workloads.HigherIsBetter, "throughput")
	var kernels []string
	var kept []string
	for _, b := range builds {
		kernels = append(kernels, b.kernel)
		kept = append(kept, fmt.Sprintf(`{"kernel":%q,"target":"ap","part":"kernel","sha256":%q},{"kernel":%q,"target":"ap","part":"initrd","sha256":"r"}`, b.kernel, b.image, b.kernel))
	}
	r.cell("ap", "iperf.lan", "default", ms, kernels...)
	for _, b := range builds {
		n := r.boot("ap", b.kernel, func(rec *targets.BootRecord) { rec.Scheduler.Name = b.scheduler })
		r.file("ap", n, "probe/config", debian61)
		if b.rate != 0 {
			r.trial(cellOf("ap", b.kernel, "iperf.lan", "default"), n, 1, values(ms, b.rate), nil)
		}
	}
	text := `{"images":[` + strings.Join(kept, ",") + `]}`
	if err := os.WriteFile(filepath.Join(r.run.Dir(), "kept.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestImageLayout(t *testing.T) {
	for _, c := range []struct {
		name   string
		builds []build
		want   int
		text   string
	}{
		{"1.5 % between two builds", []build{{"cfs", "cfs", "a", 100}, {"bfs", "bfs", "b", 101.5}}, 1, "one build of each scheduler"},
		{"39 %, as on the router of 2009", []build{{"cfs", "cfs", "a", 22.9}, {"bfs", "bfs", "b", 31.9}}, 0, ""},
		{"no difference at all", []build{{"cfs", "cfs", "a", 100}, {"bfs", "bfs", "b", 100}}, 0, ""},
		{"one image, booted in two ways", []build{{"cfs", "cfs", "a", 100}, {"coarse", "cfs", "a", 101}}, 0, ""},
		{"two builds of each, that agree", []build{{"cfs", "cfs", "a", 100}, {"bfs", "bfs", "b", 101.5}, {"cfs2", "cfs", "c", 100.2}, {"bfs2", "bfs", "d", 101.4}}, 1, "both builds have the same scheduler"}, // cfs2 against cfs
		{"two builds of each, that do not", []build{{"cfs", "cfs", "a", 100}, {"bfs", "bfs", "b", 101.5}, {"cfs2", "cfs", "c", 101.8}, {"bfs2", "bfs", "d", 101.4}}, 3, "do not agree"},
		{"two names of one build are one", []build{{"cfs", "cfs", "a", 100}, {"bfs", "bfs", "b", 101.5}, {"cfs2", "cfs", "a", 100.2}, {"bfs2", "bfs", "b", 101.4}}, 2, "one build of each"},
		{"nothing measured", []build{{"cfs", "cfs", "a", 0}, {"bfs", "bfs", "b", 0}}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := layoutRig(t, c.builds...).found("image layout")
			if len(got) != c.want {
				t.Fatalf("%d findings: %+v", len(got), got)
			}
			if c.want > 0 && (!strings.Contains(got[0].Text, c.text) || got[0].Hard || got[0].Against != "cfs" || got[0].Metric != "throughput") {
				t.Errorf("%+v", got[0])
			}
		})
	}
}

func TestLayoutOfOtherConfigurations(t *testing.T) {
	r := layoutRig(t, build{"cfs", "cfs", "a", 100}, build{"bfs", "bfs", "b", 101.5}, build{"cfs2", "cfs", "c", 100.2}, build{"bfs2", "bfs", "d", 101.4})
	r.file("ap", 4, "probe/config", debian61+"CONFIG_KASAN=y\n")
	for _, f := range r.found("image layout") {
		if f.Kernel == "bfs" && strings.Contains(f.Text, "one build of each scheduler") {
			return
		}
	}
	t.Error("a build with another configuration passed for a second build")
}

// Without hashes builds are told by what the kernel says of itself; an emulator
// that counts instructions has no caches.
func TestLayoutOnOtherMachines(t *testing.T) {
	r := layoutRig(t, build{"cfs", "cfs", "a", 100}, build{"bfs", "bfs", "b", 101.5})
	if err := os.Remove(filepath.Join(r.run.Dir(), "kept.json")); err != nil {
		t.Fatal(err)
	}
	one(t, r.found("image layout"))
	for i := range r.recs {
		if b := r.recs[i].Boot; b != nil {
			b.Record.Release, b.Record.Version = "6.1.0", "#1 SMP Debian 6.1.176-1"
		}
	}
	none(t, r.found("image layout"))
	r = layoutRig(t, build{"cfs", "cfs", "a", 100}, build{"bfs", "bfs", "b", 101.5})
	r.plan.Targets[0].Emulated, r.plan.Targets[0].Clock = true, "guest"
	none(t, r.found("image layout"))
}

func TestDamagedListOfImages(t *testing.T) {
	r := layoutRig(t, build{"cfs", "cfs", "a", 100}, build{"bfs", "bfs", "b", 101.5})
	if err := os.WriteFile(filepath.Join(r.run.Dir(), "kept.json"), []byte(`{"images":[`), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := one(t, r.found("evidence unreadable")); !strings.Contains(f.Text, "could not be checked: kept.json: ") {
		t.Errorf("%+v", f)
	}
}

// What the sweep declares as primary is looked at, not what is primary without a word.
func TestLayoutOfDeclaredMetrics(t *testing.T) {
	r := newRig(t, false)
	ms := metrics(workloads.LowerIsBetter, "elapsed", "system")
	r.cell("ap", "crunch.ltm", "j1", ms, "cfs", "bfs")
	for i, k := range []string{"cfs", "bfs"} {
		n := r.boot("ap", k, func(rec *targets.BootRecord) { rec.Scheduler.Name, rec.Version = k, k })
		r.trial(cellOf("ap", k, "crunch.ltm", "j1"), n, 1, values(ms, 100+float64(i), 10+0.1*float64(i)), nil)
	}
	r.plan.Design.Primary = []string{"crunch.ltm:system"}
	if f := one(t, r.found("image layout")); f.Metric != "system" {
		t.Errorf("%+v", f)
	}
	r.plan.Design.Primary = []string{"iperf.lan"}
	none(t, r.found("image layout"))
}
