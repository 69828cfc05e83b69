package targets

import (
	"path"
	"slices"
	"strings"
)

// Identity is what tells one machine from another and stays as it is whatever
// kernel runs: read by the probe of each boot, and empty where nothing could be
// read. Fields that a kernel, a driver or a boot loader can change by itself are
// kept for the reader; Differs does not draw conclusions from them.
type Identity struct {
	Family      string            `json:"family,omitempty"`       // of CPUs: "x86", "arm", "mips"; a 32-bit kernel has that of a 64-bit one
	Vendor      string            `json:"vendor,omitempty"`       // DMI sys_vendor
	Product     string            `json:"product,omitempty"`      // DMI product_name
	Serial      string            `json:"serial,omitempty"`       // DMI product_serial; readable by root
	UUID        string            `json:"uuid,omitempty"`         // DMI product_uuid; readable by root
	BoardSerial string            `json:"board_serial,omitempty"` // DMI; readable by root
	TreeModel   string            `json:"tree_model,omitempty"`   // of the device tree, which may be the kernel's own
	TreeSerial  string            `json:"tree_serial,omitempty"`  // of the device tree
	CPU         string            `json:"cpu,omitempty"`          // x86: vendor, family and model; else the kernel's word for it
	CPUName     string            `json:"cpu_name,omitempty"`     // for people
	CPUSerial   string            `json:"cpu_serial,omitempty"`   // Serial of /proc/cpuinfo
	MACs        map[string]string `json:"macs,omitempty"`         // bus address of a built-in interface -> its own MAC address
	MemoryKB    int64             `json:"memory_kb,omitempty"`
	MachineID   string            `json:"machine_id,omitempty"` // /etc/machine-id: of the file system, so a cloned image has it too
}

// identity reads the probe's section of that name, and what others know of it.
func (ev *Evidence) identity() *Identity {
	i := &Identity{Family: cpuFamily(ev.uname(4)), MemoryKB: ev.memory("MemTotal")}
	i.readCPU(string(ev.Files["cpuinfo"]))
	for file, v := range pairs(ev.Files["identity"]) {
		v = strings.Trim(v, "\x00 \t")
		switch {
		case strings.HasPrefix(file, "net "):
			i.addInterface(strings.TrimPrefix(file, "net "), v)
		case strings.HasSuffix(file, "dmi/id/sys_vendor"):
			i.Vendor = v
		case strings.HasSuffix(file, "dmi/id/product_name"):
			i.Product = v
		case strings.HasSuffix(file, "dmi/id/product_serial"):
			i.Serial = v
		case strings.HasSuffix(file, "dmi/id/product_uuid"):
			i.UUID = strings.ToLower(v)
		case strings.HasSuffix(file, "dmi/id/board_serial"):
			i.BoardSerial = v
		case strings.HasSuffix(file, "device-tree/model"):
			i.TreeModel = v
		case strings.HasSuffix(file, "device-tree/serial-number"):
			i.TreeSerial = v
		case strings.HasSuffix(file, "machine-id"):
			i.MachineID = v
		}
	}
	return i
}

// cpuFamily groups what uname -m says, so that kernels of different word sizes
// on one machine agree.
func cpuFamily(machine string) string {
	for _, f := range []struct{ begin, family string }{
		{"x86_64", "x86"}, {"amd64", "x86"}, {"i386", "x86"}, {"i486", "x86"}, {"i586", "x86"}, {"i686", "x86"},
		{"aarch64", "arm"}, {"arm", "arm"}, {"mips", "mips"}, {"ppc", "ppc"}, {"riscv", "riscv"}, {"s390", "s390"},
		{"loongarch", "loongarch"}, {"sparc", "sparc"},
	} {
		if strings.HasPrefix(machine, f.begin) {
			return f.family
		}
	}
	return ""
}

// readCPU takes the first CPU of /proc/cpuinfo, and the serial number below them.
func (i *Identity) readCPU(text string) {
	first := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		if k = strings.TrimSpace(k); ok && first[k] == "" {
			first[k] = strings.TrimSpace(v)
		}
	}
	i.CPUSerial = first["Serial"]
	for _, k := range []string{"model name", "cpu model", "system type", "Hardware", "cpu", "uarch"} {
		if i.CPUName = first[k]; i.CPUName != "" {
			break
		}
	}
	// CPUID's own numbers (Documentation/arch/x86/cpuinfo.rst): no kernel names them anew.
	if v, f, m := first["vendor_id"], first["cpu family"], first["model"]; i.Family == "x86" && v != "" && f != "" && m != "" {
		i.CPU = v + " family " + f + " model " + m
	}
}

// addInterface takes one network interface: the address of its device, and
// "MAC ASSIGNED BUS" with "-" for what the kernel does not tell. Those whose MAC
// address may be another at the next boot are left out: plugged in over USB,
// virtual, chosen at random or set by software, or that of a bond.
func (i *Identity) addInterface(device, v string) {
	f := strings.Fields(v)
	if len(f) != 3 || !burnedIn(f[0]) || strings.Contains(device, "/usb") {
		return
	}
	// addr_assign_type 0 is the address of the hardware; kernels before 3.6 do not say.
	if f[1] != "0" && f[1] != "-" {
		return
	}
	if slices.Contains([]string{"usb", "virtio", "xen", "vmbus", "bonded", "virtfn"}, f[2]) {
		return
	}
	if i.MACs == nil {
		i.MACs = map[string]string{}
	}
	i.MACs[path.Base(device)] = strings.ToLower(f[0])
}
