package config

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"kernsweep/targets"
	"kernsweep/workloads"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// strip is a power driver with numbered outlets.
type strip struct {
	PDU     string        `hcl:"pdu"`
	Outlet  string        `hcl:"outlet"`
	User    string        `hcl:"user,optional"`
	Pass    string        `hcl:"password,optional"`
	Timeout time.Duration `hcl:"timeout,optional"`
}

func (*strip) Set(context.Context, bool) error { return nil }

// whole fills the boot, power and console slots, and knows its network.
type whole struct {
	Memory int               `hcl:"memory,optional"`
	CPU    string            `hcl:"cpu,optional"`
	Args   []string          `hcl:"args,optional"`
	Disk   string            `hcl:"disk,optional,path"`
	Share  map[string]string `hcl:"share,optional"`
	Ports  []int             `hcl:"ports,optional"`
	Fast   bool              `hcl:"fast,optional"`
	Nic    nic               `hcl:"nic,block"`
}

type nic struct {
	Model string `hcl:"model"`
	MAC   string `hcl:"mac,optional"`
}

func (*whole) Boot(context.Context, *targets.Target, targets.Kernel) error { return nil }
func (*whole) Set(context.Context, bool) error                             { return nil }
func (*whole) Network() targets.Network                                    { return targets.Network{Address: "127.0.0.1", Clock: "guest"} }
func (*whole) Open(context.Context) (io.ReadWriteCloser, error)            { return nil, errors.New("none") }

type tcp struct {
	Address string `hcl:"address"`
}

func (*tcp) Open(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("none") }

// work is a workload of every attribute type.
type work struct {
	Tool     string        `hcl:"tool"`
	Server   string        `hcl:"server,optional"`
	Duration time.Duration `hcl:"duration,optional"`
	Parallel int           `hcl:"parallel,optional"`
	Share    float64       `hcl:"share,optional"`
}

func (w *work) Check() error {
	if w.Parallel > 100 {
		return errors.New("parallel must be at most 100")
	}
	return nil
}
func (*work) Needs() workloads.Needs                    { return workloads.Needs{} }
func (*work) Metrics() []workloads.Metric               { return nil }
func (*work) Estimate() time.Duration                   { return time.Second }
func (*work) Run(context.Context, *workloads.Env) error { return nil }
func (*work) Parse(fs.FS) (workloads.Parsed, error)     { return workloads.Parsed{}, nil }

type none struct{}

func (*none) Boot(context.Context, *targets.Target, targets.Kernel) error { return nil }

// typist types on the console.
type typist struct {
	Prompt string `hcl:"prompt,optional"`
}

func (*typist) Boot(context.Context, *targets.Target, targets.Kernel) error { return nil }
func (*typist) Traits() targets.BootTraits                                  { return targets.BootTraits{Console: true} }

func testDrivers() drivers {
	return drivers{
		boot: map[string]func() targets.Booter{
			"none":   func() targets.Booter { return new(none) },
			"typist": func() targets.Booter { return new(typist) },
			"whole":  func() targets.Booter { return new(whole) },
		},
		power:     map[string]func() targets.Power{"strip": func() targets.Power { return new(strip) }},
		console:   map[string]func() targets.Console{"tcp": func() targets.Console { return new(tcp) }},
		workloads: map[string]func() workloads.Workload{"work": func() workloads.Workload { return new(work) }},
	}
}

func testEnv(name string) (string, bool) {
	v, ok := map[string]string{"HOME": "/home/lab", "PDU_PASSWORD": "s3cret", "KERNSWEEP_VAR_from_env": "7"}[name]
	return v, ok
}

// loadTexts loads files by name from a new directory. Positions then carry the
// files' names alone.
func loadTexts(t testing.TB, files map[string]string, vars map[string]string) (*Lab, Diagnostics) {
	t.Helper()
	return loadWith(t, testDrivers(), files, vars)
}

func loadWith(t testing.TB, d drivers, files map[string]string, vars map[string]string) (*Lab, Diagnostics) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lab, ds := load(dir, vars, testEnv, d)
	for i := range ds {
		ds[i].Pos.File = strings.TrimPrefix(ds[i].Pos.File, dir+"/")
		ds[i].Summary = strings.ReplaceAll(ds[i].Summary, dir, "DIR")
		ds[i].Detail = strings.ReplaceAll(ds[i].Detail, dir+"/", "")
	}
	return lab, ds
}

// TestGolden loads every archive of testdata and compares the diagnostics with
// its last file, "want". A file "vars" holds name=value lines.
func TestGolden(t *testing.T) { golden(t, "testdata/*.txtar", testDrivers()) }

// TestDriversGolden does the same with the product's own drivers.
func TestDriversGolden(t *testing.T) { golden(t, "testdata/drivers/*.txtar", allDrivers()) }

func golden(t *testing.T, glob string, d drivers) {
	paths, err := filepath.Glob(glob)
	if err != nil || len(paths) == 0 {
		t.Fatal("no archives in testdata", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files, vars, want := map[string]string{}, map[string]string{}, -1
			for i, f := range ar.Files {
				switch f.Name {
				case "want":
					want = i
				case "vars":
					for _, line := range strings.Fields(string(f.Data)) {
						k, v, _ := strings.Cut(line, "=")
						vars[k] = v
					}
				default:
					files[f.Name] = unescape(string(f.Data))
				}
			}
			if want < 0 {
				ar.Files = append(ar.Files, txtar.File{Name: "want"})
				want = len(ar.Files) - 1
			}
			_, ds := loadWith(t, d, files, vars)
			got := ds.String()
			if *update {
				ar.Files[want].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(ar.Files[want].Data), got); d != "" {
				t.Errorf("diagnostics differ (-want +got):\n%s", d)
			}
			if bytes.ContainsFunc([]byte(got), func(r rune) bool { return badControl(r) }) {
				t.Error("control characters in the output")
			}
		})
	}
}

// unescape makes bytes that no text file should hold: <NUL> and <ESC>.
func unescape(s string) string {
	return strings.NewReplacer("<NUL>", "\x00", "<ESC>", "\x1b", "<CR>", "\r").Replace(s)
}
