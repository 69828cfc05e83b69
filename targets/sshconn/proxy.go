package sshconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// proxyConn is the byte stream through a ProxyCommand of the ssh configuration.
type proxyConn struct {
	io.Reader
	io.Writer
	cmd      *exec.Cmd
	problems *tail
	once     sync.Once
	command  string
	addr     proxyAddr
}

// startProxy runs h's ProxyCommand in a process group of its own.
func startProxy(h host) (net.Conn, error) {
	p := &proxyConn{cmd: exec.Command("/bin/sh", "-c", "exec "+h.proxyCommand), problems: &tail{}, command: h.proxyCommand, addr: proxyAddr(h.addr())}
	p.cmd.Stderr = p.problems
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("ProxyCommand %q: %w", h.proxyCommand, err)
	}
	p.Reader, p.Writer = out, in
	return p, nil
}

// Read adds what the command said on its way out.
func (p *proxyConn) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil {
		if said := lastLine(p.problems.String()); said != "" {
			err = fmt.Errorf("ProxyCommand %q: %s: %w", p.command, said, err)
		}
	}
	return n, err
}

// Close ends the command and all it started, and waits for it.
func (p *proxyConn) Close() error {
	p.once.Do(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // already gone is fine
		_ = p.cmd.Wait()
	})
	return nil
}

// proxyAddr is a "host:port", which the check of host keys wants to split.
type proxyAddr string

func (a proxyAddr) Network() string { return "proxy" }
func (a proxyAddr) String() string  { return string(a) }

func (p *proxyConn) LocalAddr() net.Addr  { return proxyAddr("0.0.0.0:0") }
func (p *proxyConn) RemoteAddr() net.Addr { return p.addr }

var errNoDeadline = errors.New("a ProxyCommand has no deadlines")

func (p *proxyConn) SetDeadline(time.Time) error      { return errNoDeadline }
func (p *proxyConn) SetReadDeadline(time.Time) error  { return errNoDeadline }
func (p *proxyConn) SetWriteDeadline(time.Time) error { return errNoDeadline }

// tail keeps the last bytes written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if extra := len(t.b) - tailSize; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "?")
}
