package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// Netconsole receives what a target's kernel sends by its netconsole module
// (kernel Documentation/networking/netconsole.rst), plain or extended. It begins
// only when the module is loaded and is read-only; it helps where a target has
// no serial port.
type Netconsole struct {
	Listen string `hcl:"listen,optional" doc:"address:port to receive UDP on (default \":6666\"); every target needs a port of its own"`
	From   string `hcl:"from,optional" doc:"name or address of the target; others' packets are dropped (default: everybody's are taken)"`
}

// defaultListen is the port of netconsole.rst's examples, on all addresses.
const defaultListen = ":6666"

// Check refuses an address without a port.
func (c *Netconsole) Check() error {
	if c.Listen == "" {
		return nil
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || !isPort(port) {
		return fmt.Errorf("listen = %q: want address:port or :port, a port from 1 to 65535", c.Listen)
	}
	return nil
}

// Open begins to listen.
func (c *Netconsole) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	listen := c.Listen
	if listen == "" {
		listen = defaultListen
	}
	n := &netLine{}
	if c.From != "" {
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", c.From)
		if err != nil {
			return nil, fmt.Errorf("netconsole: from: %w", err)
		}
		n.from = addrs
	}
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, "udp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("netconsole: %w: another console, or a syslog server, receives there", err)
	}
	if err != nil {
		return nil, fmt.Errorf("netconsole: %w", err)
	}
	n.conn = pc.(*net.UDPConn)        // of the network "udp"
	_ = n.conn.SetReadBuffer(1 << 20) // a panic comes as one burst; less room is not fatal
	return n, nil
}

// netLine is an open receiver.
type netLine struct {
	conn    *net.UDPConn
	from    []netip.Addr // empty: everybody
	packet  [1 << 16]byte
	records netRecords
	out     []byte // not read yet
}

// Read returns whole lines. It waits holdTime for what a network delivers in
// another order.
func (n *netLine) Read(p []byte) (int, error) {
	for len(n.out) == 0 {
		_ = n.conn.SetReadDeadline(n.records.due()) // of an open socket: cannot fail
		size, from, err := n.conn.ReadFromUDPAddrPort(n.packet[:])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			n.out = n.records.expire(n.out, time.Now())
		case errors.Is(err, syscall.ECONNREFUSED): // an ICMP answer to nothing of ours
		case err != nil:
			return 0, err
		case n.wanted(from.Addr().Unmap()):
			n.out = n.records.add(n.out, n.packet[:size], time.Now())
		}
	}
	m := copy(p, n.out)
	n.out = n.out[m:]
	return m, nil
}

func (n *netLine) wanted(a netip.Addr) bool {
	for _, f := range n.from {
		if f.Unmap() == a.WithZone("") {
			return true
		}
	}
	return len(n.from) == 0
}

// Write refuses: nothing listens on the target.
func (n *netLine) Write([]byte) (int, error) {
	return 0, errors.New("netconsole is read-only: this target needs a serial console for what is typed")
}

// Close ends a waiting read.
func (n *netLine) Close() error { return n.conn.Close() }
