package targetstest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// down ends the system: its links, its processes and its memory.
func (m *SimMachine) down() {
	m.mu.Lock()
	system, pid, listener := m.system, m.init, m.listener
	m.system, m.listener, m.init, m.kernel = nil, nil, 0, ""
	for c := range m.conns {
		c.Close()
	}
	m.mu.Unlock()
	if listener != nil {
		listener.Close()
	}
	if system != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		_ = system.Wait()
	}
}

// start boots a kernel.
func (m *SimMachine) start(kernel, nonce string) error {
	m.booter.Lock()
	defer m.booter.Unlock()
	m.down()
	m.mu.Lock()
	m.boots[kernel]++
	m.gone = m.gone || kernel == m.goneFrom
	n, gone := m.boots[kernel], m.gone
	panics := false
	for _, p := range m.panics[kernel] {
		panics = panics || p == n
	}
	m.mu.Unlock()
	if gone || panics {
		return nil // it was asked for; nobody answers
	}
	if err := m.prepare(kernel, nonce); err != nil {
		return err
	}
	argv := []string{"unshare", "-m", "-p", "-f", "--kill-child", "--propagation", "private", "/bin/sh", "-c", simInit, "init", m.dir, os.TempDir()}
	if os.Geteuid() != 0 {
		argv = append([]string{"unshare", "-r"}, argv[1:]...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // for the death signal: the thread must not end before the process
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, bad := strconv.Atoi(strings.TrimSpace(line))
	if err = errors.Join(err, bad); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("machine %s does not come up: %w: %s", m.Name, err, &said)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", m.SSH.Port))
	m.mu.Lock()
	m.system, m.init, m.kernel, m.listener = cmd, pid, kernel, l
	m.mu.Unlock()
	if err == nil {
		m.wg.Go(func() { m.accept(l) })
	}
	return err
}

// prepare writes what the system will say of itself.
func (m *SimMachine) prepare(kernel, nonce string) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	files := map[string]string{
		"boot/boot_id": fmt.Sprintf("%x-%x-%x-%x-%x\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		"boot/cmdline": strings.TrimSpace("root=/dev/sim "+nonce) + "\n",
		"boot/uptime":  "0.50 0.50\n",
		"boot/release": simRelease(kernel) + "\n",
	}
	ext := m.file("boot/sys/sched_ext")
	if err := os.RemoveAll(ext); err != nil {
		return err
	}
	if kernel == SimOther {
		if err := os.MkdirAll(ext+"/root", 0o755); err != nil {
			return err
		}
		files["boot/sys/sched_ext/state"] = "enabled\n"
		files["boot/sys/sched_ext/root/ops"] = "sim\n"
	}
	for name, text := range files {
		if err := os.WriteFile(m.file(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (m *SimMachine) hcl() string {
	return fmt.Sprintf(`
target %q {
  arch       = %q
  known_good = kernel.%s
  ssh {
    host      = "127.0.0.1"
    port      = %d
    user      = "root"
    key       = %q
    host_keys = [%q]
    config    = "none"
  }
  boot "command" {
    command = [%q]
    cmdline = true
    image   = true
  }
  timeouts {
    boot = "10s"
    down = "10s"
    exec = "20s"
  }
}
`, m.Name, runtime.GOARCH, SimGood, m.SSH.Port, m.SSH.Key, m.SSH.HostKeys[0], m.file("boot.sh"))
}
