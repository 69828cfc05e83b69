package targetstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Machine is a QEMU process that behaves like hardware with a boot loader of its
// own: its serial line is a TCP port that outlives it, its supply is switched,
// its disk stays. It is a targets.Power and a targets.Console itself, and it
// offers both to a configuration by Address and URL.
type Machine struct {
	Address string // of the serial line, raw: for console "tcp"
	URL     string // URL/on and URL/off switch the supply: for power "http"

	t     testing.TB
	argv  []string
	qmp   string
	inner net.Listener // where QEMU connects its serial line

	power sync.Mutex
	proc  *exec.Cmd
	ended chan struct{}

	mu      sync.Mutex
	uart    net.Conn
	clients map[net.Conn]bool
	said    []byte // everything the line said
	Offs    int    // times the supply was switched off
}

// NewMachine prepares a machine that is off. argv is the QEMU program and its
// arguments, without serial line, monitor and display.
func NewMachine(t testing.TB, argv ...string) *Machine {
	t.Helper()
	m := &Machine{t: t, qmp: filepath.Join(t.TempDir(), "qmp"), clients: map[net.Conn]bool{}}
	outer := listen(t)
	m.inner = listen(t)
	m.Address = outer.Addr().String()
	port := m.inner.Addr().(*net.TCPAddr).Port
	m.argv = append([]string{Tool(t, argv[0])}, argv[1:]...)
	m.argv = append(m.argv, "-nodefaults", "-display", "none", "-no-user-config",
		"-chardev", fmt.Sprintf("socket,id=ser,host=127.0.0.1,port=%d,server=off", port), "-serial", "chardev:ser",
		"-qmp", "unix:"+m.qmp+",server=on,wait=off")
	web := httptest.NewServer(http.HandlerFunc(m.serveHTTP))
	m.URL = web.URL
	var wg sync.WaitGroup
	wg.Go(func() { m.accept(outer, &wg, m.client) })
	wg.Go(func() { m.accept(m.inner, &wg, m.serial) })
	t.Cleanup(func() {
		if err := m.Set(context.Background(), false); err != nil {
			t.Error(err)
		}
		web.Close()
		outer.Close()
		m.inner.Close()
		m.mu.Lock()
		for c := range m.clients {
			c.Close()
		}
		m.mu.Unlock()
		wg.Wait()
	})
	return m
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (m *Machine) accept(l net.Listener, wg *sync.WaitGroup, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() { defer c.Close(); serve(c) })
	}
}

// serial is QEMU's end of the line.
func (m *Machine) serial(c net.Conn) {
	m.mu.Lock()
	m.uart = c
	m.mu.Unlock()
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		m.mu.Lock()
		m.said = append(m.said, buf[:n]...)
		for to := range m.clients {
			_ = to.SetWriteDeadline(time.Now().Add(time.Second))
			if _, e := to.Write(buf[:n]); e != nil {
				to.Close()
			}
		}
		m.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// client is somebody at the console server.
func (m *Machine) client(c net.Conn) {
	m.mu.Lock()
	m.clients[c] = true
	m.mu.Unlock()
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		m.mu.Lock()
		uart := m.uart
		if err != nil {
			delete(m.clients, c)
		}
		m.mu.Unlock()
		if err != nil {
			return
		}
		if uart != nil {
			_, _ = uart.Write(buf[:n]) // a machine that is off loses it, as a real one
		}
	}
}

// Said is everything that the serial line has said so far.
func (m *Machine) Said() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.said)
}

// Open connects to the console.
func (m *Machine) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", m.Address)
}

// Set switches the supply.
func (m *Machine) Set(_ context.Context, on bool) error {
	m.power.Lock()
	defer m.power.Unlock()
	running := m.proc != nil
	if running {
		select {
		case <-m.ended: // it ended by itself
			running, m.proc = false, nil
		default:
		}
	}
	switch {
	case on == running:
		return nil
	case !on:
		m.mu.Lock()
		m.Offs++
		m.mu.Unlock()
		if err := m.proc.Process.Kill(); err != nil {
			return err
		}
		<-m.ended
		m.proc = nil
		return nil
	}
	c := exec.Command(m.argv[0], m.argv[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	m.ended = make(chan struct{})
	started := make(chan error)
	go func(ended chan struct{}) { // the death signal belongs to this thread
		runtime.LockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			_ = c.Wait() // how it ended does not matter
		}
		close(ended)
	}(m.ended)
	if err := <-started; err != nil {
		return err
	}
	m.proc = c
	return nil
}

func (m *Machine) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if err := m.Set(r.Context(), r.URL.Path == "/on"); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Reset presses the reset button.
func (m *Machine) Reset() error { return m.monitor(`{"execute":"system_reset"}`) }

// Break sends a serial break to the machine.
func (m *Machine) Break() error {
	return m.monitor(`{"execute":"chardev-send-break","arguments":{"id":"ser"}}`)
}

// monitor gives QEMU one command.
func (m *Machine) monitor(command string) error {
	c, err := net.DialTimeout("unix", m.qmp, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, `{"execute":"qmp_capabilities"}`+command); err != nil {
		return err
	}
	var said []byte
	buf := make([]byte, 4096)
	for { // the greeting and two answers, in lines
		n, err := c.Read(buf)
		said = append(said, buf[:n]...)
		lines := 0
		for _, b := range said {
			if b == '\n' {
				lines++
			}
		}
		if lines >= 3 {
			return nil
		}
		if err != nil {
			return errors.Join(errors.New("QMP: "+string(said)), err)
		}
	}
}
