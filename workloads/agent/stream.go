package agent

import (
	"strconv"
	"strings"
	"syscall"
	"time"
)

// streamTask sends or receives over TCP, in a process of its own, and gives the
// values bytes and seconds as this end saw them, and peer_bytes:
// stream -listen PORT -once
// stream -connect ADDRESS:PORT -direction send|receive -duration D [-parallel N]
func streamTask(j *Job, args []string) error {
	listen, connect, direction, duration, parallel := "", "", "", "", "1"
	once := indexOf(args, "-once")
	if once >= 0 {
		args = append(append([]string(nil), args[:once]...), args[once+1:]...)
	}
	rest, err := taskOptions(args, map[string]*string{"-listen": &listen, "-connect": &connect,
		"-direction": &direction, "-duration": &duration, "-parallel": &parallel})
	if err != nil {
		return err
	}
	argv := []string{"streamserver", listen}
	switch {
	case len(rest) > 0 || (listen == "") == (connect == ""):
		return failure("stream: give either -listen or -connect, and nothing after the options")
	case listen != "" && once < 0:
		return failure("stream: a server serves one transfer: say -once")
	case connect != "":
		d, err := positive(duration)
		if err != nil || d <= 0 || d > time.Hour*24 || (direction != "send" && direction != "receive") {
			return failure("stream: -connect needs -direction send or receive, and a -duration")
		}
		argv = []string{"streamclient", connect, direction, itoa(int64(d / time.Millisecond)), parallel}
	}
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return failure("pipe: " + err.Error())
	}
	defer syscall.Close(fds[0])
	p, err := j.Start(Proc{Name: "stream", Self: true, Argv: argv, Env: []string{"GOGC=off"}, Fds: []int{fds[1]}})
	syscall.Close(fds[1])
	if err != nil {
		return err
	}
	t := p.Wait()
	b := make([]byte, 128)
	n, _ := syscall.Read(fds[0], b)
	if f := strings.Fields(string(b[:max(n, 0)])); len(f) == 3 {
		j.Value("bytes", f[0], "B")
		j.Value("seconds", f[1], "s")
		j.Value("peer_bytes", f[2], "B")
	}
	return Failed(t)
}

// A transfer is N connections. On each the client says first what it wants; the
// sender then sends for that time and closes its half, and the receiver answers
// with what it counted.
const (
	helloMagic  = "kswpstr1"
	helloBytes  = 16 // magic, direction, 1 unused, connections (2), milliseconds (4); most significant byte first
	countBytes  = 8
	streamBlock = 64 << 10
	mostStreams = 256
)

// flow is what happened on one connection.
type flow struct {
	bytes, peer, end int64 // counted here; by the peer; when it was over
	err              error
}

// runFlows runs one side of all connections at once and writes the totals to
// descriptor 3. The seconds run from start to the end of the last one.
func runFlows(conns []int, sending bool, milliseconds int64) int {
	start := Now()
	done := make(chan flow)
	for _, fd := range conns {
		go func() {
			if sending {
				done <- sendFlow(fd, start+milliseconds*1e6)
			} else {
				done <- receiveFlow(fd)
			}
		}()
	}
	var sum flow
	for range conns {
		f := <-done
		if f.err != nil {
			return childFailed("stream: " + f.err.Error())
		}
		sum.bytes, sum.peer, sum.end = sum.bytes+f.bytes, sum.peer+f.peer, max(sum.end, f.end)
	}
	if sending && sum.peer != sum.bytes {
		return childFailed("stream: " + itoa(sum.bytes) + " bytes were sent, the other end counted " + itoa(sum.peer))
	}
	ns := sum.end - start
	text := itoa(sum.bytes) + " " + strconv.FormatFloat(float64(ns)/1e9, 'f', 6, 64) + " " + itoa(sum.peer) + "\n"
	writeAll(3, []byte(text))
	return 0
}

func sendFlow(fd int, until int64) (f flow) {
	block := make([]byte, streamBlock)
	for i := range block {
		block[i] = byte(i*7 + i>>8)
	}
	for f.end = Now(); f.end < until; f.end = Now() {
		n, err := syscall.Write(fd, block)
		if err != nil && err != syscall.EINTR {
			f.err = failure("sending: " + err.Error())
			return f
		}
		f.bytes += int64(max(n, 0))
	}
	if err := syscall.Shutdown(fd, syscall.SHUT_WR); err != nil {
		f.err = failure("shutdown: " + err.Error())
		return f
	}
	b := make([]byte, countBytes)
	if !readFull(fd, b) {
		f.err = failure("the receiver went away before it told what it got")
		return f
	}
	for _, c := range b {
		f.peer = f.peer<<8 | int64(c)
	}
	return f
}

func receiveFlow(fd int) (f flow) {
	block := make([]byte, streamBlock)
	for {
		n, err := syscall.Read(fd, block)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			f.err = failure("receiving: " + err.Error())
			return f
		}
		f.end = Now()
		if n == 0 {
			break
		}
		f.bytes += int64(n)
	}
	f.peer = f.bytes // the sender compares, and fails when they differ
	var b [countBytes]byte
	for i := range b {
		b[i] = byte(f.bytes >> (8 * (countBytes - 1 - i)))
	}
	if n, err := writeAll(fd, b[:]); n != len(b) {
		f.err = failure("answering the sender: " + err.Error())
	}
	return f
}

func readFull(fd int, b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// streamClientChild is ADDRESS:PORT send|receive MILLISECONDS CONNECTIONS.
func streamClientChild(args []string) int {
	if len(args) != 4 {
		return childFailed("stream: needs ADDRESS:PORT DIRECTION MILLISECONDS CONNECTIONS")
	}
	n, ok := ints(args[2:], 2)
	if !ok || n[0] < 1 || n[1] < 1 || n[1] > mostStreams {
		return childFailed("stream: between 1 and " + itoa(mostStreams) + " connections, for at least 1 ms")
	}
	h := hello{send: args[1] == "send", streams: int(n[1]), milliseconds: n[0]}
	addr, family, err := parseAddr(args[0])
	if err != nil {
		return childFailed("stream: " + err.Error())
	}
	var conns []int
	for range h.streams {
		fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			err = syscall.Connect(fd, addr)
		}
		if err != nil {
			return childFailed("stream: " + args[0] + ": " + err.Error() + " (is the server up, and no firewall between?)")
		}
		if _, err := writeAll(fd, h.bytes()); err != nil {
			return childFailed("stream: " + args[0] + ": " + err.Error())
		}
		conns = append(conns, fd)
	}
	return runFlows(conns, h.send, h.milliseconds)
}

// streamServerChild is PORT.
func streamServerChild(args []string) int {
	port, ok := ints(args, 1)
	if !ok || port[0] < 1 || port[0] > 65535 {
		return childFailed("stream: -listen needs a port between 1 and 65535")
	}
	l, err := listenOn(int(port[0]))
	if err != nil {
		return childFailed("stream: port " + args[0] + ": " + err.Error())
	}
	var conns []int
	var first hello
	for len(conns) == 0 || len(conns) < first.streams {
		fd, _, err := syscall.Accept4(l, syscall.SOCK_CLOEXEC)
		if err == syscall.EINTR || err == syscall.ECONNABORTED {
			continue
		}
		if err != nil {
			return childFailed("stream: accept: " + err.Error())
		}
		h, ok := greet(fd)
		if !ok || len(conns) > 0 && h != first {
			syscall.Close(fd) // not one of ours
			continue
		}
		first = h
		conns = append(conns, fd)
	}
	syscall.Close(l)
	return runFlows(conns, !first.send, first.milliseconds)
}

// greet reads what the client wants, for at most 5 s.
func greet(fd int) (h hello, ok bool) {
	b := make([]byte, helloBytes)
	syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 5})
	if !readFull(fd, b) {
		return h, false
	}
	syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{})
	return parseHello(b)
}

// listenOn listens for IPv6 and IPv4, or for IPv4 where the kernel has no IPv6.
func listenOn(port int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 0)
		if err = bindListen(fd, &syscall.SockaddrInet6{Port: port}); err == nil {
			return fd, nil
		}
		syscall.Close(fd)
		if err == syscall.EADDRINUSE {
			return -1, err
		}
	}
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, bindListen(fd, &syscall.SockaddrInet4{Port: port})
}

func bindListen(fd int, a syscall.Sockaddr) error {
	syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err := syscall.Bind(fd, a); err != nil {
		return err
	}
	return syscall.Listen(fd, mostStreams)
}
