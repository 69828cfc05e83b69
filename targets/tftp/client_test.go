package tftp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"
)

// client is a TFTP client in the tests' hands.
type client struct {
	t    testing.TB
	conn *net.UDPConn
	to   netip.AddrPort // of the server
	peer netip.AddrPort // of the transfer
	buf  []byte
}

func dial(t testing.TB, to netip.AddrPort) *client {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback(to), 0)))
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, conn: conn, to: to, buf: make([]byte, 1<<16)}
}

func loopback(to netip.AddrPort) netip.Addr {
	if to.Addr().Is4() {
		return netip.MustParseAddr("127.0.0.1")
	}
	return netip.IPv6Loopback()
}

func (c *client) close() { _ = c.conn.Close() }

func (c *client) write(to netip.AddrPort, b []byte) {
	if _, err := c.conn.WriteToUDPAddrPort(b, to); err != nil {
		c.t.Error(err)
	}
}

func (c *client) ask(name string, options ...option) {
	b := append([]byte{0, opRead}, name...)
	b = append(b, "\x00OCTET\x00"...)
	for _, o := range options {
		b = append(append(append(append(b, o.name...), 0), o.value...), 0)
	}
	c.write(c.to, b)
}

func (c *client) ack(n int) {
	c.write(c.peer, binary.BigEndian.AppendUint16([]byte{0, opAck}, uint16(n)))
}

// next gives the next packet; an error packet is an error.
func (c *client) next() ([]byte, netip.AddrPort, error) {
	return c.nextWithin(20 * time.Second)
}

func (c *client) nextWithin(d time.Duration) ([]byte, netip.AddrPort, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		return nil, netip.AddrPort{}, err
	}
	n, from, err := c.conn.ReadFromUDPAddrPort(c.buf)
	if err != nil {
		return nil, from, err
	}
	b := c.buf[:n]
	if binary.BigEndian.Uint16(b) == opError {
		code, text := readError(b)
		return nil, unmap(from), fmt.Errorf("error %d: %s", code, text)
	}
	return b, unmap(from), nil
}

// get fetches a file as RFC 1350, 2347 and 7440 have it: it answers each window's
// last block, and a gap with what it has.
func (c *client) get(name string, options ...option) ([]byte, error) {
	c.ask(name, options...)
	block, window := plainBlock, 1
	var got []byte
	have, unanswered := 0, 0
	for {
		b, from, err := c.nextWithin(time.Second)
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			if have == 0 && !c.peer.IsValid() {
				c.ask(name, options...)
			} else {
				c.ack(have)
			}
			continue
		}
		if err != nil {
			return got, err
		}
		c.peer = from
		if binary.BigEndian.Uint16(b) == opOack {
			r, err := parseRequest(append([]byte("\x00\x01x\x00octet\x00"), b[2:]...))
			if err != nil {
				return nil, err
			}
			for _, o := range r.options {
				v, _ := strconv.Atoi(o.value)
				switch o.name {
				case "blksize":
					block = v
				case "windowsize":
					window = v
				}
			}
			c.ack(0)
			continue
		}
		switch n := binary.BigEndian.Uint16(b[2:]); {
		case n == uint16(have+1):
			have++
			unanswered++
			got = append(got, b[4:]...)
			if last := len(b) < block+4; last || unanswered == window {
				c.ack(have)
				unanswered = 0
				if last {
					return got, nil
				}
			}
		case n-uint16(have) < 1<<15: // a gap, or the last one again
			c.ack(have)
			unanswered = 0
		}
	}
}
