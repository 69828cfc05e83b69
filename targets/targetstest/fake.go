package targetstest

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

// Fault is where a fake server stops behaving.
type Fault string

// Faults of a fake server.
const (
	None         Fault = ""
	SilentAccept Fault = "accepts and says nothing"
	SilentBanner Fault = "says its version and nothing more"
	Garbage      Fault = "is a web server"
	CloseAtOnce  Fault = "closes at once"
	SilentAuth   Fault = "never answers a log-in"
	SilentOpen   Fault = "never answers the opening of a session"
	SilentExec   Fault = "never answers the request for a command"
	NoStatus     Fault = "closes the session without an exit status"
	OpenRefused  Fault = "refuses every session"
	HalfBanner   Fault = "says half of its version and nothing more"
	EndlessLines Fault = "says lines without end before its version"
	NeverStatus  Fault = "ends a command's output and never says how it ended"
	NeverCloses  Fault = "says how a command ended and never closes the session"
	NeverEnds    Fault = "says how a command ended and ends nothing"
	SilentSFTP   Fault = "starts SFTP and never answers"
	DeadLinkSFTP Fault = "starts SFTP and hears nothing from then on"
)

// FakeOptions of a fake server.
type FakeOptions struct {
	Fault    Fault
	Shell    string // runs each command line as SHELL -c LINE; "" = /bin/sh
	Password string // accepted as a password; "" = none
	Question bool   // the password is only accepted keyboard-interactively
	Config   ssh.Config
	// Mute is after how many writes of its own the server is silent for ever; 0 =
	// never. The first is its version, then come the packets of the handshake.
	Mute int
}

// Fake is an SSH server inside the test, on 127.0.0.1.
type Fake struct {
	SSH targets.SSH

	o      FakeOptions
	config *ssh.ServerConfig
	l      net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	frozen chan struct{} // closed by Freeze
	ended  chan struct{}
}

// NewFake starts a fake server that lives as long as the test.
func NewFake(t testing.TB, o FakeOptions) *Fake {
	t.Helper()
	dir := t.TempDir()
	client := KeyFile(t, filepath.Join(dir, "client"))
	hostLine := KeyFile(t, filepath.Join(dir, "host"))
	private, err := os.ReadFile(filepath.Join(dir, "host"))
	if err != nil {
		t.Fatal(err)
	}
	hostKey, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if o.Shell == "" {
		o.Shell = "/bin/sh"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &Fake{o: o, l: l, frozen: make(chan struct{}), ended: make(chan struct{})}
	f.SSH = targets.SSH{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "tester", ConfigFile: "none",
		Key: filepath.Join(dir, "client"), HostKeys: []string{hostLine}}
	f.config = serverConfig(o, client)
	f.config.AddHostKey(hostKey)
	f.wg.Go(f.accept)
	t.Cleanup(func() {
		close(f.ended)
		l.Close()
		f.Cut()
		f.wg.Wait()
	})
	return f
}

func serverConfig(o FakeOptions, client string) *ssh.ServerConfig {
	denied := errors.New("denied")
	c := &ssh.ServerConfig{Config: o.Config}
	switch {
	case o.Password != "" && o.Question:
		c.KeyboardInteractiveCallback = func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			a, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil || len(a) != 1 || a[0] != o.Password {
				return nil, denied
			}
			return nil, nil
		}
	case o.Password != "":
		c.PasswordCallback = func(_ ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) {
			if string(p) != o.Password {
				return nil, denied
			}
			return nil, nil
		}
	default:
		c.PublicKeyCallback = func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if got := string(ssh.MarshalAuthorizedKey(k)); got != client+"\n" {
				return nil, denied
			}
			return nil, nil
		}
	}
	return c
}

// Cut ends every connection as a pulled cable followed by a reset does.
func (f *Fake) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

// Freeze makes the server deaf and dumb on its open connections, which stay open.
func (f *Fake) Freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.frozen:
	default:
		close(f.frozen)
	}
}

func (f *Fake) accept() {
	for {
		c, err := f.l.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns = append(f.conns, c)
		f.mu.Unlock()
		f.wg.Go(func() {
			defer c.Close()
			f.serve(&freezing{Conn: c, f: f, left: f.o.Mute})
		})
	}
}

// freezing stops reading and writing once its server is frozen.
type freezing struct {
	net.Conn
	f    *Fake
	left int // writes until it is mute, 0 = no end to them
}

func (c *freezing) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.f.frozen:
		<-c.f.ended
		return 0, io.EOF
	default:
		return n, err
	}
}

func (c *freezing) Write(p []byte) (int, error) {
	select {
	case <-c.f.frozen:
		<-c.f.ended
		return 0, io.EOF
	default:
	}
	switch c.left { // one goroutine writes at a time
	case 0:
	case -1:
		return len(p), nil
	case 1:
		c.left = -1
	default:
		c.left--
	}
	return c.Conn.Write(p)
}

func (f *Fake) serve(c net.Conn) {
	switch f.o.Fault {
	case SilentAccept:
		<-f.ended
		return
	case SilentBanner:
		_, _ = io.WriteString(c, "SSH-2.0-Silent_1.0\r\n")
		<-f.ended
		return
	case HalfBanner:
		_, _ = io.WriteString(c, "SSH-2.0-Ha")
		<-f.ended
		return
	case EndlessLines:
		f.lines(c)
		return
	case Garbage:
		_, _ = io.WriteString(c, "HTTP/1.0 400 Bad Request\r\n\r\n")
		return
	case CloseAtOnce:
		return
	}
	config := *f.config
	if f.o.Fault == SilentAuth {
		config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			<-f.ended
			return nil, errors.New("too late")
		}
	}
	s, channels, requests, err := ssh.NewServerConn(c, &config)
	if err != nil {
		return
	}
	defer s.Close()
	f.wg.Go(func() { ssh.DiscardRequests(requests) })
	for n := range channels {
		f.channel(n)
	}
}
