package proxydhcp

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mac(t testing.TB, s string) net.HardwareAddr {
	m, err := net.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// server answers 52:54:00:00:00:01 while wanted is true.
func server(t testing.TB, wanted *bool) *Server {
	return &Server{local: netip.MustParseAddr("10.0.2.2"), link: &net.Interface{Name: "lab0", HardwareAddr: mac(t, "02:00:00:00:00:fe")},
		c: Config{Interface: "lab0", MAC: mac(t, "52:54:00:00:00:01"), TFTP: netip.MustParseAddr("10.0.2.3"), Log: zap.NewNop(),
			Wanted: func() bool { return *wanted },
			File: func(c Client) (string, error) {
				switch {
				case c.IPXE:
					return "MAC-525400000001.ipxe", nil
				case c.Arch == iana.INTEL_X86PC:
					return "pxelinux.0", nil
				case c.Arch == iana.EFI_X86_64:
					return "grubnetx64.efi", nil
				}
				return "", errors.New("there is no loader for it")
			}}}
}

// ask sends a request to port and gives the answer, nil for none.
func ask(t testing.TB, s *Server, port uint16, from string, change ...dhcpv4.Modifier) (*packet, *dhcpv4.DHCPv4) {
	t.Helper()
	hw := mac(t, from)
	d, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(hw),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00000:UNDI:002001")),
		dhcpv4.WithOption(dhcpv4.OptClientArch(iana.INTEL_X86PC)),
		dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, append([]byte{0}, make([]byte, 16)...)),
	}, change...)...)
	if err != nil {
		t.Fatal(err)
	}
	src := netip.AddrPortFrom(netip.IPv4Unspecified(), portClient)
	if !d.ClientIPAddr.IsUnspecified() {
		a, _ := netip.AddrFromSlice(d.ClientIPAddr.To4())
		src = netip.AddrPortFrom(a, portClient)
	}
	p := packet{toMAC: [6]byte{255, 255, 255, 255, 255, 255}, fromMAC: [6]byte(hw), from: src,
		to: netip.AddrPortFrom(netip.MustParseAddr("255.255.255.255"), port), payload: d.ToBytes()}
	in, err := parseFrame(p.frame())
	if err != nil {
		t.Fatal(err)
	}
	out := s.answer(in, d)
	if out == nil {
		return nil, nil
	}
	ip := out[etherLen:]
	if sum(0, ip[:ipLen]) != 0xffff {
		t.Error("the IP checksum is wrong")
	}
	if sum(uint32(protoUDP)+uint32(len(ip)-ipLen), ip[12:]) != 0xffff {
		t.Error("the UDP checksum is wrong")
	}
	back, err := parseFrame(out)
	if err != nil {
		t.Fatal(err)
	}
	r, err := dhcpv4.FromBytes(back.payload)
	if err != nil {
		t.Fatal(err)
	}
	return &back, r
}

func TestAnswers(t *testing.T) {
	wanted := true
	s := server(t, &wanted)
	const ours = "52:54:00:00:00:01"
	arch := func(a iana.Arch) dhcpv4.Modifier { return dhcpv4.WithOption(dhcpv4.OptClientArch(a)) }
	request := dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest)
	for name, c := range map[string]struct {
		port   uint16
		from   string
		change []dhcpv4.Modifier
		kind   dhcpv4.MessageType // none: no answer
		file   string
	}{
		"BIOS":                      {67, ours, nil, dhcpv4.MessageTypeOffer, "pxelinux.0"},
		"EFI":                       {67, ours, []dhcpv4.Modifier{arch(iana.EFI_X86_64)}, dhcpv4.MessageTypeOffer, "grubnetx64.efi"},
		"iPXE":                      {67, ours, []dhcpv4.Modifier{dhcpv4.WithUserClass("iPXE", false)}, dhcpv4.MessageTypeOffer, "MAC-525400000001.ipxe"},
		"iPXE by RFC 3004":          {67, ours, []dhcpv4.Modifier{dhcpv4.WithUserClass("iPXE", true)}, dhcpv4.MessageTypeOffer, "MAC-525400000001.ipxe"},
		"ARM":                       {67, ours, []dhcpv4.Modifier{arch(iana.EFI_ARM64)}, 0, ""},
		"another machine":           {67, "52:54:00:00:00:02", nil, 0, ""},
		"no PXE":                    {67, ours, []dhcpv4.Modifier{dhcpv4.WithOption(dhcpv4.OptClassIdentifier("udhcp 1.35"))}, 0, ""},
		"an address from the other": {67, ours, []dhcpv4.Modifier{request, dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 2, 1)))}, 0, ""},
		"asks us":                   {67, ours, []dhcpv4.Modifier{request, dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 2, 2)))}, dhcpv4.MessageTypeAck, "pxelinux.0"},
		"the boot server":           {4011, ours, []dhcpv4.Modifier{request, dhcpv4.WithClientIP(net.IPv4(10, 0, 2, 15))}, dhcpv4.MessageTypeAck, "pxelinux.0"},
		"by a relay":                {67, ours, []dhcpv4.Modifier{dhcpv4.WithGatewayIP(net.IPv4(10, 9, 9, 9))}, 0, ""},
		"releases":                  {67, ours, []dhcpv4.Modifier{dhcpv4.WithMessageType(dhcpv4.MessageTypeRelease)}, 0, ""},
	} {
		p, r := ask(t, s, c.port, c.from, c.change...)
		if c.kind == 0 {
			if r != nil {
				t.Errorf("%s is answered: %s", name, r.Summary())
			}
			continue
		}
		if r == nil {
			t.Errorf("%s is not answered", name)
			continue
		}
		if r.MessageType() != c.kind || r.BootFileName != c.file || !r.YourIPAddr.IsUnspecified() || r.ServerIPAddr.String() != "10.0.2.3" ||
			r.ServerIdentifier().String() != "10.0.2.2" || r.ClassIdentifier() != "PXEClient" || r.IPAddressLeaseTime(0) != 0 {
			t.Errorf("%s: %s", name, r.Summary())
		}
		want := "255.255.255.255:68"
		if c.port == portBoot {
			want = "10.0.2.15:68"
		}
		if p.to.String() != want || p.from.Port() != c.port || p.toMAC != [6]byte(mac(t, ours)) {
			t.Errorf("%s: to %s at %x", name, p.to, p.toMAC)
		}
	}
	wanted = false
	if _, r := ask(t, s, 67, ours); r != nil {
		t.Error("it is answered after it had its kernel")
	}
	notes := strings.Join(s.Notes(), "\n")
	for _, want := range []string{"was told to load pxelinux.0 from 10.0.2.3", "there is no loader for it", "by the relay 10.9.9.9", "left to its own disk"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}

func TestNobodyAsked(t *testing.T) {
	wanted := true
	s := server(t, &wanted)
	ask(t, s, 67, "52:54:00:00:00:02")
	if n := strings.Join(s.Notes(), "\n"); !strings.Contains(n, "52:54:00:00:00:01 sent no PXE request on lab0") || !strings.Contains(n, "52:54:00:00:00:02") {
		t.Error(n)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(packet{from: netip.MustParseAddrPort("10.0.0.1:68"), to: netip.MustParseAddrPort("10.0.0.2:67"), payload: []byte("x")}.frame())
	wanted := true
	s := server(f, &wanted)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseFrame(b)
		if err != nil {
			return
		}
		if d, err := dhcpv4.FromBytes(p.payload); err == nil {
			s.answer(p, d)
		}
	})
}
