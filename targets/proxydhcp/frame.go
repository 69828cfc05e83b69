package proxydhcp

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

const (
	etherLen = 14
	ipLen    = 20
	udpLen   = 8

	etherIPv4 = 0x0800
	protoUDP  = 17
)

var errFrame = errors.New("not a whole UDP packet")

// packet is a UDP packet over IPv4 in an Ethernet frame (RFC 768, 791, 894).
type packet struct {
	toMAC, fromMAC [6]byte
	from, to       netip.AddrPort
	payload        []byte
}

func parseFrame(b []byte) (packet, error) {
	if len(b) < etherLen+ipLen+udpLen || binary.BigEndian.Uint16(b[12:]) != etherIPv4 {
		return packet{}, errFrame
	}
	p := packet{toMAC: [6]byte(b[:6]), fromMAC: [6]byte(b[6:12])}
	ip := b[etherLen:]
	head, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	fragment := binary.BigEndian.Uint16(ip[6:]) & 0x3fff // "more", and the offset
	if ip[0]>>4 != 4 || head < ipLen || ip[9] != protoUDP || fragment != 0 || total > len(ip) || total < head+udpLen {
		return packet{}, errFrame
	}
	udp := ip[head:total]
	n := int(binary.BigEndian.Uint16(udp[4:]))
	if n < udpLen || n > len(udp) {
		return packet{}, errFrame
	}
	p.from = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[12:16])), binary.BigEndian.Uint16(udp))
	p.to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[16:20])), binary.BigEndian.Uint16(udp[2:]))
	p.payload = udp[udpLen:n]
	return p, nil
}

// frame is the packet in bytes.
func (p packet) frame() []byte {
	b := make([]byte, etherLen+ipLen+udpLen, etherLen+ipLen+udpLen+len(p.payload))
	copy(b, p.toMAC[:])
	copy(b[6:], p.fromMAC[:])
	binary.BigEndian.PutUint16(b[12:], etherIPv4)
	ip := b[etherLen:]
	ip[0], ip[8], ip[9] = 4<<4|ipLen/4, 64, protoUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(ipLen+udpLen+len(p.payload)))
	from, to := p.from.Addr().As4(), p.to.Addr().As4()
	copy(ip[12:], from[:])
	copy(ip[16:], to[:])
	binary.BigEndian.PutUint16(ip[10:], ^sum(0, ip[:ipLen]))
	udp := ip[ipLen:]
	binary.BigEndian.PutUint16(udp, p.from.Port())
	binary.BigEndian.PutUint16(udp[2:], p.to.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(udpLen+len(p.payload)))
	b = append(b, p.payload...)
	pseudo := sum(uint32(protoUDP)+uint32(udpLen+len(p.payload)), b[etherLen+12:etherLen+ipLen])
	check := ^sum(uint32(pseudo), b[etherLen+ipLen:])
	if check == 0 {
		check = 0xffff // 0 would mean that there is none
	}
	binary.BigEndian.PutUint16(b[etherLen+ipLen+6:], check)
	return b
}

// sum is the Internet checksum's sum (RFC 1071).
func sum(s uint32, b []byte) uint16 {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
