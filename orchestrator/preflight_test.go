package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/targets/boot"
	"kernsweep/targets/console"
	"kernsweep/targets/power"
	"kernsweep/targets/qemu"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
	"kernsweep/workloads"
)

// Nobody may leave when a program that a night's boots need is not there.
func TestPreflightLooksForPrograms(t *testing.T) {
	f := newFakeLab(t, nil)
	for name, c := range map[string]struct {
		t    targets.Target
		text string // of what is not safe; "" = nothing
	}{
		"box":   {targets.Target{Boot: f.m}, ""},
		"real":  {targets.Target{Boot: &boot.Command{Command: []string{"true", "x"}}}, ""},
		"boot":  {targets.Target{Boot: &boot.Command{Command: []string{"/no/pxe-boot"}}}, "missing on the controller: /no/pxe-boot"},
		"power": {targets.Target{Boot: f.m, Power: &power.Command{On: []string{"no-relay", "1"}, Off: []string{"no-relay", "0"}}}, "missing on the controller: no-relay"},
		"line":  {targets.Target{Boot: f.m, Console: &console.Command{Command: []string{"no-picocom"}}}, "missing on the controller: no-picocom"},
		"guest": {targets.Target{Arch: "mips", Boot: &qemu.Machine{Program: "no-qemu"}}, "missing on the controller: no-qemu"},
		"kvm":   {targets.Target{Arch: "amd64", Boot: &qemu.Machine{Program: "true", HostKey: "/no/key"}}, "the guest's host key: open /no/key"},
	} {
		c.t.Name = name
		f.lab.Targets = []*config.Target{{Target: c.t}}
		p := &Preflight{Lab: f.lab, Plan: &plan.Plan{Lanes: []plan.Lane{{Target: name}}}, Dial: f.dial}
		got := p.Run(t.Context())
		said := ""
		for _, g := range got {
			if g.Level == Unsafe && said == "" {
				said = g.Text
			}
			if (g.Level == Fine) != (g.Do == "") {
				t.Errorf("%s: only what is not fine says what to do: %+v", name, g)
			}
		}
		if !strings.HasPrefix(said, c.text) || c.text == "" && said != "" {
			t.Errorf("%s: %+v, want %q", name, got, c.text)
		}
	}
}

// stated is a power driver that tells its state.
type stated struct {
	on  bool
	err error
}

func (s stated) Set(context.Context, bool) error     { return errors.New("a preflight switches nothing") }
func (s stated) State(context.Context) (bool, error) { return s.on, s.err }

// shut is a console that does not open.
type shut struct{}

func (shut) Open(context.Context) (io.ReadWriteCloser, error) {
	return nil, errors.New("the port is in use")
}

// equipped is a workload with tools.
type equipped struct {
	echo
	tools []workloads.Tool
	goes  string
}

func (e *equipped) Tools() []workloads.Tool { return e.tools }
func (e *equipped) Needs() workloads.Needs  { return workloads.Needs{GoAgent: e.goes} }

// What stands against a night is found, each with what to do, on a machine that is
// reached; nothing is switched, and nothing is left there.
func TestPreflightFindings(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "vmlinux")
	elf := append([]byte("\x7fELF\x01\x02\x01"), make([]byte, 60)...)
	elf[19] = 8 // big-endian MIPS
	if err := os.WriteFile(wrong, elf, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*fakeLab)
		level  Level
		text   string
	}{
		"well": {func(f *fakeLab) { f.lab.Targets[0].Power = stated{on: true} }, Fine, "power on, agent fits into "},
		"outlet": {func(f *fakeLab) { f.lab.Targets[0].Power = stated{} }, Unsafe,
			"its power driver says off, and yet it answers"},
		"strip":   {func(f *fakeLab) { f.lab.Targets[0].Power = stated{err: errors.New("no route")} }, Unsafe, "its power driver does not answer: no route"},
		"console": {func(f *fakeLab) { f.lab.Targets[0].Console = shut{} }, Unsafe, "its console does not open: the port is in use"},
		"gone":    {func(f *fakeLab) { f.m.off = true }, Unsafe, "not reached: connect: connection refused"},
		"both": {func(f *fakeLab) { f.m.off, f.lab.Targets[0].Power = true, stated{err: errors.New("no route")} }, Unsafe,
			"not reached: connect: connection refused; and its power driver does not answer"},
		"off": {func(f *fakeLab) { f.m.off, f.lab.Targets[0].Power = true, stated{} }, Warning,
			"not reached: connect: connection refused (its power driver will be tried: the outlet is off)"},
		"arch": {func(f *fakeLab) {
			f.lab.Kernels[0].Images = []config.Image{{For: "box", Image: targets.Image{Kernel: wrong}}}
		}, Unsafe, "is for mips, and the target is " + runtime.GOARCH},
		"image": {func(f *fakeLab) {
			f.lab.Kernels[0].Images = []config.Image{{For: "box", Image: targets.Image{Kernel: "/no/vmlinux"}}}
		}, Unsafe, "kernel a: /no/vmlinux: no such file"},
		"tool": {func(f *fakeLab) {
			f.m.traits.Running = true
			f.lab.Workloads[0].Scenarios[0].Run = &equipped{tools: []workloads.Tool{{Name: "sh"}, {Name: "no-iperf"}}}
		}, Unsafe, "no-iperf is not there, and echo.w needs it"},
		"its own userland": {func(f *fakeLab) {
			f.lab.Workloads[0].Scenarios[0].Run = &equipped{tools: []workloads.Tool{{Name: "/no/tree"}}}
		}, Warning, "/no/tree is not there, and echo.w needs it"},
		"peer": {func(f *fakeLab) {
			f.lab.Workloads[0].Scenarios[0].Run = &equipped{tools: []workloads.Tool{{Name: "no-iperf", Peer: true}}}
		}, Unsafe, "no-iperf is not on the controller, the peer of echo.w"},
		"shared": {func(f *fakeLab) { f.lab.Targets[0].Uses = []string{"lan0"} }, Warning, "lan0, which its trials share, is in use by ada"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
			c.change(f)
			p := &Preflight{Lab: f.lab, Plan: planOf(t, f), Dial: f.dial, Kernsweep: "kernsweep",
				Held: []leases.Record{{Key: "uses:lan0", Owner: "ada", State: leases.Held}}}
			var all []string
			for _, g := range p.Run(t.Context()) {
				all = append(all, fmt.Sprintf("%s %s %s -> %s", g.Level, g.Target, g.Text, g.Do))
				if g.Level == c.level && strings.Contains(g.Text, c.text) {
					if g.Level != Fine && g.Do == "" {
						t.Errorf("nothing to do: %+v", g)
					}
					return
				}
			}
			t.Errorf("no %s %q in:\n%s", c.level, c.text, strings.Join(all, "\n"))
		})
	}
}

// stuckConsole keeps its caller until the test is over, whatever the context says.
type stuckConsole chan struct{}

func (s stuckConsole) Open(context.Context) (io.ReadWriteCloser, error) {
	<-s
	return nil, io.EOF
}

// A target that accepts and never answers holds nobody up for longer than the
// bound, however many there are; neither does a driver that never returns.
func TestPreflightEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const bound = 400 * time.Millisecond
	for _, fault := range []targetstest.Fault{targetstest.SilentAccept, targetstest.SilentBanner, targetstest.SilentAuth, targetstest.SilentOpen, targetstest.SilentExec} {
		t.Run(string(fault), func(t *testing.T) {
			fake := targetstest.NewFake(t, targetstest.FakeOptions{Fault: fault})
			stuck := make(stuckConsole)
			t.Cleanup(func() { close(stuck) })
			lab, p := &config.Lab{}, &plan.Plan{}
			for i := range 40 { // more than are asked at once
				name := fmt.Sprintf("t%d", i)
				lab.Targets = append(lab.Targets, &config.Target{Target: targets.Target{Name: name, Boot: &boot.None{}, SSH: fake.SSH}})
				p.Lanes = append(p.Lanes, plan.Lane{Target: name})
			}
			lab.Targets[3].Console = stuck
			begin := time.Now()
			found := (&Preflight{Lab: lab, Plan: p, Dial: sshconn.New(nil).Dial, Bound: bound}).Run(t.Context())
			if took := time.Since(begin); took > bound+2*time.Second { // the machine may be busy
				t.Errorf("it took %s", took)
			}
			bad := map[string]bool{}
			for _, f := range found {
				bad[f.Target] = bad[f.Target] || f.Level != Fine && f.Do != ""
			}
			for _, target := range lab.Targets {
				if !bad[target.Name] {
					t.Errorf("nothing is said of %s: %+v", target.Name, found)
					break
				}
			}
			if !strings.Contains(fmt.Sprint(found), "not known in time: its console") {
				t.Errorf("nothing of the console: %+v", found)
			}
		})
	}
}

// Images tell what they are for.
func TestImageArch(t *testing.T) {
	at := func(n int, parts map[int]string) []byte {
		b := make([]byte, n)
		for i, s := range parts {
			copy(b[i:], s)
		}
		return b
	}
	for name, c := range map[string]struct {
		head []byte
		want string
	}{
		"arm64 Image":    {at(64, map[int]string{56: "ARM\x64"}), "arm64"},
		"uImage of MIPS": {at(80, map[int]string{0: "\x27\x05\x19\x56", 29: "\x05"}), "mips"},
		"bzImage":        {at(1024, map[int]string{0x202: "HdrS\x0f\x02", 0x236: "\x01"}), ""},
		"32-bit bzImage": {at(1024, map[int]string{0x202: "HdrS\x0f\x02"}), "386"},
		"old bzImage":    {at(1024, map[int]string{0x202: "HdrS\x06\x02"}), ""},
		"ELF of mipsle":  {at(64, map[int]string{0: "\x7fELF\x01\x01\x01", 18: "\x08"}), "mipsle"},
		"text":           {[]byte("hello"), ""},
		"nothing":        {nil, ""},
	} {
		path := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(path, c.head, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := imageArch(path); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
