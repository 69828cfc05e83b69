package sshconn

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A machine that drops requests to connect, and then begins to answer, is found
// before the kernel repeats the first request.
func TestKnock(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	first, err := net.Dial("tcp", addr) // fills the queue: further ones are dropped
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	var opened time.Time
	time.AfterFunc(3200*time.Millisecond, func() { // the second repetition is at 3 s, the third at 7 s
		opened = time.Now()
		for { // the queue is emptied, and what comes later is taken too
			c, _, err := unix.Accept(fd)
			if err != nil {
				return
			}
			unix.Close(c)
		}
	})
	conn, err := knock(ctx, &net.Dialer{KeepAlive: -1}, addr)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(opened)
	conn.Close()
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // ends the accept
	if took > 1500*time.Millisecond {
		t.Errorf("found %s after it began to answer", took)
	}
}
