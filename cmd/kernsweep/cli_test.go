package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets/targetstest"
)

func TestMain(m *testing.M) {
	if signal.Ignored(syscall.SIGHUP) { // under nohup; the programs that are hung up here shall not be
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testscript.Main(m, map[string]func(){"kernsweep": main})
}

// TestCommandLine runs the scripts in testdata against real parts: sshd as a
// plain host, QEMU guests of the virtual lab.
func TestCommandLine(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	sshd := targetstest.SSHD(t)
	ssh := sshd.SSH
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOT", root)
			e.Setenv("SSH_BLOCK", fmt.Sprintf("ssh {\n    host = %q\n    port = %d\n    user = %q\n    key = %q\n    known_hosts = %q\n    config = \"none\"\n  }",
				ssh.Host, ssh.Port, me.Username, ssh.Key, ssh.KnownHosts))
			e.Setenv("PORT", fmt.Sprint(ssh.Port))
			e.Setenv("SSHKEY", ssh.Key)
			e.Setenv("SSHUSER", me.Username)
			e.Setenv("FINGERPRINT", sshd.Fingerprint(t))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GOCACHE", os.Getenv("GOCACHE"))
			e.Setenv("KERNSWEEP_LEASES", filepath.Join(e.WorkDir, "leases"))
			return nil
		},
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"fill": fill},
		UpdateScripts: *update,
	})
}

// fill FILE… replaces the setup's variables in files.
func fill(ts *testscript.TestScript, _ bool, args []string) {
	for _, f := range args {
		path := ts.MkAbs(f)
		b, err := os.ReadFile(path)
		ts.Check(err)
		for _, name := range []string{"SSH_BLOCK", "ROOT", "DISK", "CONSOLE", "POWER", "PORT", "HOSTKEY"} {
			b = bytes.ReplaceAll(b, []byte("$"+name), []byte(ts.Getenv(name)))
		}
		ts.Check(os.WriteFile(path, b, 0o644))
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestOutputThatCannotBeWritten: what was not printed must not look printed.
func TestOutputThatCannotBeWritten(t *testing.T) {
	runs := t.TempDir()
	run, err := results.Create(runs, "s", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WritePlan(results.PlanSummary{Sweep: "s"}, &plan.Plan{Sweep: "s"}); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"status", "status latest", "report latest", "version", "testbeds", "help run", "status --json"} {
		var errs bytes.Buffer
		status := execute(t.Context(), append(strings.Fields(args), "--runs", runs), strings.NewReader(""), full{}, &errs, os.LookupEnv)
		if status != exitInfra || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s: status %d, %q", args, status, errs.String())
		}
	}
}

// TestInterruptedByHand: Ctrl-C during a command by hand says nothing of the target.
func TestInterruptedByHand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lab.hcl")
	lab := "target \"t\" {\n  ssh {\n    host = \"127.0.0.1\"\n    port = 1\n    config = \"none\"\n  }\n}\n"
	if err := os.WriteFile(file, []byte(lab), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs bytes.Buffer
	status := execute(ctx, []string{"-f", file, "exec", "t", "--", "true"}, strings.NewReader(""), io.Discard, &errs, os.LookupEnv)
	if status != exitInterrupted || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("status %d, %q", status, errs.String())
	}
}
