package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	idOld = "3f1c9a52-8c1d-4c0e-9a77-0d5b6f2e1a10"
	idNew = "b7e40d66-1f0a-4f63-8e2b-5c9d7a90c3f4"
)

// machine is a scripted target: what runs on it changes with time.
type machine struct {
	mu      sync.Mutex
	up      bool
	id      string
	release string
	cmdline string
	sched   map[string]string
	elf     string
	dialErr error
	answer  func() (Exit, string, error) // of a boot_id probe; nil: id
	dials   int
	uptime  float64 // 0: one second
	broken  func()  // the probe loses the link after calling it
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
	s("end", "")
}

func (c *fakeConn) Put(context.Context, string, fs.FileMode, io.Reader) error { return nil }
func (c *fakeConn) Get(context.Context, string, io.Writer) error              { return nil }
func (c *fakeConn) Close() error                                              { c.closed = true; return nil }

// pipeConsole is a console that the test writes.
type pipeConsole struct {
	r *io.PipeReader
	w *io.PipeWriter
}

func newPipeConsole() *pipeConsole {
	r, w := io.Pipe()
	return &pipeConsole{r, w}
}

func (p *pipeConsole) Open(context.Context) (io.ReadWriteCloser, error) { return p, nil }
func (p *pipeConsole) Read(b []byte) (int, error)                       { return p.r.Read(b) }
func (p *pipeConsole) Write(b []byte) (int, error)                      { return len(b), nil }
func (p *pipeConsole) Close() error                                     { return p.r.CloseWithError(io.ErrClosedPipe) }

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

func TestBootWithConsoleAndNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := newMachine(), newPipeConsole()
		m.up = false
		tg := &Target{Name: "x86", Dial: m.dial, Console: c, Ready: `^sshd ready`, Arch: "amd64"}
		tg.Boot = &bootFunc{traits: BootTraits{Cmdline: true, Emulated: true}, f: func(_ context.Context, _ *Target, k Kernel) error {
			talk(c, "SeaBIOS (version 1)\r\n[    0.000000] Linux version 6.1.0 (x) #1 SMP\r\n", func() {
				<-time.After(8 * time.Second)
				m.set(func(m *machine) { m.up, m.id, m.cmdline = true, idNew, "console=ttyS0 "+k.Args() })
				io.WriteString(c.w, "sshd ready\r\n")
			})
			return nil
		}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "cfs", Scheduler: "cfs", Release: "6.1.*"})
		if a.err != nil {
			t.Fatal(a.err)
		}
		want := []Phase{PhaseAsked, PhaseDown, PhaseLoading, PhaseKernel, PhaseReachable, PhaseVerified}
		if !slices.Equal(a.phases, want) || len(a.rec.Phases) != len(want) {
			t.Errorf("phases %v", a.phases)
		}
		if !a.rec.Proven || a.rec.BootID != idNew || a.rec.Scheduler.Name != "cfs" || a.rec.Arch != "amd64" || a.rec.ClientAddr != "10.0.2.2" {
			t.Errorf("record %+v", a.rec)
		}
		if m.dials != 1 {
			t.Errorf("%d dials, want one: after the console's word", m.dials)
		}
		// After the boot, an oops is an event with a mark before it.
		mark := tg.ConsoleMark()
		io.WriteString(c.w, "[  60.000000] BUG: scheduling while atomic: iperf3/912\n")
		<-time.After(time.Second)
		if ev := tg.ConsoleEvents(mark); len(ev) != 1 || ev[0].Stage != StageOops {
			t.Errorf("events %v", ev)
		}
		tg.StopConsole()
		if !strings.Contains(a.console.String(), "scheduling while atomic") {
			t.Error("the console is not recorded after the boot")
		}
	})
}

func TestBootJudges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*machine)
		kernel Kernel
		stage  string
	}{
		"release":   {func(m *machine) { m.release = "5.15.137-stock" }, Kernel{Release: "6.1.*"}, StageWrongKernel},
		"nonce":     {func(m *machine) { m.cmdline = "kernsweep.nonce=0011223344556677" }, Kernel{}, StageWrongKernel},
		"scheduler": {func(m *machine) { m.release = "6.12.1" }, Kernel{Scheduler: "cfs"}, StageWrongScheduler},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine()
				tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Cmdline: true}, f: func(_ context.Context, _ *Target, k Kernel) error {
					m.set(func(m *machine) { m.id, m.cmdline = idNew, k.Args(); c.change(m) })
					return nil
				}}}
				var a attempt
				a.run(t.Context(), tg, c.kernel)
				if got := a.stage(t); got != c.stage {
					t.Errorf("stage %q, want %q: %v", got, c.stage, a.err)
				}
				if tg.Held != nil {
					t.Error("a link is held after a failed boot")
				}
			})
		})
	}
}

// A slow shutdown (a04): the old boot answers for 60 s after the request.
func TestRebootSlowShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		tg := &Target{Name: "slow", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Running: true}, f: func(context.Context, *Target, Kernel) error {
			go func() {
				<-time.After(60 * time.Second)
				m.set(func(m *machine) { m.up = false })
				<-time.After(20 * time.Second)
				m.set(func(m *machine) { m.up, m.id = true, idNew })
			}()
			return nil
		}}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if a.err != nil || !a.rec.Proven || a.rec.BootID != idNew {
			t.Fatalf("%v %+v", a.err, a.rec)
		}
		if a.took < 80*time.Second || a.took > 90*time.Second {
			t.Errorf("took %s", a.took)
		}
		if want := []Phase{PhaseAsked, PhaseDown, PhaseReachable, PhaseVerified}; !slices.Equal(a.phases, want) {
			t.Errorf("phases %v", a.phases)
		}
		if len(a.notes) != 1 || !strings.Contains(a.notes[0], "still up") {
			t.Errorf("notes %q", a.notes)
		}
	})
}

func TestRebootNeverGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		tg := &Target{Name: "stubborn", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Running: true},
			f: func(context.Context, *Target, Kernel) error { return nil }}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		var nd *NotDownError
		if !errors.As(a.err, &nd) || nd.BootID != idOld || a.took > 121*time.Second {
			t.Fatalf("after %s: %v", a.took, a.err)
		}
	})
}

// The answers of a machine that goes down (a05): only the seventh counts.
func TestRebootProbeAnswers(t *testing.T) {
	answers := []struct {
		exit int
		out  string
	}{
		{0, idOld}, {255, ""}, {1, ""}, {0, ""},
		{0, "The system is going down for reboot NOW!\n" + idOld}, {1, ""}, {0, idNew},
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		n := 0
		tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Running: true}, f: func(context.Context, *Target, Kernel) error {
			m.set(func(m *machine) {
				m.answer = func() (Exit, string, error) {
					a := answers[min(n, len(answers)-1)]
					n++
					if n == len(answers) {
						m.id = idNew
					}
					return Exit{Code: a.exit}, a.out + "\n", nil
				}
			})
			return nil
		}}}
		var a attempt
		a.run(t.Context(), tg, Kernel{Name: "k"})
		if n != len(answers) || a.err != nil || a.rec.BootID != idNew {
			t.Errorf("decided after %d answers, want %d (%v)", n, len(answers), a.err)
		}
	})
}

func TestBootNone(t *testing.T) {
	m := newMachine()
	tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{OnlyOnce: true},
		f: func(context.Context, *Target, Kernel) error { return nil }}}
	for _, c := range []struct {
		known  string
		proven bool
	}{{"", false}, {idOld, false}, {idNew, true}} {
		_, rec, err := Boot(t.Context(), tg, Kernel{Name: "k"}, BootLog{Known: c.known})
		if err != nil || rec.Proven != c.proven || (rec.Unproven == "") != c.proven {
			t.Errorf("known %q: %v %+v", c.known, err, rec)
		}
	}
}

func TestBootInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.up = false
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		tg := &Target{Name: "x", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{Cmdline: true},
			f: func(context.Context, *Target, Kernel) error { return nil }}}
		var a attempt
		a.run(ctx, tg, Kernel{Name: "k"})
		if !errors.Is(a.err, context.DeadlineExceeded) {
			t.Fatal(a.err)
		}
	})
}

func TestWrongArchIsConfiguration(t *testing.T) {
	m := newMachine()
	tg := &Target{Name: "x", Arch: "mips", Dial: m.dial, Boot: &bootFunc{traits: BootTraits{OnlyOnce: true},
		f: func(context.Context, *Target, Kernel) error { return nil }}}
	_, _, err := Boot(t.Context(), tg, Kernel{Name: "k"}, BootLog{})
	var be *BootError
	if err == nil || errors.As(err, &be) || !strings.Contains(err.Error(), `"mips"`) {
		t.Fatal(err)
	}
}
