package boot

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// loaderNet is the address of a loader that is told it by hand.
type loaderNet struct {
	Address string `hcl:"ipaddr,optional" doc:"address of the loader (default: what it has)"`
	Netmask string `hcl:"netmask,optional" doc:"its netmask (default 255.255.255.0 when ipaddr is set)"`
	Gateway string `hcl:"gateway,optional" doc:"its gateway, where tftp is not in its own network"`
}

// check refuses what cannot work.
func (n *loaderNet) check() error {
	if n.Address == "" && (n.Netmask != "" || n.Gateway != "") {
		return errors.New("netmask and gateway go with ipaddr")
	}
	for _, a := range [][2]string{{"ipaddr", n.Address}, {"netmask", n.Netmask}, {"gateway", n.Gateway}} {
		if _, err := netip.ParseAddr(a[1]); a[1] != "" && err != nil {
			return fmt.Errorf("%s = %q: want an IP address", a[0], a[1])
		}
	}
	if n.Netmask != "" {
		if _, bits := net.IPMask(net.ParseIP(n.Netmask).To4()).Size(); bits == 0 {
			return fmt.Errorf("netmask = %q: want one like 255.255.255.0", n.Netmask)
		}
	}
	return nil
}

// mask is the netmask with its default.
func (n *loaderNet) mask() string {
	if n.Netmask == "" {
		return "255.255.255.0"
	}
	return n.Netmask
}

// bits is the length of the netmask.
func (n *loaderNet) bits() int {
	ones, _ := net.IPMask(net.ParseIP(n.mask()).To4()).Size()
	return ones
}

// blockLimit is what a client without block numbers beyond 65535 can take in
// blocks of 512 bytes (RFC 1350); the loaders of old routers are such clients.
const blockLimit = 65535*512 - 1

func checkBlocks(kind loaderKind, sizes ...int64) error {
	for _, n := range sizes {
		if n > blockLimit {
			return &finalError{fmt.Errorf("a file of %d bytes is more than %s can fetch by TFTP (%d, in blocks of 512 with 16-bit numbers)", n, kind.name, blockLimit)}
		}
	}
	return nil
}
