package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets/targetstest"
)

const completedLab = `
class "router" {}
target "desk" {
  host   = "192.0.2.1"
  class  = class.router
  labels = ["rack2"]
}
kernel "cfs" {}
workload "crunch" "ltm" { parallel = 1 }
sweep "night" {
  kernels = [kernel.cfs]
  matrix {
    targets   = [target.desk]
    workloads = [workload.crunch.ltm]
  }
}
`

// The scripts in the shells that they are for: a person types, and presses the
// tabulator.
func TestCompletionInShells(t *testing.T) {
	program, dir := build(t), t.TempDir()
	for name, text := range map[string]string{"testbeds.hcl": completedLab, "broken.hcl": "target {{{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run, err := results.Create(filepath.Join(dir, "runs"), "night", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, start := range map[string]struct{ argv, first []string }{
		"bash":       {[]string{"--norc", "--noprofile"}, []string{"PS1='ready% '", "source /usr/share/bash-completion/bash_completion"}},
		"bash alone": {[]string{"--norc", "--noprofile"}, []string{"PS1='ready% '"}}, // as for root on Debian
		"zsh":        {[]string{"-f"}, []string{"PS1='ready%% '", "autoload -U compinit; compinit -u -D"}},
		"fish":       {[]string{"--no-config"}, []string{"function fish_prompt; echo -n 'ready% '; end"}},
	} {
		t.Run(name, func(t *testing.T) {
			shell, _, _ := strings.Cut(name, " ")
			script := filepath.Join(dir, "kernsweep."+shell)
			out, err := exec.Command(program, "completion", shell).Output()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(script, out, 0o644); err != nil {
				t.Fatal(err)
			}
			c := shellPane(t, dir, filepath.Dir(program), append([]string{targetstest.Tool(t, shell)}, start.argv...))
			for _, l := range append(start.first, "source "+script, "clear") {
				c.line(l)
			}
			c.await("ready%")
			for typed, want := range map[string]string{
				"kernsweep run ni\t":                        "kernsweep run night",
				"kernsweep plan night --kernel c\t":         "--kernel cfs",
				"kernsweep report " + run.Name()[:9] + "\t": "kernsweep report " + run.Name(),
				"kernsweep report latest --format js\t":     "--format json",
				"kernsweep shell de\t":                      "kernsweep shell desk",
				"kernsweep rerun latest --workload cr\t":    "--workload crunch.ltm",
				"kernsweep exec class:r\t":                  "kernsweep exec class:router",
				"kernsweep exec label:\t":                   "kernsweep exec label:rack2",
				"kernsweep import kernb\t":                  "kernsweep import kernbench",
				"kernsweep help target pro\t":               "kernsweep help target probe",
			} {
				c.keys("C-u", "C-l")
				c.do("send-keys", "-l", typed)
				c.await(want)
			}
			// A configuration that is broken completes nothing, and nothing is said.
			c.keys("C-u", "C-l")
			c.do("send-keys", "-l", "kernsweep -f broken.hcl run \t\t.end")
			if s := c.await("broken.hcl run .end"); strings.Contains(s, "rror") || strings.Contains(s, "testbeds") {
				t.Errorf("it says:\n%s", s)
			}
		})
	}
}

// shellPane starts a shell in a terminal, in dir, that finds kernsweep in bin.
func shellPane(t *testing.T, dir, bin string, argv []string) *pane {
	t.Helper()
	sockets, err := os.MkdirTemp("", "tmux") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	c := &pane{t: t, tmux: targetstest.Tool(t, "tmux"), sock: filepath.Join(sockets, "s")}
	t.Cleanup(func() {
		_ = exec.Command(c.tmux, "-S", c.sock, "kill-server").Run() // it may be gone
		_ = os.RemoveAll(sockets)
	})
	c.do(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", dir, "-e", "HOME=" + dir, "-e", "HISTFILE=",
		"-e", "PATH=" + bin + ":" + os.Getenv("PATH")}, argv...)...)
	return c
}
