package targetstest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Kernels that every machine of a SimLab boots: its known-good one, and another
// with a scheduler loaded by sched_ext.
const (
	SimGood  = "good"
	SimOther = "other"
)

// SimLab is a lab of fake machines behind real SSH on 127.0.0.1, for tests that
// kill the controller: it lives in the test's own process. A machine is a mount
// and a process namespace with a boot_id, a command line, a release, a disk and
// memory of its own; a boot takes milliseconds and ends every process that ran
// there. What is executed are real processes.
type SimLab struct {
	Machines []*SimMachine

	dir string
}

// SimExec is one execution of the workload on a machine.
type SimExec struct {
	Machine, BootID string
	Scenario        string
	Token           string // it printed "token: TOKEN" last
	Ended           bool   // it came to its end
}

// NewSimLab starts n machines named sim1, sim2, …, all in their known-good kernel.
func NewSimLab(t testing.TB, n int) *SimLab {
	t.Helper()
	dir := t.TempDir()
	l := &SimLab{dir: dir}
	for _, k := range []string{SimGood, SimOther} {
		write(t, l.Image(k), "image of "+k+"\n")
	}
	for i := range n {
		l.Machines = append(l.Machines, newSimMachine(t, dir, fmt.Sprintf("sim%d", i+1)))
	}
	return l
}

// Image is the file of a kernel's image: a line of text.
func (l *SimLab) Image(kernel string) string { return filepath.Join(l.dir, kernel+".img") }

// Booted are the images that were started since the last Forget: "KERNEL TEXT".
func (l *SimLab) Booted() ([]string, error) {
	var all []string
	for _, m := range l.Machines {
		b, err := os.ReadFile(m.file("booted"))
		if err != nil {
			return nil, err
		}
		all = append(all, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
	}
	return all, nil
}

// HCL are the target and kernel blocks of the lab, and a workload exec.work that
// says what runs where, with the scenarios short and long.
func (l *SimLab) HCL() string {
	var b strings.Builder
	for _, m := range l.Machines {
		b.WriteString(m.hcl())
	}
	fmt.Fprintf(&b, `
kernel %[1]q {
  release = %[2]q
  image %[7]q { kernel = %[3]q }
}
kernel %[4]q {
  release   = %[5]q
  scheduler = "sched_ext"
  image %[7]q { kernel = %[6]q }
}
workload "exec" "work" {
  metrics  = { time = "regexp:^time: (\\S+)" }
  better   = { time = "lower" }
  units    = { time = "s" }
  duration = "1s"
  sample   = "1s"
  scenario "short" { command = ["payload", "short", "0.02"] }
  scenario "long"  { command = ["payload", "long", "0.15"] }
}
`, SimGood, simRelease(SimGood), l.Image(SimGood), SimOther, simRelease(SimOther), l.Image(SimOther), runtime.GOARCH)
	return b.String()
}

func simRelease(kernel string) string {
	if kernel == SimGood {
		return "6.1.0-sim"
	}
	return "6.12.0-sim"
}

// Ran are the executions of the workload since the last Forget, by machine and
// in the order they began.
func (l *SimLab) Ran() ([]SimExec, error) {
	var all []SimExec
	for _, m := range l.Machines {
		b, err := os.ReadFile(m.file("ran"))
		if err != nil {
			return nil, err
		}
		at := map[string]int{}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) != 4 {
				return nil, fmt.Errorf("%s: %q", m.Name, line)
			}
			if f[1] == "end" {
				all[at[f[0]]].Ended = true
				continue
			}
			at[f[0]] = len(all)
			all = append(all, SimExec{Machine: m.Name, BootID: f[2], Scenario: f[3], Token: f[0]})
		}
	}
	return all, nil
}

// Forget empties what Ran counts, takes every fault back, and boots what is not
// in its known-good kernel.
func (l *SimLab) Forget() error {
	for _, m := range l.Machines {
		m.mu.Lock()
		m.panics, m.boots, m.cutIn, m.gone, m.goneFrom = nil, map[string]int{}, 0, false, ""
		kernel := m.kernel
		m.mu.Unlock()
		if kernel != SimGood {
			if err := m.start(SimGood, ""); err != nil {
				return err
			}
		}
		for _, f := range []string{"ran", "booted"} {
			if err := os.WriteFile(m.file(f), nil, 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// Left says what a controller left behind: processes and files on the machines,
// and machines that are not in their known-good kernel.
func (l *SimLab) Left() []string {
	var left []string
	for _, m := range l.Machines {
		if k := m.Kernel(); k != SimGood {
			left = append(left, fmt.Sprintf("%s: left in kernel %q", m.Name, k))
		}
		for _, p := range m.Processes() {
			left = append(left, m.Name+": process "+p)
		}
		for _, f := range m.Files() {
			left = append(left, m.Name+": file "+f)
		}
	}
	return left
}

// Files are those that a controller put on the machine, on disk and in memory.
func (m *SimMachine) Files() []string {
	var found []string
	root := fmt.Sprintf("/proc/%d/root", m.pid())
	for _, dir := range []string{root + "/dev/shm", root + "/run", m.file("disk"), m.file("home"), m.file("")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it is down: its memory is gone
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), "kernsweep") {
				found = append(found, filepath.Join(strings.TrimPrefix(dir, root), e.Name()))
			}
		}
	}
	return found
}
