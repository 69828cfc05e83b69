package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets/targetstest"
)

// guestSweep takes one virtual machine through two real kernels.
const guestSweep = `
locals { quiet = "loglevel=6 cryptomgr.notests mitigations=off no_timer_check tsc=reliable" }
target "vm" {
  arch  = "amd64"
  ready = "kernsweep-lab: ready"
  ssh {
    user   = "root"
    key    = "LAB/keys/id_ed25519"
    config = "none"
  }
  boot "qemu" {
    host_key = "LAB/keys/host_ed25519.pub"
    program  = "PROGRAM"
    accel    = "tcg"
  }
  timeouts {
    boot    = "3m"
    silence = "2m"
  }
}
kernel "cfs" {
  scheduler = "cfs"
  image "amd64" {
    kernel  = "LAB/img/vmlinuz-amd64-6.1"
    initrd  = "LAB/img/base-amd64.cpio,LAB/img/mods-amd64-6.1.cpio"
    cmdline = local.quiet
  }
}
kernel "eevdf" {
  scheduler = "eevdf"
  image "amd64" {
    kernel  = "LAB/img/vmlinuz-amd64-6.12"
    initrd  = "LAB/img/base-amd64.cpio,LAB/img/mods-amd64-6.12.cpio"
    cmdline = local.quiet
  }
}
workload "exec" "work" {
  script   = "cat /proc/sys/kernel/random/boot_id; sleep 1; echo time: 1; echo token: $(cat /proc/sys/kernel/random/uuid)"
  metrics  = { time = "regexp:^time: (\\S+)" }
  units    = { time = "s" }
  better   = { time = "lower" }
  duration = "2s"
}
sweep "night" {
  kernels  = [kernel.cfs, kernel.eevdf]
  baseline = kernel.cfs
  boots    = 1
  repeat   = 2
  warmup   = 0
  matrix {
    targets   = [target.vm]
    workloads = [workload.exec.work]
  }
}
`

const (
	guestKills     = 1
	guestKillsLong = 6
	guestRecords   = 24 // of an undisturbed run, about
)

// TestKilledGuests kills the controller of real guests. Every other guest
// outlives it, as one does whose death signal was cleared, and is ended by resume.
func TestKilledGuests(t *testing.T) {
	program := build(t)
	lab, err := filepath.Abs("../../lab")
	if err != nil {
		t.Fatal(err)
	}
	targetstest.Tool(t, "setpriv")
	survivor := filepath.Join(t.TempDir(), "qemu")
	if err := os.WriteFile(survivor, []byte("#!/bin/sh\nexec setpriv --pdeathsig clear qemu-system-x86_64 \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	kills := guestKills
	if os.Getenv("KERNSWEEP_LONG") != "" {
		kills = guestKillsLong
	}
	r := rand.New(rand.NewPCG(4, 4))
	for i := range kills {
		qemu := survivor
		if i%2 == 1 {
			qemu = "qemu-system-x86_64"
		}
		at := 2 + r.IntN(guestRecords)
		t.Run(fmt.Sprintf("%d at record %d", i+1, at), func(t *testing.T) {
			n := &night{program: program, file: filepath.Join(t.TempDir(), "testbeds.hcl")}
			text := strings.NewReplacer("LAB", lab, "PROGRAM", qemu).Replace(guestSweep)
			if err := os.WriteFile(n.file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			n.killedGuest(t, at)
		})
	}
}

func (n *night) killedGuest(t *testing.T, at int) {
	t.Helper()
	p := newPlace(t)
	traces, err := os.MkdirTemp("/tmp", "ks") // sockets' paths are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(traces) })
	n.env = append(n.env, "TMPDIR="+traces)
	c := n.start(t, p, "run", "night")
	if !c.killAt(p, nightLimit, at) {
		t.Logf("it was over before record %d", at)
	}
	begun := time.Now()
	c = n.start(t, p, "resume", "latest")
	if status := c.wait(t); status != 0 {
		t.Errorf("resume ends with status %d:\n%s", status, c.err.String())
	}
	t.Logf("resumed within %s", time.Since(begun).Round(time.Second))
	var found nightCounts
	n.countGuest(t, &found, p)
	n.countHeld(&found, p, p.run(t))
	for _, f := range untilNone(t.Context(), leftLimit, func() []string { return processesOf(p.leases) }) {
		found.fault(&found.orphans, "on the controller: process %s", f)
	}
	files, _ := filepath.Glob(traces + "/kernsweep-guests-*/*") // the pattern is right
	for _, f := range files {
		found.fault(&found.held, "trace %s", f)
	}
	found.check(t, fmt.Sprintf("killed at record %d, then\n%s", at, c.err.String()))
}

// countGuest holds every planned trial against its output, which names its boot.
func (n *night) countGuest(t *testing.T, c *nightCounts, p place) {
	t.Helper()
	run := p.run(t)
	state, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	var whole plan.Plan
	if _, err := run.ReadPlan(&whole); err != nil {
		t.Fatal(err)
	}
	tokens := map[string]bool{}
	for _, b := range whole.Lanes[0].Boots {
		for _, s := range b.Trials {
			tr := state.Model.Slot(s)
			if tr == nil || tr.Outcome() != results.OK {
				c.fault(&c.lost, "%s #%d has no result", s.Cell, s.Repeat)
				continue
			}
			if old := len(tr.Superseded()); old > 0 {
				c.fault(&c.duplicated, "%s #%d: %d valid attempts", s.Cell, s.Repeat, old+1)
			}
			v := tr.Valid()
			out := filepath.Join(run.TrialDir(v.Slot, v.Number), "stdout")
			text, _ := os.ReadFile(out) // "" is found below
			if token := tokenIn(out); token == "" || tokens[token] {
				c.fault(&c.duplicated, "%s #%d: token %q", s.Cell, s.Repeat, token)
			} else {
				tokens[token] = true
			}
			if boot := state.Model.Boot("vm", v.Slot.Boot); boot == nil || boot.Result == nil || !strings.HasPrefix(string(text), boot.Result.Record.BootID) {
				c.fault(&c.lost, "%s #%d: it ran in another boot than its own: %q", s.Cell, s.Repeat, text)
			}
		}
	}
}
