package sshconn

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// link is the byte stream under one SSH connection. It keeps the first bytes
// that the server sent, which explain a failed handshake, and on Linux asks for
// quick acknowledgements until the first command: sshd's small packets of the
// log-in otherwise meet a 40 ms delayed acknowledgement.
type link struct {
	net.Conn
	quick func() // re-arms quick acknowledgement; nil where there is none
	armed atomic.Bool

	opened time.Time
	key    ssh.PublicKey // the host key that was accepted, nil before

	mu   sync.Mutex
	head []byte
	got  int64 // bytes from the server
}

const headSize = 512

func newLink(c net.Conn) *link {
	l := &link{Conn: c, quick: quickAck(c), opened: time.Now()}
	if l.quick != nil {
		l.armed.Store(true)
		l.quick()
	}
	return l
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if l.armed.Load() {
		l.quick()
	}
	if n > 0 {
		l.keep(p[:n])
	}
	return n, err
}

func (l *link) keep(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got += int64(len(p))
	if room := headSize - len(l.head); room > 0 {
		l.head = append(l.head, p[:min(room, len(p))]...)
	}
}

// begin is what the server sent first.
func (l *link) begin() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.head)
}

// received is how many bytes the server sent.
func (l *link) received() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}

// settle ends quick acknowledgement: from now on nothing waits for it.
func (l *link) settle() { l.armed.Store(false) }
