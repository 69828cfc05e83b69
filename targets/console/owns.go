package console

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// Owns names the port of the console server, alike for raw and telnet: whoever
// reads there second is refused, or takes bytes away from the first.
func (c *TCP) Owns() []string { return ownsPort(c.Address) }

// Owns names the port of the console server.
func (c *Telnet) Owns() []string { return ownsPort(c.Address) }

// Owns names the device file.
func (c *Serial) Owns() []string {
	if c.Device == "" {
		return nil
	}
	return []string{"serial port " + filepath.Clean(c.Device)}
}

// Owns names the UDP port: what two kernels send there cannot be told apart for sure.
func (c *Netconsole) Owns() []string {
	listen := c.Listen
	if listen == "" {
		listen = ":6666"
	}
	_, port, err := net.SplitHostPort(listen)
	if err != nil || port == "" {
		return nil
	}
	return []string{"netconsole port " + port}
}

func ownsPort(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.String()
	}
	if trimmed := strings.TrimLeft(port, "0"); trimmed != "" {
		port = trimmed
	}
	return []string{"console port " + net.JoinHostPort(host, port)}
}
