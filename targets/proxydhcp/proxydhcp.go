// Package proxydhcp answers one network-booting machine as a PXE proxy: beside
// the network's own DHCP server, which gives the addresses, it only says which
// file to load from where (PXE specification 2.1, section 2.2.3; RFC 2131, 2132).
// No other machine ever gets an answer.
package proxydhcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
	"go.uber.org/zap"
)

// Ports of DHCP and of the PXE boot server.
const (
	portServer = 67
	portClient = 68
	portBoot   = 4011
)

// mostNotes bounds what is noted; a machine that asks for ever says little new.
const mostNotes = 10

// Client is what a request tells of the program that sent it.
type Client struct {
	Arch iana.Arch // option 93
	IPXE bool      // it is iPXE, which runs scripts
}

func (c Client) String() string {
	s := c.Arch.String()
	if c.IPXE {
		s += ", iPXE"
	}
	return s
}

// Config says whom a Server answers, and with what.
type Config struct {
	Interface string           // the network that the machine boots from
	MAC       net.HardwareAddr // of the machine
	TFTP      netip.Addr       // of the TFTP server, as the machine sees it
	// File gives the name of the file to load. An error is noted, and the
	// machine not answered.
	File func(Client) (string, error)
	// Wanted says whether the machine is to be answered now.
	Wanted func() bool
	Log    *zap.Logger
}

// Server answers until Close.
type Server struct {
	c     Config
	link  *net.Interface
	local netip.Addr
	raw   io.ReadWriteCloser // Ethernet frames, one at a time
	done  chan struct{}

	mu        sync.Mutex
	asked     bool
	notes     []string
	strangers []string
}

// Start begins to answer. It takes no port from a DHCP server of this machine:
// it reads and writes Ethernet frames, for which it needs root or CAP_NET_RAW.
func Start(c Config) (*Server, error) {
	link, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("proxy DHCP: interface %s: %w", c.Interface, err)
	}
	if len(link.HardwareAddr) != 6 {
		return nil, fmt.Errorf("proxy DHCP: interface %s is no Ethernet", c.Interface)
	}
	local, err := addressOf(link, c.TFTP)
	if err != nil {
		return nil, err
	}
	raw, err := listen(link.Index)
	if err != nil {
		return nil, fmt.Errorf("proxy DHCP on %s: %w", c.Interface, err)
	}
	s := &Server{c: c, link: link, local: local, raw: raw, done: make(chan struct{})}
	go s.serve()
	return s, nil
}

// addressOf is the link's IPv4 address: the wanted one if it is among them.
func addressOf(link *net.Interface, wanted netip.Addr) (netip.Addr, error) {
	addrs, err := link.Addrs()
	if err != nil {
		return netip.Addr{}, err
	}
	var found netip.Addr
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().Is4() {
			continue
		}
		if p.Addr() == wanted || !found.IsValid() {
			found = p.Addr()
		}
	}
	if !found.IsValid() {
		return found, fmt.Errorf("proxy DHCP: interface %s has no IPv4 address", link.Name)
	}
	return found, nil
}

// Close ends the answers. It may be called again.
func (s *Server) Close() error {
	err := s.raw.Close()
	<-s.done
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Notes tells who asked and what the answer was.
func (s *Server) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := slices.Clone(s.notes)
	if s.asked {
		return notes
	}
	others := ""
	if len(s.strangers) > 0 {
		others = "; PXE requests came from " + strings.Join(s.strangers, ", ")
	}
	return append(notes, fmt.Sprintf("DHCP: %s sent no PXE request on %s: is network boot first in its firmware, is mac right, is it wired to this network?%s",
		s.c.MAC, s.c.Interface, others))
}

func (s *Server) note(format string, args ...any) {
	text := "DHCP: " + fmt.Sprintf(format, args...)
	s.c.Log.Debug(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) < mostNotes && !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

func (s *Server) serve() {
	defer close(s.done)
	buf := make([]byte, 4096)
	for {
		n, err := s.raw.Read(buf)
		if err != nil {
			return // closed, or the interface is gone
		}
		p, err := parseFrame(buf[:n])
		if err != nil {
			continue
		}
		d, err := dhcpv4.FromBytes(p.payload)
		if err != nil {
			continue
		}
		if r := s.answer(p, d); r != nil {
			if _, err := s.raw.Write(r); err != nil {
				s.note("the answer to %s could not be sent: %v", s.c.MAC, err)
			}
		}
	}
}

// answer makes the frame that answers a request, nil for none.
func (s *Server) answer(p packet, d *dhcpv4.DHCPv4) []byte {
	if d.OpCode != dhcpv4.OpcodeBootRequest || !strings.HasPrefix(d.ClassIdentifier(), "PXEClient") {
		return nil // not one that boots
	}
	if !bytes.Equal(d.ClientHWAddr, s.c.MAC) {
		s.stranger(d.ClientHWAddr.String())
		return nil
	}
	kind, ok := s.reply(p, d)
	if !ok {
		return nil
	}
	s.mu.Lock()
	s.asked = true
	s.mu.Unlock()
	client := clientOf(d)
	if !d.GatewayIPAddr.IsUnspecified() {
		s.note("%s asks by the relay %s, and is not answered: a proxy must be in its network", s.c.MAC, d.GatewayIPAddr)
		return nil
	}
	if !s.c.Wanted() {
		s.note("%s (%s) asked again after it had fetched the kernel, and was left to its own disk", s.c.MAC, client)
		return nil
	}
	file, err := s.c.File(client)
	if err != nil {
		s.note("%s (%s) is not answered: %v", s.c.MAC, client, err)
		return nil
	}
	r, err := s.message(d, kind, file)
	if err != nil {
		s.note("%s: %v", s.c.MAC, err)
		return nil
	}
	s.note("%s (%s) was told to load %s from %s", s.c.MAC, client, file, s.c.TFTP)
	return s.frame(p, d, r.ToBytes())
}

// reply says how a request is answered: an offer beside the DHCP server's own, or,
// to one that asks us and no other, the last word.
func (s *Server) reply(p packet, d *dhcpv4.DHCPv4) (dhcpv4.MessageType, bool) {
	switch d.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		return dhcpv4.MessageTypeOffer, p.to.Port() == portServer
	case dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeInform:
		ours := p.to.Port() == portBoot || net.IP(s.local.AsSlice()).Equal(d.ServerIdentifier())
		return dhcpv4.MessageTypeAck, ours
	}
	return dhcpv4.MessageTypeNone, false
}

func clientOf(d *dhcpv4.DHCPv4) Client {
	c := Client{IPXE: string(d.Options.Get(dhcpv4.OptionUserClassInformation)) == "iPXE"}
	if a := d.ClientArch(); len(a) > 0 {
		c.Arch = a[0]
	}
	for _, u := range d.UserClass() {
		c.IPXE = c.IPXE || u == "iPXE"
	}
	return c
}

// message is the answer. It gives no address. The vendor option tells the
// firmware to take the file's name from here, and to look for no boot servers
// (PXE_DISCOVERY_CONTROL, bit 3).
func (s *Server) message(d *dhcpv4.DHCPv4, kind dhcpv4.MessageType, file string) (*dhcpv4.DHCPv4, error) {
	if len(file) > 127 {
		return nil, fmt.Errorf("the name %s is too long for DHCP", file)
	}
	r, err := dhcpv4.NewReplyFromRequest(d,
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithServerIP(s.c.TFTP.AsSlice()),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(s.local.AsSlice())),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient")),
		dhcpv4.WithGeneric(dhcpv4.OptionVendorSpecificInformation, []byte{6, 1, 8, 255}),
		dhcpv4.WithOptionCopied(d, dhcpv4.OptionClientMachineIdentifier))
	if err != nil {
		return nil, err
	}
	r.BootFileName = file
	r.ClientIPAddr = d.ClientIPAddr
	return r, nil
}

// frame addresses an answer. A machine that has no address yet is reached by its
// Ethernet address, so that nobody else hears it.
func (s *Server) frame(p packet, d *dhcpv4.DHCPv4, payload []byte) []byte {
	out := packet{toMAC: [6]byte(p.fromMAC), fromMAC: [6]byte(s.link.HardwareAddr), payload: payload,
		from: netip.AddrPortFrom(s.local, p.to.Port()),
		to:   netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), portClient)}
	if p.from.Addr().IsValid() && !p.from.Addr().IsUnspecified() {
		out.to = p.from
	} else if d.IsBroadcast() {
		out.toMAC = [6]byte{255, 255, 255, 255, 255, 255}
	}
	return out.frame()
}

// stranger remembers another machine that boots by network; it gets no answer.
func (s *Server) stranger(mac string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.strangers) < mostNotes && !slices.Contains(s.strangers, mac) {
		s.strangers = append(s.strangers, mac)
	}
}
