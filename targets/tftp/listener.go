package tftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// listener is the socket that requests come to. One that listens on every
// address knows to which one a request was sent: a loader drops answers that come
// from another.
type listener struct {
	conn  *net.UDPConn
	addr  netip.AddrPort
	every bool // it listens on every address
	oob   []byte
}

// resolve makes an address of host:port; no host means every IPv4 address.
func resolve(ctx context.Context, listen string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q: want host:port", listen)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q: the port is a number up to 65535", listen)
	}
	if host == "" {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(n)), nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(a.Unmap(), uint16(n)), nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	best := addrs[0]
	for _, a := range addrs { // boot loaders speak IPv4
		if a.Unmap().Is4() {
			best = a.Unmap()
			break
		}
	}
	return netip.AddrPortFrom(best, uint16(n)), nil
}

func newListener(addr netip.AddrPort) (*listener, error) {
	network := "udp4"
	if addr.Addr().Is6() {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, explain(addr, err)
	}
	l := &listener{conn: conn, every: addr.Addr().IsUnspecified(), oob: make([]byte, 128)}
	l.addr = unmap(conn.LocalAddr().(*net.UDPAddr).AddrPort())
	if l.every {
		if addr.Addr().Is4() {
			err = ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst, true)
		} else {
			err = ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst, true)
		}
		if err != nil {
			_ = conn.Close() // unused
			return nil, fmt.Errorf("listen on one address instead of %s: the system does not tell which one a request came to: %w", addr, err)
		}
	}
	return l, nil
}

// explain says what to do about a port that cannot be had.
func explain(addr netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		exe, e := os.Executable()
		if e != nil {
			exe = "kernsweep"
		}
		return fmt.Errorf("UDP port %d is the system's, and this user may not listen there: run `sudo setcap cap_net_bind_service=+ep %s`, or let a TFTP server that runs already serve the files (tftp_root): %w",
			addr.Port(), exe, err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("UDP port %d of %s is taken%s: stop that server, or let it serve the files (tftp_root): %w",
			addr.Port(), addr.Addr(), holder(addr.Port()), err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is not an address of this machine now: is its network up? tftp_listen says where to listen when the loader sees another address: %w",
			addr.Addr(), err)
	}
	return err
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// read gives a packet, where it came from, and the address it was sent to.
func (l *listener) read(buf []byte) (n int, from netip.AddrPort, to netip.Addr, err error) {
	to = l.addr.Addr()
	if !l.every {
		n, from, err = l.conn.ReadFromUDPAddrPort(buf)
		return n, unmap(from), to, err
	}
	n, oobn, _, from, err := l.conn.ReadMsgUDPAddrPort(buf, l.oob)
	if err != nil {
		return 0, from, to, err
	}
	var ip net.IP
	if to.Is4() {
		var cm ipv4.ControlMessage
		if cm.Parse(l.oob[:oobn]) == nil {
			ip = cm.Dst
		}
	} else {
		var cm ipv6.ControlMessage
		if cm.Parse(l.oob[:oobn]) == nil {
			ip = cm.Dst
		}
	}
	if a, ok := netip.AddrFromSlice(ip); ok && !a.IsMulticast() {
		to = a.Unmap()
		if to.IsLinkLocalUnicast() && to.Is6() {
			to = to.WithZone(from.Addr().Zone())
		}
	}
	return n, unmap(from), to, nil
}

// open makes the socket of one transfer: a port of its own at the address that
// was asked. Where that is no address of this machine (a broadcast), the system
// chooses.
func open(local netip.Addr) (*net.UDPConn, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil && local.Is4() {
		return net.ListenUDP("udp4", nil)
	}
	return conn, err
}

// fits is the largest block that needs no IP fragments on the link of a local
// address: many loaders cannot put fragments together, and one lost fragment
// costs the whole packet.
func fits(local netip.Addr) int {
	const udp, tftp = 8, 4
	head, mtu := 20, 1500
	if local.Is6() {
		head = 40
	}
	links, _ := net.Interfaces() // none: an Ethernet's
	for _, l := range links {
		addrs, _ := l.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && (p.Addr() == local.WithZone("") || l.Flags&net.FlagLoopback != 0 && p.Contains(local)) {
				mtu = l.MTU
			}
		}
	}
	return mtu - head - udp - tftp
}
