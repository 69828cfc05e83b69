package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
	"kernsweep/targets/boot"
	"kernsweep/targets/console"
	"kernsweep/targets/power"
	"kernsweep/targets/qemu"
	"kernsweep/workloads"
)

// allFaults are what steps may fail with, of every kind.
func allFaults() []error {
	out := []error{
		errors.New("something nobody thought of"),
		&exec.Error{Name: "no-picocom", Err: exec.ErrNotFound},
		&targets.OutletError{Target: "box"},
		&targets.OtherMachineError{},
		&workloads.UnavailableError{Reason: "no directory is writable"},
		fmt.Errorf("no answer within 5m of power on: %w", context.DeadlineExceeded),
		errors.New("TFTP: nobody asked for box at 192.0.2.9:69"),
		errors.New("the console does not open: no such device"),
		errors.New("/dev/console cannot be written there: permission denied"),
		errors.New(`not within 10s; heard instead: "xxxx"`),
		errors.New("the agent's self-test failed (built for another architecture or byte order)"),
		&targets.LinkError{Phase: "connect", Err: errors.New("no route"), Hop: "gate"},
		&targets.LinkError{Phase: "handshake", Err: errors.New("the host key changed"), Refused: true},
		&targets.LinkError{Phase: "handshake", Err: errors.New("no common algorithm")},
	}
	for _, phase := range []string{"connect", "handshake", "log in", "exec", "transfer", ""} {
		out = append(out, &targets.LinkError{Phase: phase, Err: io.EOF})
	}
	for _, stage := range []string{"panic", "hang", "no root", "wrong kernel", "wrong scheduler", "loading", "silent", ""} {
		out = append(out, &targets.BootError{Kernel: "good", Stage: stage, Err: io.EOF})
	}
	return out
}

// Whatever fails, the advice is there, names the target or what to write where, and
// leaves nothing for the reader to fill in that is known.
func TestNoFailureWithoutAdvice(t *testing.T) {
	good := &targets.Kernel{Name: "good"}
	real := config.Target{Target: targets.Target{Name: "box", Boot: &boot.Command{}, SSH: targets.SSH{Host: "192.0.2.1", Port: 22}}, BootKind: "command"}
	guest := config.Target{Target: targets.Target{Name: "box", Boot: &qemu.Machine{}}, BootKind: "qemu"}
	powered, goOnly := real, real
	powered.Power = &power.Command{}
	goOnly.Agent = "go"
	var known []Options
	for _, target := range []config.Target{real, guest, powered, goOnly} {
		known = append(known, Options{Target: &target}, Options{Target: &target, Known: good}, Options{Target: &target, Known: good, Kernel: good, Kernsweep: "kernsweep -f lab.hcl"})
	}
	for _, kind := range []string{"serial", "tcp", "telnet", "command", "ssh", "netconsole"} {
		c := real
		c.ConsoleKind = kind
		known = append(known, Options{Target: &c})
	}
	for _, o := range known {
		r := &rehearsal{o: o, t: &o.Target.Target}
		for _, s := range r.all() {
			for _, err := range allFaults() {
				for _, r.down = range []string{"", notBack} {
					got := r.advice(s.name, err)
					if !strings.Contains(got, "box") && !strings.Contains(got, "kernel \"good\"") && !strings.Contains(got, "ssh") {
						t.Errorf("%s, %v: %q names nothing to change", s.name, err, got)
					}
					if strings.Contains(got, "TARGET") || strings.Contains(got, "%!") || strings.Contains(got, "  ") {
						t.Errorf("%s, %v: %q", s.name, err, got)
					}
				}
			}
		}
	}
}

// Steps that fail for real carry their advice.
func TestFailedStepsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		step string
		do   string
	}{
		"a program that is missing": {Options{Target: &config.Target{Target: targets.Target{Boot: &boot.Command{Command: []string{"/no/boot"}}}}}, stepPrograms,
			"correct its path in the blocks of target \"box\""},
		"a console's program": {Options{Target: &config.Target{Target: targets.Target{Boot: new(boot.None), Console: &console.Command{Command: []string{"ipmitool-no"}}}}}, stepPrograms, "install it on the controller"},
		"nobody there":        {Options{Target: &config.Target{Target: targets.Target{Boot: new(boot.None)}}}, stepReach, "correct host and port in the ssh block of target \"box\""},
		"a virtual one":       {Options{Target: &config.Target{Target: targets.Target{Arch: "amd64", Boot: &qemu.Machine{Program: "true"}}}}, stepReach, "known_good = kernel.NAME into target \"box\""},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Target.Name, c.o.Log = "box", zap.NewNop()
			c.o.Dial = func(context.Context, targets.SSH, targets.DialOptions) (targets.Conn, error) {
				return nil, &targets.LinkError{Phase: "connect", Err: errors.New("no route to it")}
			}
			steps, err := Walk(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range steps {
				if s.State == Failed && s.Advice == "" {
					t.Errorf("no advice: %+v", s)
				}
				if s.Name == c.step && (s.State != Failed || !strings.Contains(s.Advice, c.do)) {
					t.Errorf("%+v, want %q", s, c.do)
				}
			}
		})
	}
}

// A serial port that somebody else has open.
func TestConsoleAdvice(t *testing.T) {
	r := &rehearsal{o: Options{Target: &config.Target{ConsoleKind: "serial"}}, t: &targets.Target{Name: "box"}}
	if got := r.advice(stepConsole, errors.New("the console does not open: device or resource busy")); !strings.Contains(got, "fuser -v") {
		t.Error(got)
	}
}
