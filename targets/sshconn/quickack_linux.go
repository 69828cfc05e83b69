package sshconn

import (
	"net"

	"golang.org/x/sys/unix"
)

// quickAck returns a function that re-arms TCP_QUICKACK on c; the kernel drops
// the option after a few segments. It is nil when c is not a TCP connection.
func quickAck(c net.Conn) func() {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	return func() {
		// A failure costs 40 ms and nothing else.
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
		})
	}
}
