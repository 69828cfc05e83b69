package targetstest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// Panics makes the given starts of a kernel, counted from 1 since the last
// Forget, end before SSH answers.
func (m *SimMachine) Panics(kernel string, starts ...int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.panics = map[string][]int{kernel: starts}
}

// CutIn cuts the link while the n-th trial from now runs.
func (m *SimMachine) CutIn(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cutIn = n
}

// Gone takes the machine away for good.
func (m *SimMachine) Gone() {
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	m.down()
}

// GoneFrom takes the machine away for good at the first start of a kernel.
func (m *SimMachine) GoneFrom(kernel string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.goneFrom = kernel
}

// Back is the end of GoneFrom: the machine is there again, in its known-good kernel.
func (m *SimMachine) Back() error {
	m.mu.Lock()
	m.gone, m.goneFrom = false, ""
	m.mu.Unlock()
	return m.start(SimGood, "")
}

// Kernel is the kernel that runs, "" while the machine is down.
func (m *SimMachine) Kernel() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kernel
}

func (m *SimMachine) pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.init
}

// Processes are those on the machine that are not its own.
func (m *SimMachine) Processes() []string {
	first := m.pid()
	if first == 0 {
		return nil
	}
	want, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first))
	if err != nil {
		return nil // it went down meanwhile
	}
	var found []string
	spaces, _ := filepath.Glob("/proc/[0-9]*/ns/pid") // the pattern is right
	for _, s := range spaces {
		pid, _ := strconv.Atoi(strings.Split(s, "/")[2])
		if now, err := os.Readlink(s); err != nil || now != want || pid == first {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // "" once it has ended
		if text := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")); text != "" && text != "sleep infinity" {
			found = append(found, fmt.Sprintf("%d %.200s", pid, text))
		}
	}
	return found
}

// connection is one SSH connection; one to a machine that is down is closed.
func (m *SimMachine) connection(c net.Conn) {
	defer c.Close()
	m.mu.Lock()
	up := m.kernel != ""
	m.conns[c] = true
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.conns, c)
		m.mu.Unlock()
	}()
	if !up {
		return
	}
	s, channels, requests, err := ssh.NewServerConn(c, m.config)
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer s.Close()
	wg.Go(func() {
		for r := range requests {
			_ = r.Reply(false, nil) // keepalives among them
		}
	})
	for n := range channels {
		if n.ChannelType() != "session" {
			_ = n.Reject(ssh.Prohibited, "open failed")
			continue
		}
		ch, rs, err := n.Accept()
		if err != nil {
			continue
		}
		m.wg.Go(func() { m.session(ch, rs) })
	}
}

// session waits for the command of a channel; there is no SFTP.
func (m *SimMachine) session(ch ssh.Channel, requests <-chan *ssh.Request) {
	defer ch.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		var line struct{ Line string }
		ok := ssh.Unmarshal(r.Payload, &line) == nil
		_ = r.Reply(ok, nil)
		if ok {
			m.wg.Go(func() { ssh.DiscardRequests(requests) })
			m.exec(ch, line.Line)
		}
		return
	}
}

// exec runs a command line as sshd does without a terminal: when the link goes,
// the command goes on with closed pipes.
func (m *SimMachine) exec(ch ssh.Channel, line string) {
	m.cutting(line)
	argv := []string{"-t", strconv.Itoa(m.pid()), "-m", "-p", "-w", "/bin/sh", "-c", line}
	if os.Geteuid() != 0 {
		argv = append([]string{"-U", "--preserve-credentials"}, argv...)
	}
	cmd := exec.Command("nsenter", argv...)
	cmd.Env = []string{"PATH=/mnt/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/mnt/home", "USER=root",
		"SHELL=/bin/sh", "SSH_CONNECTION=127.0.0.1 1 127.0.0.1 22"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	errs, err3 := cmd.StderrPipe()
	if err1 != nil || err2 != nil || err3 != nil || cmd.Start() != nil {
		return
	}
	m.wg.Go(func() {
		_, _ = io.Copy(in, ch)
		in.Close()
	})
	var wg sync.WaitGroup
	pump := func(to io.Writer, from io.ReadCloser) {
		_, err := io.Copy(to, from)
		if err != nil {
			from.Close() // the link is cut: the command gets SIGPIPE
		}
	}
	wg.Go(func() { pump(ch, out) })
	wg.Go(func() { pump(ch.Stderr(), errs) })
	state, err := cmd.Process.Wait()
	if err == nil {
		code := state.ExitCode()
		if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			code = 128 + int(ws.Signal())
		}
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
	}
	wg.Wait()
	in.Close()
	out.Close()
	errs.Close()
}

// cutting cuts the link a moment after the trial whose turn it is began.
func (m *SimMachine) cutting(line string) {
	if !strings.Contains(line, "kernsweep-agent") || !strings.Contains(line, "-keep") || !strings.Contains(line, "payload") {
		return
	}
	m.mu.Lock()
	m.cutIn--
	now := m.cutIn == 0
	m.cutIn = max(0, m.cutIn)
	m.mu.Unlock()
	if !now {
		return
	}
	time.AfterFunc(50*time.Millisecond, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for c := range m.conns {
			c.Close()
		}
	})
}
