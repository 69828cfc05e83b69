package orchestrator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/targets/localconn"
	"kernsweep/workloads"
)

// machine is a fast target: this computer, seen through a mount namespace in
// which boot_id and the command line are those of its latest "boot". Everything
// else (probe, agent, workload) is real.
type machine struct {
	t    *testing.T
	dir  string
	once bool // traits of boot method none

	mu    sync.Mutex
	boots []string                    // kernels asked for
	fail  func(n int, k string) error // what boot n of kernel k says; may be nil
	conns []*nsConn

	refuse int // so many log-ins fail from now on

	traits targets.BootTraits // beside Cmdline
	off    bool               // without power, or dead
	reboot func()             // its system was asked to reboot; nil: it says yes and stays up
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, dir: t.TempDir()}
	m.renew("")
	return m
}

// renew gives the machine a new boot.
func (m *machine) renew(cmdline string) {
	var b [16]byte
	_, _ = rand.Read(b[:])
	id := fmt.Sprintf("%x-%x-4%03x-a%03x-%x\n", b[0:4], b[4:6], b[6:8][0], b[8:10][0], b[10:16])
	for _, d := range []string{"pstore", "crash"} { // this computer's own are nobody's business
		if err := os.MkdirAll(filepath.Join(m.dir, d), 0o755); err != nil {
			m.t.Error(err)
		}
	}
	for name, body := range map[string]string{"boot_id": id, "cmdline": cmdline + "\n", "uptime": "1.00 1.00\n", "knob": "256\n"} {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(body), 0o644); err != nil {
			m.t.Error(err)
		}
	}
}

func (m *machine) Boot(_ context.Context, _ *targets.Target, k targets.Kernel) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boots = append(m.boots, k.Name)
	if m.once {
		return nil // it starts nothing
	}
	m.cut()
	if m.fail != nil {
		if err := m.fail(len(m.boots), k.Name); err != nil {
			return err
		}
	}
	m.renew(k.Args())
	return nil
}

// cut breaks every link, under the lock.
func (m *machine) cut() {
	for _, c := range m.conns {
		c.cut()
	}
	m.conns = nil
}

// supply takes or gives power. With it comes the device's own kernel, which has
// no arguments of ours.
func (m *machine) supply(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off == !on {
		return
	}
	m.off = !on
	m.cut()
	if on {
		m.renew("quiet")
	}
}

func (m *machine) Traits() targets.BootTraits {
	t := m.traits
	t.Cmdline, t.OnlyOnce = !m.once, m.once
	return t
}

func (m *machine) dial(context.Context, targets.SSH, targets.DialOptions) (targets.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse > 0 || m.off {
		m.refuse = max(0, m.refuse-1)
		return nil, &targets.LinkError{Phase: "connect", Err: errors.New("connection refused")}
	}
	c := &nsConn{Conn: localconn.New(), m: m, dir: m.dir, lost: make(chan struct{})}
	m.conns = append(m.conns, c)
	return c, nil
}

// nsConn runs commands in the machine's namespace until it is cut.
type nsConn struct {
	targets.Conn
	m    *machine
	dir  string
	once sync.Once
	lost chan struct{}
}

func (c *nsConn) cut() { c.once.Do(func() { close(c.lost) }) }

func (c *nsConn) Run(ctx context.Context, cmd targets.Cmd) (targets.Exit, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-c.lost:
			cancel()
		case <-stop:
		}
	}()
	if slices.ContainsFunc(cmd.Argv, func(a string) bool { return strings.Contains(a, "reboot") }) {
		if c.m.reboot != nil { // and never this computer
			c.m.reboot()
		}
		return targets.Exit{}, nil
	}
	// This computer's own crash files are nobody's business.
	const script = `mount --bind "$0/boot_id" /proc/sys/kernel/random/boot_id && mount --bind "$0/cmdline" /proc/cmdline &&
		mount --bind "$0/uptime" /proc/uptime && mount --bind "$0/knob" /proc/sys/kernel/random/poolsize &&
		mount -t tmpfs none /sys/fs && mkdir /sys/fs/pstore && mount --bind "$0/pstore" /sys/fs/pstore &&
		{ [ ! -d /var/crash ] || mount --bind "$0/crash" /var/crash; } && exec "$@"`
	namespace := "-m"
	if os.Getuid() != 0 {
		namespace = "-Urm"
	}
	cmd.Argv = append([]string{"unshare", namespace, "sh", "-c", script, c.dir}, cmd.Argv...)
	exit, err := c.Conn.Run(ctx, cmd)
	select {
	case <-c.lost:
		return exit, &targets.LinkError{Phase: "exec", Err: errors.New("the cable is out")}
	default:
		return exit, err
	}
}

// Get finds the crash files where the namespace has them.
func (c *nsConn) Get(ctx context.Context, path string, w io.Writer) error {
	if name, ok := strings.CutPrefix(path, "/sys/fs/pstore/"); ok {
		path = filepath.Join(c.dir, "pstore", name)
	}
	return c.Conn.Get(ctx, path, w)
}

// echo is a workload that runs one shell command under the agent and yields one value.
type echo struct {
	run   func(ctx context.Context, env *workloads.Env) error // nil: the command
	value float64
	err   error
}

func (e *echo) Check() error            { return nil }
func (e *echo) Needs() workloads.Needs  { return workloads.Needs{} }
func (e *echo) Estimate() time.Duration { return 10 * time.Millisecond }
func (e *echo) Metrics() []workloads.Metric {
	return []workloads.Metric{{Name: "n", Unit: "count", Better: workloads.HigherIsBetter, Primary: true}}
}
func (e *echo) Run(ctx context.Context, env *workloads.Env) error {
	if e.run != nil {
		return e.run(ctx, env)
	}
	return env.Target.Agent.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "true"}, Deadline: env.Deadline, Dir: env.Dir, Ended: env.Ended})
}
func (e *echo) Parse(files fs.FS) (workloads.Parsed, error) {
	if e.err != nil {
		return workloads.Parsed{}, e.err
	}
	return workloads.Parsed{Values: []workloads.Value{{Metric: e.Metrics()[0], Value: e.value}}}, nil
}

// fakeLab is a lab of one machine, two kernels and the given scenarios.
type fakeLab struct {
	lab    *config.Lab
	m      *machine
	others map[string]*machine // by SSH host

	night   *night       // nil: the real one, without an end
	history plan.History // what is thought before the run
	runner  *Runner      // the newest
	resume  bool
}

func (f *fakeLab) dial(ctx context.Context, s targets.SSH, o targets.DialOptions) (targets.Conn, error) {
	if m := f.others[s.Host]; m != nil {
		return m.dial(ctx, s, o)
	}
	return f.m.dial(ctx, s, o)
}

func newFakeLab(t *testing.T, scenarios map[string]workloads.Workload) *fakeLab {
	f := &fakeLab{m: newMachine(t)}
	tgt := &config.Target{Target: targets.Target{Name: "box", Arch: runtime.GOARCH, Boot: f.m, Timeout: targets.Timeouts{Boot: 10 * time.Second}}, BootKind: "fake", Agent: "auto", Scale: 1, Quarantine: 2, Failures: config.Failures{Retries: 1}}
	w := &config.Workload{Kind: "echo", Name: "w"}
	for name, run := range scenarios {
		w.Scenarios = append(w.Scenarios, config.Scenario{Name: name, Run: run, Common: workloads.Common{Peer: "controller"}})
	}
	f.lab = &config.Lab{Targets: []*config.Target{tgt}, Workloads: []*config.Workload{w},
		Kernels: []*config.Kernel{{Name: "a"}, {Name: "b"}},
		Sweeps: []*config.Sweep{{Name: "s", Boots: 2, Repeat: 1, BootFailures: 2, Kernels: []string{"a", "b"}, Baseline: "a",
			Matrices: []config.Matrix{{Targets: []string{"box"}, Kernels: []string{"a", "b"}, Workloads: []string{"echo.w"}, Baseline: "a"}}}}}
	return f
}

func planOf(t *testing.T, f *fakeLab) *plan.Plan {
	t.Helper()
	p, err := plan.Expand(f.lab, f.lab.Sweeps[0], 1, plan.Filter{}, plan.History{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// execute runs the sweep once and returns what the journal says.
func (f *fakeLab) execute(t *testing.T, ctx context.Context, observe func(results.Record)) (*results.Run, *results.Model, error) {
	t.Helper()
	p := planOf(t, f)
	run, err := results.Create(t.TempDir(), p.Sweep, results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	model, err := f.executeIn(t, ctx, run, p, observe)
	return run, model, err
}

func (f *fakeLab) executeIn(t *testing.T, ctx context.Context, run *results.Run, p *plan.Plan, observe func(results.Record)) (*results.Model, error) {
	t.Helper()
	before, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("test")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	why := ""
	if f.resume {
		why = "resume"
	}
	r := &Runner{Lab: f.lab, Plan: p, Run: run, Journal: w, Before: before.Model, Dial: f.dial, Local: localconn.New(),
		Log: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)), Observe: observe, History: f.history, night: f.night, Resume: f.resume, Why: why}
	f.runner = r
	runErr := r.Execute(ctx)
	after, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	return after.Model, runErr
}
