// Package config reads testbeds.hcl into a Lab, with diagnostics that carry
// file, line and column. It is the only package that knows HCL, and it does
// nothing but read files: no driver touches hardware while it is decoded.
package config

import (
	"fmt"
	"time"

	"kernsweep/orchestrator/notify"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// Pos is a place in a configuration file.
type Pos struct {
	File string `json:"file"`
	Line int    `json:"line"` // from 1; 0: the file as a whole, or no file (--var)
	Col  int    `json:"col"`
}

// String is "file:line:col", or the file alone.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Lab is everything one testbeds file (or folder of files) describes, in the
// order of the files.
type Lab struct {
	Dir       string // relative paths in the files start here
	Targets   []*Target
	Kernels   []*Kernel
	Workloads []*Workload
	Sweeps    []*Sweep
	// Sources are the files as read, by name, for the copy in the run directory.
	Sources map[string][]byte
}

// Target is a target block, decoded. The drivers inside are ready to use.
type Target struct {
	targets.Target
	Class                            string
	Note                             string   // free text
	Uses                             []string // names of shared things, locked while a trial uses them
	Labels                           []string
	KnownGood                        string        // name of the kernel that recovery and the end of a lane return to; "" = none
	Agent                            string        // "auto", "go" or "shell"
	Scale                            float64       // multiplies fixed work; default 1
	Settle                           time.Duration // wait after a verified boot before the first trial
	Quarantine                       int           // infrastructure failures in a row before the lane is given up; default 3
	Failures                         Failures
	BootKind, PowerKind, ConsoleKind string // labels of the driver blocks, "" = none
	Pos                              Pos
}

// Kernel is a kernel block.
type Kernel struct {
	Name      string
	Note      string // free text
	Scheduler string
	Release   string
	Cmdline   string
	Images    []Image
	Pos       Pos
}

// Image is an image block: its label is an architecture (GOARCH) or the name of
// a target, which wins.
type Image struct {
	For string
	targets.Image
	Pos Pos
}

// For resolves the kernel for a target; ok is false when it has no image for
// it. Drivers that need no image take the kernel all the same.
func (k *Kernel) For(t *Target) (r targets.Kernel, ok bool) {
	r = targets.Kernel{Name: k.Name, Scheduler: k.Scheduler, Release: k.Release, Cmdline: k.Cmdline}
	i := k.ImageFor(t)
	if i == nil {
		return r, false
	}
	r.Image = i.Image
	return r, true
}

// ImageFor is the kernel's image block for a target, nil when it has none.
func (k *Kernel) ImageFor(t *Target) *Image {
	for _, want := range []string{t.Name, t.Arch} {
		for i := range k.Images {
			if k.Images[i].For == want {
				return &k.Images[i]
			}
		}
	}
	return nil
}

// Workload is a workload block. One without scenarios has one named "default".
type Workload struct {
	Kind, Name string
	Note       string // free text
	Scenarios  []Scenario
	Pos        Pos
}

// ID is the name cells carry: "iperf.to_target".
func (w *Workload) ID() string { return w.Kind + "." + w.Name }

// Scenario is the workload's block with the scenario's attributes over it.
type Scenario struct {
	Name   string
	Common workloads.Common
	Run    workloads.Workload
	Pos    Pos
}

// Sweep is a sweep block.
type Sweep struct {
	Name         string
	Note         string // free text
	Kernels      []string
	Baseline     string
	Boots        int           // blocks; default 5. With Auto: at most so many
	Auto         bool          // boots = "auto": from MinBoots on, until HalfWidth is reached
	HalfWidth    float64       // of an interval that is narrow enough, as a share; 0: not said
	Effect       float64       // smallest change that matters, as a share; 0: not said
	Order        string        // Interleaved or Blocked
	Primary      []string      // declared comparisons, as results.Design.Primary has them
	Repeat       int           // trials of each cell inside one boot; default 3
	Warmup       int           // trials of each cell dropped at the start of a boot, kept on file; default 1
	Seed         int64         // 0: drawn when the run starts, and recorded
	BootFailures int           // failures of one kernel on one target before its other blocks are skipped; default 2
	Rehearsed    time.Duration // every target's rehearsal may be at most this old; 0: none is demanded
	Matrices     []Matrix
	Notify       []notify.Block // who is told, and of what
	Pos          Pos
}

// Matrix is a set of cells: the product of its lists.
type Matrix struct {
	Targets   []string
	Kernels   []string // the sweep's, unless the matrix names its own
	Workloads []string // IDs
	Baseline  string   // the sweep's, unless the matrix names its own
	Pos       Pos
}

// Target finds a target by name, nil if there is none.
func (l *Lab) Target(name string) *Target {
	for _, t := range l.Targets {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Kernel finds a kernel by name, nil if there is none.
func (l *Lab) Kernel(name string) *Kernel {
	for _, k := range l.Kernels {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Workload finds a workload by ID, nil if there is none.
func (l *Lab) Workload(id string) *Workload {
	for _, w := range l.Workloads {
		if w.ID() == id {
			return w
		}
	}
	return nil
}

// Sweep finds a sweep by name, nil if there is none.
func (l *Lab) Sweep(name string) *Sweep {
	for _, s := range l.Sweeps {
		if s.Name == name {
			return s
		}
	}
	return nil
}
