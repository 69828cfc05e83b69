package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kernsweep/targets"
	"kernsweep/workloads"
)

// fullLab uses every construct of the language once.
const fullLab = `
variable "from_env" { default = 1 }
variable "relay" {}
locals {
  image_dir = "images"
  all       = [kernel.cfs, kernel.bfs]
}
class "linux" {
  ssh {
    user     = "root"
    key      = "~/.ssh/lab"
    sessions = 2
  }
  agent   = "shell"
  console "tcp" { address = "labpi:2001" }
  timeouts { boot = "10m" }
}
class "router" {
  class = class.linux
  uses  = ["lan0", "lan1"]
  ssh { algorithms = "legacy" }
  boot "whole" {
    memory = 32
    args   = ["-a"]
    nic {
      model = "e1000"
      mac   = "02"
    }
  }
}
target "wl500" {
  class      = class.router
  arch       = "mipsle"
  host       = "192.168.1.1"
  uses       = ["lan2"]
  known_good = kernel.cfs
  scale      = 0.10
  path       = "/opt/bin:/opt/sbin"
  settle     = "5s"
  boot "whole" {
    disk = "disk.img"
    nic { mac = "03" }
  }
  timeouts { down = "3m" }
  power "strip" {
    pdu    = "pdu"
    outlet = var.relay
  }
}
target "other" {
  class = class.router
  boot "none" {}
  console "tcp" { address = "labpi:2002" }
  ssh {
    host = "192.168.1.2"
    port = 2200
    user = "admin"
  }
}
target "fresh" {
  boot "whole" {
    nic { model = "x" }
  }
}
kernel "cfs" {
  scheduler = "cfs"
  release   = "6.1.*"
  image "mipsle" {
    kernel = "${local.image_dir}/cfs.elf"
    initrd = "a.img, /b.img"
  }
  image "other" { cmdline = "quiet" }
}
kernel "bfs" { cmdline = "nosmp" }
workload "work" "w" {
  tool     = "iperf2"
  duration = "10s"
  share    = 0.25
  knobs    = { "/proc/sys/kernel/x" = "1" }
  scenario "one" { parallel = 1 }
  scenario "many" {
    parallel  = var.from_env
    knobs     = { "/proc/sys/kernel/y" = "2" }
    timeslice = "400ms"
    sample    = "0s"
    peer      = target.other
  }
}
workload "work" "plain" { tool = "x" }
sweep "night" {
  kernels   = local.all
  boots     = 7
  rehearsed = "720h"
  matrix {
    targets   = [target.wl500]
    workloads = [workload.work.w, workload.work.plain]
  }
  matrix {
    targets   = [for t in [target.other] : t]
    workloads = [workload.work.plain]
    kernels   = [kernel.bfs]
    baseline  = kernel.bfs
  }
}
`

func load1(t *testing.T) *Lab {
	t.Helper()
	lab, ds := loadTexts(t, map[string]string{"lab.hcl": fullLab, ".hidden.hcl": "(", "notes.txt": "("}, map[string]string{"relay": "4"})
	for _, d := range ds {
		if d.Severity != Warning || !strings.Contains(d.Summary, "image file") {
			t.Errorf("unexpected: %v", d)
		}
	}
	if len(ds) != 3 || lab == nil {
		t.Fatalf("want a lab and 3 warnings about images, got %v", ds)
	}
	return lab
}

func TestTargets(t *testing.T) {
	lab := load1(t)
	wl := lab.Target("wl500")
	in := func(name string) string { return filepath.Join(lab.Dir, name) }
	want := targets.SSH{Host: "192.168.1.1", User: "root", Key: "/home/lab/.ssh/lab", Algorithms: "legacy", NewHostKey: "reject", Keepalive: 15 * time.Second, Sessions: 2, Path: "/opt/bin:/opt/sbin"}
	if d := cmp.Diff(want, wl.SSH); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(targets.Timeouts{Down: 3 * time.Minute, Boot: 10 * time.Minute, Silence: time.Minute, Exec: 30 * time.Second}, wl.Timeout); d != "" {
		t.Error(d)
	}
	b := wl.Boot.(*whole)
	if b.Memory != 32 || b.Disk != in("disk.img") || b.Nic != (nic{"e1000", "03"}) || len(b.Args) != 1 {
		t.Errorf("merged boot block is %+v", *b)
	}
	if d := cmp.Diff([]string{"lan2"}, wl.Uses); d != "" {
		t.Error("lists are replaced:", d)
	}
	got := []any{wl.Arch, wl.Class, wl.KnownGood, wl.Scale, wl.Settle, wl.Quarantine, wl.Agent, wl.BootKind, wl.PowerKind, wl.ConsoleKind}
	if d := cmp.Diff([]any{"mipsle", "router", "cfs", 0.1, 5 * time.Second, 3, "shell", "whole", "strip", "tcp"}, got); d != "" {
		t.Error(d)
	}
	if p := wl.Power.(*strip); p.PDU != "pdu" || p.Outlet != "4" {
		t.Errorf("power is %+v", *p)
	}
	other := lab.Target("other")
	if other.BootKind != "none" || other.Power != nil || other.Console.(*tcp).Address != "labpi:2002" || other.SSH.Port != 2200 || other.SSH.User != "admin" {
		t.Errorf("other is %+v", other)
	}
	fresh := lab.Target("fresh")
	if fresh.PowerKind != "whole" || fresh.ConsoleKind != "whole" || fresh.Power == nil || fresh.Console == nil || fresh.Network.Clock != "guest" {
		t.Errorf("a driver of three slots leaves %+v", fresh)
	}
	if fresh.Agent != "auto" || fresh.Scale != 1 || fresh.Quarantine != 3 {
		t.Errorf("defaults are %+v", fresh)
	}
}

func TestKernelsWorkloadsSweeps(t *testing.T) {
	lab := load1(t)
	in := func(name string) string { return filepath.Join(lab.Dir, name) }
	k, ok := lab.Kernel("cfs").For(lab.Target("wl500"))
	if d := cmp.Diff(targets.Kernel{Name: "cfs", Scheduler: "cfs", Release: "6.1.*", Image: targets.Image{Kernel: in("images/cfs.elf"), Initrd: in("a.img") + ",/b.img"}}, k); d != "" || !ok {
		t.Error(ok, d)
	}
	if k, ok := lab.Kernel("cfs").For(lab.Target("other")); !ok || k.Image.Cmdline != "quiet" {
		t.Errorf("the image of a target is %+v", k)
	}
	if _, ok := lab.Kernel("bfs").For(lab.Target("wl500")); ok {
		t.Error("a kernel without images has one")
	}
	w := lab.Workload("work.w")
	if len(w.Scenarios) != 2 || lab.Workload("work.plain").Scenarios[0].Name != "default" {
		t.Fatalf("scenarios are %+v", w.Scenarios)
	}
	if d := cmp.Diff(&work{Tool: "iperf2", Duration: 10 * time.Second, Parallel: 7, Share: 0.25}, w.Scenarios[1].Run); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(workloads.Common{Timeslice: 400 * time.Millisecond, Knobs: map[string]string{"/proc/sys/kernel/y": "2"}, Peer: "other"}, w.Scenarios[1].Common); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(workloads.Common{Sample: time.Second, Knobs: map[string]string{"/proc/sys/kernel/x": "1"}, Peer: "controller"}, w.Scenarios[0].Common); d != "" {
		t.Error(d)
	}
	s := lab.Sweep("night")
	for i := range s.Matrices {
		s.Matrices[i].Pos = Pos{}
	}
	s.Pos = Pos{}
	want := &Sweep{Name: "night", Kernels: []string{"cfs", "bfs"}, Baseline: "cfs", Boots: 7, Order: Interleaved, Repeat: 3, Warmup: 1, BootFailures: 2, Rehearsed: 720 * time.Hour, Matrices: []Matrix{
		{Targets: []string{"wl500"}, Kernels: []string{"cfs", "bfs"}, Workloads: []string{"work.w", "work.plain"}, Baseline: "cfs"},
		{Targets: []string{"other"}, Kernels: []string{"bfs"}, Workloads: []string{"work.plain"}, Baseline: "bfs"},
	}}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	if string(lab.Sources["lab.hcl"]) != fullLab || len(lab.Sources) != 1 {
		t.Error("the source is not kept")
	}
}

// TestHeredoc pins the text that mixed indentation gives: one character goes
// from each line, tab or space.
func TestHeredoc(t *testing.T) {
	lab, _ := loadTexts(t, map[string]string{"lab.hcl": "target \"r1\" {\n  host = \"r1\"\n  note = <<-EOT\n\tif true; then\n      echo deep\n    fi\n    EOT\n}\n"}, nil)
	if got, want := lab.Targets[0].Note, "if true; then\n     echo deep\n   fi\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	if _, ds := load(dir, nil, nil, testDrivers()); !strings.Contains(ds.String(), "no *.hcl file") {
		t.Errorf("an empty directory: %v", ds)
	}
	if _, ds := load(filepath.Join(dir, "none"), nil, nil, testDrivers()); !strings.Contains(ds.String(), "no such file") {
		t.Errorf("a missing file: %v", ds)
	}
	file := filepath.Join(dir, "a.hcl")
	if err := os.WriteFile(file, []byte("target \"t\" { host = \"t\" }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.hcl", filepath.Join(dir, "b.hcl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "c.hcl"), 0o755); err != nil {
		t.Fatal(err)
	}
	lab, ds := load(dir, nil, nil, testDrivers())
	if lab == nil || len(lab.Targets) != 1 || len(ds) != 1 || ds[0].Severity != Warning {
		t.Errorf("a file under two names: %v", ds)
	}
	if lab, ds := load(file, nil, nil, testDrivers()); lab == nil || lab.Dir != dir || len(ds) != 0 {
		t.Errorf("one file: %v", ds)
	}
}

func TestDiagnosticText(t *testing.T) {
	f := newFindings()
	f.err(Pos{File: "a\x1b.hcl", Line: 1, Col: 2}, "x\u0085y\xff", "name %q and \x1b[2J %s", "\x1b", strings.Repeat("z", 5000))
	text := f.sorted().String()
	if strings.ContainsFunc(text, badControl) || len(text) > 3*maxText {
		t.Errorf("not fit for a terminal: %q", text)
	}
	b, err := json.Marshal(f.sorted()[0])
	if err != nil || !strings.HasPrefix(string(b), `{"severity":"error","pos":{"file":"a\u001b.hcl","line":1,"col":2},"summary":"name `) {
		t.Errorf("%s %v", b, err)
	}
}

func TestFormat(t *testing.T) {
	if got, want := string(Format([]byte("target \"t\" {\nhost=\"t\"\n  port   = 1 # x\n}"))), "target \"t\" {\n  host = \"t\"\n  port = 1 # x\n}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, s := range []string{"target {", bomb("paren", 100_000)} {
		if string(Format([]byte(s))) != s {
			t.Errorf("%.20q does not come back unchanged", s)
		}
	}
}

// TestProjectFile: the example in the project's root is valid, apart from images
// that only a lab has.
func TestProjectFile(t *testing.T) {
	lab, ds := Load("../../testbeds.hcl", nil, nil)
	if lab == nil {
		t.Fatal(ds)
	}
	for _, d := range ds {
		if !strings.HasPrefix(d.Summary, "image file") {
			t.Error(d)
		}
	}
	src := string(lab.Sources["testbeds.hcl"])
	if string(Format([]byte(src))) != src {
		t.Error("testbeds.hcl is not in canonical form: run kernsweep fmt")
	}
}
