package console

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kernsweep/targets"
)

// A console that takes nothing gives a write an error in time, whatever the
// driver; the read that waits meanwhile is not disturbed.
func TestStuckWrites(t *testing.T) {
	t.Parallel() // it waits
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		var held []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range held {
					c.Close()
				}
				return
			}
			held = append(held, c)
		}
	}()
	_, device, _ := wire(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	for name, d := range map[string]targets.Console{
		"tcp": &TCP{Address: l.Addr().String()}, "telnet": &Telnet{Address: l.Addr().String()},
		"serial":  &Serial{Device: device, lockDir: t.TempDir()},
		"command": &Command{Command: []string{"sleep", "1000"}}, "pty": &Command{Command: []string{"sleep", "1000"}, PTY: true},
	} {
		wg.Go(func() {
			if err := stuckWrite(d); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// stuckWrite writes until that fails.
func stuckWrite(d targets.Console) error {
	rw, err := d.Open(context.Background())
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := rw.Read(make([]byte, 10))
		ended <- err
	}()
	begun := time.Now()
	for err == nil {
		_, err = rw.Write(make([]byte, 1<<20))
	}
	if took := time.Since(begun); !strings.Contains(err.Error(), "took no byte for") || took > 4*writeTime {
		return fmt.Errorf("after %s: %w", took, err)
	}
	select {
	case err := <-ended:
		return fmt.Errorf("the read ended: %w", err)
	default:
	}
	err = rw.Close()
	<-ended
	return err
}

// A console server that lost its supply is found by keepalives and, with bytes
// under way, by the time-out of what was sent.
func TestDeadServerIsFound(t *testing.T) {
	rw, err := (&TCP{Address: echo(t)}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rw.Close()
	expectRead(t, rw, "hello\r\n")
	raw, err := rw.(*tcpLine).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	get := func(level, name int) (v int) {
		if e := raw.Control(func(fd uintptr) { v, err = unix.GetsockoptInt(int(fd), level, name) }); e != nil || err != nil {
			t.Fatal(e, err)
		}
		return v
	}
	idle, interval, count := get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), get(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), get(unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
	if get(unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 || idle+interval*count > int(deadTime.Seconds()) {
		t.Errorf("keepalives: idle %d s, %d every %d s", idle, count, interval)
	}
	if ms := get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); ms != int(deadTime.Milliseconds()) {
		t.Errorf("TCP_USER_TIMEOUT %d ms", ms)
	}
}
