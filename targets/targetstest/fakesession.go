package targetstest

import (
	"io"
	"net"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// lines sends lines that are no SSH version.
func (f *Fake) lines(c net.Conn) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-f.ended:
			return
		}
		if _, err := io.WriteString(c, "please wait\r\n"); err != nil {
			return
		}
	}
}

// linger keeps a session whose command is over as its fault asks.
func (f *Fake) linger(ch ssh.Channel) {
	switch f.o.Fault {
	case NeverStatus, NeverCloses:
		_ = ch.CloseWrite()
		<-f.ended
	case NeverEnds:
		<-f.ended
	}
}

func (f *Fake) channel(n ssh.NewChannel) {
	switch {
	case f.o.Fault == SilentOpen:
		return
	case f.o.Fault == OpenRefused:
		_ = n.Reject(ssh.ConnectionFailed, "open failed")
		return
	case n.ChannelType() != "session":
		_ = n.Reject(ssh.Prohibited, "open failed")
		return
	}
	ch, requests, err := n.Accept()
	if err != nil {
		return
	}
	f.wg.Go(func() {
		defer ch.Close()
		for r := range requests {
			switch {
			case f.o.Fault == SilentExec:
				<-f.ended
				return
			case r.Type == "exec":
				_ = r.Reply(true, nil)
				f.run(ch, r.Payload)
				f.linger(ch)
				return
			case r.Type == "subsystem" && f.o.Fault == SilentSFTP:
				_ = r.Reply(true, nil)
				<-f.ended
				return
			case r.Type == "subsystem" && f.o.Fault == DeadLinkSFTP:
				_ = r.Reply(true, nil)
				f.Freeze()
				return
			default:
				_ = r.Reply(false, nil)
			}
		}
	})
}

// run runs a command line and reports how it ended.
func (f *Fake) run(ch ssh.Channel, payload []byte) {
	var m struct{ Line string }
	if ssh.Unmarshal(payload, &m) != nil {
		return
	}
	cmd := exec.Command(f.o.Shell, "-c", m.Line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	if cmd.Start() != nil {
		return
	}
	done := make(chan struct{})
	f.wg.Go(func() {
		select {
		case <-f.ended:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		case <-done:
		}
	})
	_ = cmd.Wait()
	close(done)
	if f.o.Fault != NoStatus && f.o.Fault != NeverStatus {
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(cmd.ProcessState.ExitCode())}))
	}
}
