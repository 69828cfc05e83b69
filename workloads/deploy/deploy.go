// Package deploy brings the agent to a machine and runs tasks with it. It takes
// the first rung of a ladder that holds: the Go agent, or a POSIX shell script
// that writes the same spool for the simpler tasks.
package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/agentbin"
)

// Options of Install.
type Options struct {
	Arch    string // GOARCH of the machine; "" = from an ELF header there
	Want    string // "auto" (or ""), "go", "shell"
	Release string // uname -r; "" = ask the machine
	Note    func(string)
	Log     *zap.Logger
	// Instance, which is Instance(), makes the agent's files this process's own on a
	// machine that others use too, the controller: their Remove leaves them alone.
	// "": the machine is a target, and everything of an earlier run there is ended.
	Instance string
	// Before is an agent that this one replaces: what it has not removed yet goes
	// with this one's files. May be nil.
	Before *Agent
	// Agents gives the agent of a name ("go/mipsle", "shell") in place of the fresh
	// one, which it is handed the way to. nil: the fresh one.
	Agents func(ctx context.Context, name string, fresh func(context.Context) (*agentbin.Binary, error)) (*agentbin.Binary, error)
	// Spare lists spools there that are to be taken up again (Resuming): the tasks
	// behind them are no leftovers.
	Spare []string
	// Bare leaves no agent of an earlier run on a target either, though another run
	// could use it.
	Bare bool
	// Redial reaches the same boot again after a lost link; the caller owns the
	// Conn. nil: a lost link is final.
	Redial func(context.Context) (targets.Conn, error)
}

// filled is o with nobody listening where nobody was named.
func (o Options) filled() Options {
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return o
}

// Agent is an agent on one machine. It is safe for concurrent use.
type Agent struct {
	o      Options
	kind   string
	hash   string
	reason string

	installing sync.Mutex
	mu         sync.Mutex
	conn       targets.Conn
	at         where
	resumable  bool // it says so: wire.Resumable
	pushed     []string
	stale      []string // spools of the agent that this one replaces
}

// where an agent and its spools lie on the machine.
type where struct {
	command []string // what is executed there, before its own arguments
	file    string   // the last word of it
	spools  string   // directory
	limit   int64    // bytes of a spool
}

var _ workloads.Agent = (*Agent)(nil)

// Kind is "go" or "shell".
func (a *Agent) Kind() string { return a.kind }

// Hash is the SHA-256 of the agent, hexadecimal.
func (a *Agent) Hash() string { return a.hash }

// Reason says why it is the shell agent; "" for the Go agent.
func (a *Agent) Reason() string { return a.reason }

// Install puts an agent on the machine behind conn and tests it there. It
// returns a *workloads.UnavailableError when the machine can have none of the
// wanted kind; other errors are of the link.
func Install(ctx context.Context, conn targets.Conn, o Options) (*Agent, error) {
	o = o.filled()
	a := &Agent{o: o, conn: conn}
	if o.Before != nil {
		a.pushed = o.Before.left()
		a.stale = slices.Clone(a.pushed)
		a.o.Before = nil
	}
	switch o.Want {
	case "", "auto", "go", "shell":
	default:
		return nil, fmt.Errorf("agent %q is not known (auto, go, shell)", o.Want)
	}
	if o.Want == "shell" {
		a.reason = "the configuration asks for the shell agent"
		return a.orShell(ctx)
	}
	err := a.installGo(ctx)
	var no *workloads.UnavailableError
	if err == nil {
		return a, nil
	}
	if o.Want == "go" || !errors.As(err, &no) {
		return nil, err
	}
	a.reason = no.Reason
	o.Note("shell agent instead of the Go agent: " + a.reason)
	return a.orShell(ctx)
}

func (a *Agent) orShell(ctx context.Context) (*Agent, error) {
	if err := a.installShell(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// no is the error that leads to the next rung.
func no(format string, args ...any) error {
	return &workloads.UnavailableError{Reason: fmt.Sprintf(format, args...)}
}

func (a *Agent) installGo(ctx context.Context) error {
	if why := TooOld(a.o.Release); why != "" {
		return no("%s", why)
	}
	arch, err := a.arch(ctx)
	if err != nil {
		return err
	}
	bin, err := a.binary(ctx, "go/"+arch, func(ctx context.Context) (*agentbin.Binary, error) { return agentbin.Get(ctx, arch, a.o.Note) })
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return no("%v", err)
	}
	name := "kernsweep-agent-" + arch + "-" + bin.Hash[:12]
	if a.o.Instance != "" {
		name += "-" + a.o.Instance
	}
	m, err := survey(ctx, a.link(), name)
	if err != nil {
		return err
	}
	name = m.ours(name)
	if err := a.sweep(ctx, m, name); err != nil {
		return err
	}
	if why := TooOld(m.release); a.o.Release == "" && why != "" {
		return no("%s", why)
	}
	a.kind, a.hash = "go", bin.Hash
	for _, p := range m.places {
		if file := p.dir + "/" + name; p.exec && owned(p.have, name, m.uid, bin.Size) && a.selfTest(ctx, file) == nil {
			a.use(p, m, file)
			return nil
		}
	}
	p, why := m.choose((bin.Size+1023)/1024, true)
	if why != "" {
		return no("no place for the Go agent: %s", why)
	}
	file := p.dir + "/" + name
	err = a.settle(ctx, func() error { return a.push(ctx, file, bin, m.tools["gunzip"]) }, file)
	if err != nil {
		return err
	}
	a.use(p, m, file)
	return nil
}

// binary is the agent of a name, from whoever keeps agents.
func (a *Agent) binary(ctx context.Context, name string, fresh func(context.Context) (*agentbin.Binary, error)) (*agentbin.Binary, error) {
	if a.o.Agents == nil {
		return fresh(ctx)
	}
	return a.o.Agents(ctx, name, fresh)
}

// use settles on the agent that command starts, in place p, and on a place for
// its spools: memory-backed when there is one, so that writing them costs the
// workload no disk.
func (a *Agent) use(p place, m *machine, command ...string) {
	file := command[len(command)-1]
	a.remember(file)
	spools := p
	for _, q := range m.places {
		if q.inMemory {
			spools = q
			break
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = where{command: command, file: file, spools: spools.dir, limit: spoolLimit(spools, m.freeMemKB())}
}

// place is where the agent is now.
func (a *Agent) place() where {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

func (a *Agent) canResume() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.resumable
}

// restore pushes an agent again that somebody removed: a cleaner of temporary
// files, or another kernsweep that used the same file.
func (a *Agent) restore(ctx context.Context) error {
	a.installing.Lock()
	defer a.installing.Unlock()
	a.o.Note("the agent is gone from the machine; pushing it again")
	if a.kind == "shell" {
		return a.installShell(ctx)
	}
	return a.installGo(ctx)
}

// spoolLimit is at most a quarter of what is free, between 256 kB and 16 MB.
func spoolLimit(p place, freeMemKB int64) int64 {
	kb := int64(64 << 10)
	if p.availKB >= 0 {
		kb = min(kb, p.availKB)
	}
	if p.inMemory && freeMemKB >= 0 {
		kb = min(kb, freeMemKB)
	}
	return min(max(kb/4, 256), 16<<10) << 10
}

// arch is the GOARCH from the options, else from the header of a program there.
func (a *Agent) arch(ctx context.Context) (string, error) {
	if a.o.Arch != "" {
		return a.o.Arch, nil
	}
	var head, machine, errs strings.Builder
	script := `for f in /bin/busybox /bin/sh /proc/self/exe; do dd if="$f" bs=64 count=1 2>/dev/null && exit 0; done; exit 1`
	exit, err := a.link().Run(ctx, targets.Cmd{Argv: []string{"/bin/sh", "-c", script}, Stdout: &head, Stderr: &errs})
	if err != nil {
		return "", err
	}
	if _, err := a.link().Run(ctx, targets.Cmd{Argv: []string{"uname", "-m"}, Stdout: &machine}); err != nil {
		return "", err
	}
	if !exit.OK() {
		return "", no("the machine's architecture is unknown: set arch for it (%s)", firstLine(errs.String()))
	}
	p, err := targets.ProgramFromELF([]byte(head.String()), strings.TrimSpace(machine.String()))
	if err != nil {
		return "", no("the machine's architecture is unknown: set arch for it (%v)", err)
	}
	return p.GOARCH, nil
}

// Through makes the agent use conn from now on, in place of one that is lost.
func (a *Agent) Through(conn targets.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = conn
}

func (a *Agent) link() targets.Conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conn
}
