package targets

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// OtherMachineError is infrastructure: under a target's address answers a machine
// that is certainly another than before. Trying again does not help, and nothing
// that it says is about the kernel.
type OtherMachineError struct {
	Target string
	What   string // as Identity.Differs says it
}

func (e *OtherMachineError) Error() string {
	return fmt.Sprintf("target %s: another machine answers under its address than in this run's earlier boots: %s; "+
		"if it was replaced on purpose, start a new run: figures of two machines are not comparable", e.Target, e.What)
}

// Differs says in words what shows that other is another machine than i, and ""
// as long as that is not certain: a kernel change never looks like another
// machine. Anything that belongs to one machine alone (a serial number, a UUID,
// a MAC address) and is the same in both settles it. What one of them lacks says
// nothing: only root reads some of it, and kernels lack drivers. The amount of
// memory, the device tree's model, the machine-id and the names that a kernel
// gives to a CPU vary between kernels and images, and count for nothing. Of a
// virtual machine neither UUID nor MAC addresses count, since it may get new ones
// at each start, nor the CPU, which is what the accelerator at hand makes of it.
func (i *Identity) Differs(other *Identity) string {
	if i == nil || other == nil || i.agrees(other) {
		return ""
	}
	var found []string
	add := func(what, a, b string) { found = append(found, fmt.Sprintf("%s was %q and is %q", what, a, b)) }
	distinct := func(a, b string) bool { return a != "" && b != "" && a != b }
	if distinct(i.Family, other.Family) {
		add("the CPU's family", i.Family, other.Family)
	}
	if distinct(i.CPU, other.CPU) && !(i.virtual() && other.virtual()) {
		add("the CPU", i.cpuWords(), other.cpuWords())
	}
	if genuine(i.Product) && genuine(other.Product) && i.Product != other.Product {
		add("the product", i.Vendor+" "+i.Product, other.Vendor+" "+other.Product)
	}
	virtual := i.virtual() || other.virtual()
	for _, s := range []struct{ what, a, b string }{
		{"the serial number", i.Serial, other.Serial},
		{"the mainboard's serial number", i.BoardSerial, other.BoardSerial},
		{"the device tree's serial number", i.TreeSerial, other.TreeSerial},
	} {
		if genuine(s.a) && genuine(s.b) && !sameSerial(s.a, s.b) && !(virtual && (likeUUID(s.a) || likeUUID(s.b))) {
			add(s.what, s.a, s.b)
		}
	}
	if !virtual {
		if genuineUUID(i.UUID) && genuineUUID(other.UUID) {
			add("the UUID", i.UUID, other.UUID)
		}
		for _, at := range slices.Sorted(maps.Keys(i.MACs)) {
			if a, b := i.MACs[at], other.MACs[at]; b != "" && i.certainlyAnother(at, a, b) {
				add("the MAC address of the interface at "+at, a, b)
			}
		}
	}
	return strings.Join(found, "; ")
}

func (i *Identity) cpuWords() string {
	if i.CPUName == "" {
		return i.CPU
	}
	return i.CPUName + " (" + i.CPU + ")"
}

// agrees says that both are one machine: they share what two do not share.
func (i *Identity) agrees(o *Identity) bool {
	for _, p := range [][2]string{{i.Serial, o.Serial}, {i.BoardSerial, o.BoardSerial}, {i.TreeSerial, o.TreeSerial}, {i.CPUSerial, o.CPUSerial}} {
		if genuine(p[0]) && genuine(p[1]) && sameSerial(p[0], p[1]) {
			return true
		}
	}
	if genuineUUID(i.UUID) && genuineUUID(o.UUID) && (i.UUID == o.UUID || i.UUID == swapped(o.UUID)) {
		return true
	}
	for _, a := range i.MACs {
		for _, b := range o.MACs {
			if a == b || a == backwards(b) {
				return true
			}
		}
	}
	return false
}

// virtual says that a hypervisor or an emulator made the machine.
func (i *Identity) virtual() bool {
	s := strings.ToLower(i.Vendor + " " + i.Product + " " + i.CPUName + " " + i.TreeModel)
	for _, w := range []string{"qemu", "kvm", "bochs", "virtual", "vmware", "innotek", "xen", "hvm domu", "parallels", "bhyve",
		"amazon ec2", "google compute", "openstack", "ovirt", "rhev", "cloud", "standard pc", "firecracker", "linux,dummy", "malta"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// genuine says that a vendor filled a field in: most boards that lie about have a
// filler in some of them.
func genuine(s string) bool {
	t := strings.ToLower(strings.TrimSpace(s))
	if len(t) < 4 || strings.Trim(t, "0.-: _xf*?") == "" || strings.HasPrefix("0123456789", t) || strings.HasPrefix("123456789012345", t) {
		return false
	}
	for _, w := range []string{"to be filled", "o.e.m", "oem", "default", "not spec", "not appl", "not avail", "not set", "no serial", "none", "unknown",
		"invalid", "empty", "n/a", "undefined", "system serial", "serial number", "base board", "chassis", "system product", "system name",
		"123456789", "abcdef", "xxxx", "type1", "type2", "test", "dummy", "sample", "fill by"} {
		if strings.Contains(t, w) {
			return false
		}
	}
	return true
}

// genuineUUID also refuses one that many boards were shipped with.
func genuineUUID(s string) bool {
	return wellFormed(s) && strings.Trim(s, "f-") != "" && !strings.HasPrefix(s, "03000200-0400-0500-0006") && !strings.HasPrefix(s, "00020003-0004-0005")
}

// swapped is a UUID with the byte order of its first three fields turned round.
// Kernels before 4.13 print it otherwise than later ones do
// (drivers/firmware/dmi_scan.c, "display uuid in little-endian").
func swapped(s string) string {
	var out []string
	for n, field := range strings.Split(s, "-") {
		if n < 3 {
			turned := ""
			for k := len(field); k >= 2; k -= 2 {
				turned += field[k-2 : k]
			}
			field = turned
		}
		out = append(out, field)
	}
	return strings.Join(out, "-")
}

// sameSerial compares serial numbers, which are written with and without
// leading zeros and in either case.
func sameSerial(a, b string) bool {
	plain := func(s string) string { return strings.TrimLeft(strings.ToLower(strings.TrimSpace(s)), "0") }
	return plain(a) == plain(b)
}

// likeUUID says that a serial number is derived from a UUID, as hypervisors do.
func likeUUID(s string) bool {
	hex := 0
	for _, c := range strings.ToLower(s) {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'f' {
			hex++
		}
	}
	return hex >= 24
}

// burnedIn says that a MAC address may be one that its maker gave to one
// interface: not a group's, not locally administered, not one of a range that
// drivers fall back to when they cannot read the interface's own.
func burnedIn(mac string) bool {
	mac = strings.ToLower(mac)
	n, ok := macNumber(mac)
	if !ok || n>>40&3 != 0 || n&0xffffff == 0 || n&0xffffff == 0xffffff {
		return false
	}
	return !slices.Contains([]string{
		"00:00:00", "00:01:02", "00:11:22", "00:12:34", "00:aa:bb", "00:03:7f", "00:0c:43", "00:10:18", "00:13:74", "00:50:43", "00:90:4c",
		"00:e0:4c", "08:00:27", "00:0c:29", "00:05:69", "00:50:56", "00:15:5d", "00:16:3e", "00:1c:42", "00:1c:14",
	}, mac[:8])
}

func macNumber(mac string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.ReplaceAll(mac, ":", ""), 16, 64)
	return n, err == nil && len(mac) == 17
}

// backwards is a MAC address from its end, as old kernels read that of some
// NVIDIA chips (drivers/net/ethernet/nvidia/forcedeth.c).
func backwards(mac string) string {
	f := strings.Split(mac, ":")
	slices.Reverse(f)
	return strings.Join(f, ":")
}

// certainlyAnother compares the MAC addresses of interfaces at one bus address.
// A card in a PC holds its own. That of an interface in a device without DMI
// comes from flash or fuses, where one kernel counts from another base than the
// next, or falls back to a maker's default: there both must come from one
// maker's range, far apart.
func (i *Identity) certainlyAnother(at, a, b string) bool {
	m, _ := macNumber(a)
	n, _ := macNumber(b)
	if i.Product != "" && pciAddress.MatchString(at) {
		return m != n
	}
	return m>>24 == n>>24 && max(m, n)-min(m, n) > 256
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
