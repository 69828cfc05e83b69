package power

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"kernsweep/targets"
)

// WOL switches on by Wake-on-LAN: six bytes FF and sixteen times the MAC address
// in a UDP datagram (AMD, "Magic Packet Technology", 1995). It has no way to
// switch off; a program may be named that does.
type WOL struct {
	MAC         string        `hcl:"mac" doc:"MAC address of the target's network port"`
	Address     string        `hcl:"address,optional" doc:"where to send it: a broadcast or unicast address, with :port where it is not 9 (default: the interface's broadcast address, else 255.255.255.255)"`
	Interface   string        `hcl:"interface,optional" doc:"network interface of the controller that leads to the target, for example \"eth1\""`
	SecureOnEnv string        `hcl:"secureon_env,optional" doc:"name of the environment variable that holds the SecureOn password, written as a MAC address"`
	Off         []string      `hcl:"off,optional" doc:"program and arguments that switch the target off, run on the controller"`
	Deadline    time.Duration `hcl:"deadline,optional" doc:"off must end within this (default 30s)"`
}

// Check refuses what wakes nobody.
func (d *WOL) Check() error {
	if d.mac() == nil {
		return fmt.Errorf("mac = %q: want six bytes, such as \"00:1b:21:0a:0b:0c\"", d.MAC)
	}
	if d.Address != "" {
		host, _, err := splitAddress(d.Address, "9")
		if err != nil {
			return err
		}
		if _, err := netip.ParseAddr(host); err != nil {
			return fmt.Errorf("address = %q: want an IP address: a target that is off answers no question for its name", d.Address)
		}
	}
	if len(d.Off) > 0 && d.Off[0] == "" {
		return errors.New("off names no program")
	}
	return notNegative(d.Deadline)
}

// Warning tells what recovery lacks.
func (d *WOL) Warning() string {
	if len(d.Off) > 0 {
		return ""
	}
	return "power \"wol\" without off switches on only: a target that hangs stays so until somebody comes"
}

func (d *WOL) mac() net.HardwareAddr {
	m, err := net.ParseMAC(d.MAC)
	if err != nil || len(m) != 6 || m[0]&1 != 0 || bytes.Equal(m, make([]byte, 6)) {
		return nil // also what is a group's address
	}
	return m
}

// Programs are those that the block names.
func (d *WOL) Programs(*targets.Target) []string {
	if len(d.Off) == 0 {
		return nil
	}
	return d.Off[:1]
}

// Owns names the target's network port, as boot "pxe" does.
func (d *WOL) Owns() []string {
	if d.mac() == nil {
		return nil
	}
	return []string{"MAC " + d.mac().String()}
}

const (
	wolPackets = 3 // a datagram may get lost
	wolBetween = 100 * time.Millisecond
)

// Set sends the packet, or runs the program that switches off. Without one the
// error is a *targets.CannotError.
func (d *WOL) Set(ctx context.Context, on bool) error {
	if !on && len(d.Off) == 0 {
		return &targets.CannotError{What: "power off of " + d.MAC,
			Why: "Wake-on-LAN switches on only; name a program in off, or give the target another power driver"}
	}
	ctx, stop := limit(ctx, d.Deadline)
	defer stop()
	if !on {
		return failed(ctx, on, d.MAC, targets.RunProgram(ctx, d.Off, nil))
	}
	return failed(ctx, on, "Wake-on-LAN "+d.MAC, d.wake(ctx))
}

func (d *WOL) wake(ctx context.Context) error {
	packet, err := d.packet()
	if err != nil {
		return err
	}
	from, to, err := d.way()
	if err != nil {
		return err
	}
	c, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "udp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := range wolPackets {
		if n > 0 && !pause(ctx, wolBetween) {
			return ctx.Err()
		}
		// That nobody listens there is no failure: the network card does.
		if _, err := c.Write(packet); err != nil && !strings.Contains(err.Error(), "connection refused") {
			return fmt.Errorf("sending to %s: %w", to, err)
		}
	}
	return nil
}

// packet is the magic packet.
func (d *WOL) packet() ([]byte, error) {
	p := bytes.Repeat([]byte{0xff}, 6)
	for range 16 {
		p = append(p, d.mac()...)
	}
	if d.SecureOnEnv == "" {
		return p, nil
	}
	s, err := secret("secureon_env", d.SecureOnEnv)
	if err != nil {
		return nil, err
	}
	word, err := net.ParseMAC(strings.TrimSpace(s))
	if err != nil || len(word) != 6 {
		return nil, fmt.Errorf("the variable %s holds no SecureOn password of six bytes, written as a MAC address", d.SecureOnEnv)
	}
	return append(p, word...), nil
}

// way is where the packet leaves and where it goes.
func (d *WOL) way() (from *net.UDPAddr, to string, err error) {
	host, port := "255.255.255.255", "9"
	if d.Address != "" {
		if host, port, err = splitAddress(d.Address, port); err != nil {
			return nil, "", err
		}
	}
	if d.Interface == "" {
		return nil, net.JoinHostPort(host, port), nil
	}
	i, err := net.InterfaceByName(d.Interface)
	if err != nil {
		return nil, "", fmt.Errorf("interface %s: %w", d.Interface, err)
	}
	addrs, err := i.Addrs()
	if err != nil {
		return nil, "", fmt.Errorf("interface %s: %w", d.Interface, err)
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil {
			continue
		}
		if d.Address == "" {
			host = broadcast(n).String()
		}
		return &net.UDPAddr{IP: n.IP}, net.JoinHostPort(host, port), nil
	}
	return nil, "", fmt.Errorf("interface %s has no IPv4 address", d.Interface)
}

// broadcast is the address of all in a network.
func broadcast(n *net.IPNet) net.IP {
	ip, mask := n.IP.To4(), n.Mask[len(n.Mask)-4:]
	all := make(net.IP, 4)
	for i := range all {
		all[i] = ip[i] | ^mask[i]
	}
	return all
}
