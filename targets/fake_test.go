package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	idOld = "3f1c9a52-8c1d-4c0e-9a77-0d5b6f2e1a10"
	idNew = "b7e40d66-1f0a-4f63-8e2b-5c9d7a90c3f4"
)

// machine is a scripted target: what runs on it changes with time.
type machine struct {
	mu       sync.Mutex
	up       bool
	id       string
	release  string
	cmdline  string
	sched    map[string]string
	elf      string
	dialErr  error
	answer   func() (Exit, string, error) // of a boot_id probe; nil: id
	dials    int
	recheck  string  // answer of every command
	uptime   float64 // 0: one second
	identity string  // section of the probe
	broken   func()  // the probe loses the link after calling it
}

func newMachine() *machine {
	return &machine{up: true, id: idOld, release: "6.1.0-49-cloud-amd64", sched: map[string]string{},
		elf: "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\x3e\x00" + strings.Repeat("\x00", 44)}
}

func (m *machine) set(f func(*machine)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

func (m *machine) dial(ctx context.Context, _ SSH, _ DialOptions) (Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials++
	if m.dialErr != nil {
		return nil, m.dialErr
	}
	if !m.up {
		return nil, &LinkError{Phase: "connect", Err: errors.New("connection refused")}
	}
	return &fakeConn{m: m, id: m.id}, nil
}

type fakeConn struct {
	m      *machine
	id     string
	closed bool
}

func (c *fakeConn) Run(ctx context.Context, cmd Cmd) (Exit, error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if !c.m.up || c.m.id != c.id || c.closed {
		return Exit{}, &LinkError{Phase: "exec", Err: io.EOF}
	}
	switch {
	case c.m.recheck != "":
		io.WriteString(cmd.Stdout, c.m.recheck)
	case cmd.Argv[0] == "cat":
		if c.m.answer != nil {
			e, s, err := c.m.answer()
			c.id = c.m.id
			io.WriteString(cmd.Stdout, s)
			return e, err
		}
		fmt.Fprintln(cmd.Stdout, c.m.id)
	case cmd.Stdin != nil && c.m.broken != nil:
		f := c.m.broken
		c.m.broken = nil
		f()
		return Exit{}, &LinkError{Phase: "exec", Err: io.EOF}
	case cmd.Stdin != nil:
		script, _ := io.ReadAll(cmd.Stdin)
		mark, _, _ := strings.Cut(strings.TrimPrefix(string(script), "M="), "\n")
		c.m.probe(cmd.Stdout, mark)
	}
	return Exit{}, nil
}

func (m *machine) probe(w io.Writer, mark string) {
	s := func(name, body string) { fmt.Fprintf(w, "\n@@%s %s\n%s", mark, name, body) }
	s("uname", "Linux\nhost\n"+m.release+"\n#1 SMP\nx86_64\n")
	s("boot_id", m.id+"\n")
	s("uptime", fmt.Sprintf("%.2f 20.00\n", max(m.uptime, 1)))
	s("cmdline", m.cmdline+"\n")
	s("elf", m.elf)
	s("client", "10.0.2.2 41000 10.0.2.15 22\n")
	s("sched", "")
	for k, v := range m.sched {
		fmt.Fprintf(w, "%s=%s\n", k, v)
	}
	s("identity", m.identity)
	s("end", "")
}

func (c *fakeConn) Put(context.Context, string, fs.FileMode, io.Reader) error { return nil }
func (c *fakeConn) Get(context.Context, string, io.Writer) error              { return nil }
func (c *fakeConn) Close() error                                              { c.closed = true; return nil }

// pipeConsole is a console that the test writes.
type pipeConsole struct {
	r     *io.PipeReader
	w     *io.PipeWriter
	typed bytes.Buffer // what was sent to the machine
	onKey func(typed string)
}

func newPipeConsole() *pipeConsole {
	r, w := io.Pipe()
	return &pipeConsole{r: r, w: w}
}

func (p *pipeConsole) Open(context.Context) (io.ReadWriteCloser, error) { return p, nil }
func (p *pipeConsole) Read(b []byte) (int, error)                       { return p.r.Read(b) }
func (p *pipeConsole) Write(b []byte) (int, error) {
	p.typed.Write(b)
	if p.onKey != nil {
		p.onKey(p.typed.String())
	}
	return len(b), nil
}
func (p *pipeConsole) Close() error { return p.r.CloseWithError(io.ErrClosedPipe) }

// bootFunc is a boot method of a test.
type bootFunc struct {
	f      func(ctx context.Context, t *Target, k Kernel) error
	traits BootTraits
}

func (b *bootFunc) Boot(ctx context.Context, t *Target, k Kernel) error { return b.f(ctx, t, k) }
func (b *bootFunc) Traits() BootTraits                                  { return b.traits }

// attempt is one Boot with its log.
type attempt struct {
	phases  []Phase
	notes   []string
	console bytes.Buffer
	rec     BootRecord
	err     error
	took    time.Duration
}

func (a *attempt) run(ctx context.Context, t *Target, k Kernel) {
	begin := time.Now()
	_, a.rec, a.err = Boot(ctx, t, k, BootLog{
		Phase:   func(p Phase) { a.phases = append(a.phases, p) },
		Note:    func(s string) { a.notes = append(a.notes, s) },
		Console: &a.console,
	})
	a.took = time.Since(begin)
}

func (a *attempt) stage(t *testing.T) string {
	t.Helper()
	var be *BootError
	if !errors.As(a.err, &be) {
		t.Fatalf("no BootError: %v", a.err)
	}
	return be.Stage
}

// talk writes text to a console in a goroutine, then runs the rest.
func talk(c *pipeConsole, text string, then ...func()) {
	go func() {
		io.WriteString(c.w, text)
		for _, f := range then {
			f()
		}
	}()
}
