package targets

import (
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
)

// pc is a PC as root reads it, changed by f.
func pc(f func(*Identity)) *Identity {
	i := &Identity{Family: "x86", Vendor: "Dell Inc.", Product: "OptiPlex 7010", Serial: "7H2KQ5J", UUID: "4c4c4544-0048-3210-804b-b7c04f51354a",
		BoardSerial: "/7H2KQ5J/CN7220034K00B1/", CPU: "GenuineIntel family 6 model 58", CPUName: "Intel(R) Core(TM) i5-3470 CPU @ 3.20GHz",
		MACs: map[string]string{"0000:00:19.0": "b8:ca:3a:91:02:7e", "0000:03:00.0": "68:05:ca:11:22:33"}, MemoryKB: 8052112, MachineID: "aa"}
	if f != nil {
		f(i)
	}
	return i
}

// router is a device without DMI, changed by f.
func router(f func(*Identity)) *Identity {
	i := &Identity{Family: "mips", CPU: "", CPUName: "MIPS 24Kc V7.4", TreeModel: "TP-Link Archer C7 v2",
		MACs: map[string]string{"19000000.eth": "c4:e9:84:d2:10:40", "1a000000.eth": "c4:e9:84:d2:10:41"}, MemoryKB: 124680}
	if f != nil {
		f(i)
	}
	return i
}

// guest is a virtual machine, changed by f.
func guest(f func(*Identity)) *Identity {
	i := &Identity{Family: "x86", Vendor: "QEMU", Product: "Standard PC (Q35 + ICH9, 2009)", UUID: "11111111-2222-4333-8444-555555555555",
		CPU: "AuthenticAMD family 15 model 107", CPUName: "QEMU TCG CPU version 2.5+", MemoryKB: 500000}
	if f != nil {
		f(i)
	}
	return i
}

// What kernels, boot loaders and images change is not another machine.
func TestAKernelChangeIsNoOtherMachine(t *testing.T) {
	for name, c := range map[string][2]*Identity{
		"the same":            {pc(nil), pc(nil)},
		"nothing known":       {pc(nil), {}},
		"no probe":            {pc(nil), nil},
		"not root any more":   {pc(nil), pc(func(i *Identity) { i.Serial, i.UUID, i.BoardSerial = "", "", "" })},
		"32-bit kernel":       {{Family: cpuFamily("x86_64")}, {Family: cpuFamily("i686")}},
		"armv7l kernel":       {{Family: cpuFamily("aarch64")}, {Family: cpuFamily("armv7l")}},
		"mem= and HIGHMEM":    {pc(nil), pc(func(i *Identity) { i.MemoryKB = 890000 })},
		"another root image":  {pc(nil), pc(func(i *Identity) { i.MachineID = "bb" })},
		"UUID of old kernels": {pc(func(i *Identity) { i.Serial, i.BoardSerial, i.MACs = "", "", nil }), {UUID: "44454c4c-4800-1032-804b-b7c04f51354a", Family: "x86"}},
		"a driver is missing, the other's NIC shows": {
			{MACs: map[string]string{"0000:00:19.0": "b8:ca:3a:91:02:7e"}, Product: "OptiPlex 7010"},
			{MACs: map[string]string{"0000:03:00.0": "68:05:ca:11:22:33"}, Product: "OptiPlex 7010"}},
		"PCI buses counted anew": {
			pc(func(i *Identity) { i.Serial, i.UUID, i.BoardSerial = "", "", "" }),
			pc(func(i *Identity) {
				i.Serial, i.UUID, i.BoardSerial = "", "", ""
				i.MACs = map[string]string{"0000:03:00.0": "b8:ca:3a:91:02:7e", "0000:04:00.0": "68:05:ca:11:22:33"}
			})},
		"MAC read backwards": {pc(func(i *Identity) { *i = Identity{Product: "M2N-E", MACs: i.MACs} }), {Product: "M2N-E", MACs: map[string]string{"0000:00:19.0": "7e:02:91:3a:ca:b8"}}},
		"MACs counted from another base": {router(nil), router(func(i *Identity) {
			i.MACs = map[string]string{"19000000.eth": "c4:e9:84:d2:10:3f", "1a000000.eth": "c4:e9:84:d2:10:42"}
		})},
		"device tree of the kernel":             {router(nil), router(func(i *Identity) { i.TreeModel, i.CPUName = "TP-LINK Archer C7", "MIPS 74Kc V5.0"; i.MACs = nil })},
		"a vendor's kernel names its own maker": {router(nil), router(func(i *Identity) { i.MACs = map[string]string{"19000000.eth": "00:26:18:aa:bb:cc"} })},
		"fillers differ":                        {{Serial: "To be filled by O.E.M.", UUID: "03000200-0400-0500-0006-000700080009"}, {Serial: "Default string", UUID: "ffffffff-ffff-ffff-ffff-ffffffffffff"}},
		"serial with zeros before it":           {{TreeSerial: "10000000A1B2C3D4"}, {TreeSerial: "0000000010000000a1b2c3d4"}},
		"a guest made anew": {guest(nil), guest(func(i *Identity) {
			i.UUID, i.Serial = "99999999-2222-4333-8444-555555555555", "ec2d1a2b-0000-1111-2222-0123456789ab"
		})},
		"a guest with KVM now":         {guest(nil), guest(func(i *Identity) { i.CPU, i.CPUName = "GenuineIntel family 6 model 85", "Intel Xeon" })},
		"BIOS update of the mainboard": {pc(nil), pc(func(i *Identity) { i.UUID, i.Product = "4c4c4544-0048-3210-804b-000000000001", "OptiPlex 7010 SFF" })},
	} {
		for _, p := range [][2]*Identity{c, {c[1], c[0]}} {
			if d := p[0].Differs(p[1]); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

func TestAnotherMachine(t *testing.T) {
	for name, c := range map[string]struct {
		a, b *Identity
		say  string
	}{
		"the same model, root": {pc(nil), pc(func(i *Identity) {
			i.Serial, i.BoardSerial, i.UUID = "9J3LM6K", "/9J3LM6K/CN7220034K00C7/", "4c4c4544-004a-3310-804c-b9c04f4d364b"
			i.MACs = map[string]string{"0000:00:19.0": "b8:ca:3a:91:77:01", "0000:03:00.0": "68:05:ca:44:55:66"}
		}), `the serial number was "7H2KQ5J" and is "9J3LM6K"`},
		"the same model, not root": {
			pc(func(i *Identity) { i.Serial, i.BoardSerial, i.UUID = "", "", "" }),
			pc(func(i *Identity) {
				i.Serial, i.BoardSerial, i.UUID = "", "", ""
				i.MACs = map[string]string{"0000:00:19.0": "b8:ca:3a:91:77:01"}
			}),
			`interface at 0000:00:19.0 was "b8:ca:3a:91:02:7e" and is "b8:ca:3a:91:77:01"`},
		"another CPU":          {pc(func(i *Identity) { *i = Identity{Family: "x86", CPU: i.CPU} }), &Identity{Family: "x86", CPU: "AuthenticAMD family 23 model 1"}, "the CPU was"},
		"another architecture": {router(nil), &Identity{Family: "arm"}, `the CPU's family was "mips" and is "arm"`},
		"another router of the model": {router(nil), router(func(i *Identity) {
			i.MACs = map[string]string{"19000000.eth": "c4:e9:84:d7:33:02", "1a000000.eth": "c4:e9:84:d7:33:03"}
		}), "interface at 19000000.eth"},
		"a serial of the device tree": {&Identity{TreeSerial: "10000000a1b2c3d4"}, &Identity{TreeSerial: "10000000a1b2c3ff"}, "the device tree's serial number"},
		"a guest for a PC":            {pc(nil), guest(nil), `the product was "Dell Inc. OptiPlex 7010" and is "QEMU Standard PC`},
		"a guest with another serial": {guest(func(i *Identity) { i.Serial, i.UUID = "rig-0007", "" }), guest(func(i *Identity) { i.Serial = "rig-0008" }), "rig-0008"},
	} {
		for _, p := range [][2]*Identity{{c.a, c.b}, {c.b, c.a}} {
			if p[0].Differs(p[1]) == "" {
				t.Errorf("%s: taken for the same machine", name)
			}
		}
		if d := c.a.Differs(c.b); !strings.Contains(d, c.say) {
			t.Errorf("%s: %q does not say %q", name, d, c.say)
		}
	}
}

// Interfaces whose address may be another at the next boot are left out.
func TestInterfacesThatCount(t *testing.T) {
	section := `net /sys/devices/pci0000:00/0000:00:1c.0/0000:02:00.0=B8:CA:3A:91:02:7E 0 pci
net /sys/devices/platform/soc/30be0000.ethernet=c4:e9:84:d2:10:40 - platform
net /sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0=00:24:9b:11:22:33 0 usb
net /sys/devices/pci0000:00/0000:00:03.0/virtio2=b8:ca:3a:91:02:01 0 virtio
net /sys/devices/pci0000:00/0000:05:00.0=b8:ca:3a:91:02:02 0 bonded
net /sys/devices/pci0000:00/0000:06:00.0=b8:ca:3a:91:02:03 3 pci
net /sys/devices/pci0000:00/0000:07:00.0=ba:ca:3a:91:02:03 1 pci
net /sys/devices/pci0000:00/0000:08:10.0=b8:ca:3a:91:02:04 0 virtfn
net /sys/devices/ssb0:1=00:90:4c:5f:00:2a - ssb
net /sys/devices/broken=- - -
/sys/class/dmi/id/product_serial=  7H2KQ5J
/proc/device-tree/model=Rig 7
`
	ev := &Evidence{Files: map[string][]byte{"identity": []byte(section), "uname": []byte("Linux\nx\n6.1\n#1\nx86_64\n"),
		"cpuinfo": []byte("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 58\nmodel name\t: Intel(R) Core(TM) i5\n\nprocessor\t: 1\nmodel\t\t: 99\n")}}
	i := ev.identity()
	want := map[string]string{"0000:02:00.0": "b8:ca:3a:91:02:7e", "30be0000.ethernet": "c4:e9:84:d2:10:40"}
	if !maps.Equal(i.MACs, want) {
		t.Errorf("interfaces %v, want %v", i.MACs, want)
	}
	if i.Family != "x86" || i.CPU != "GenuineIntel family 6 model 58" || i.Serial != "7H2KQ5J" || i.TreeModel != "Rig 7" {
		t.Errorf("%+v", i)
	}
}

// The probe finds this machine in every shell, and it is itself.
func TestIdentityOfThisMachine(t *testing.T) {
	id, err := exec.Command("cat", "/etc/machine-id").Output()
	if err != nil {
		id = nil // then there is none to find
	}
	var before *Identity
	for name, sh := range shells {
		ev, err := Probe(t.Context(), shellConn{sh})
		if err != nil {
			t.Fatal(err)
		}
		var r BootRecord
		ev.Fill(&r)
		if r.Identity == nil || r.Identity.Family == "" || r.Identity.MemoryKB == 0 || r.Identity.MachineID != strings.TrimSpace(string(id)) {
			t.Errorf("%s: %+v", name, r.Identity)
		}
		text, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(text), `"identity":{"family":`) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if d := before.Differs(r.Identity); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		before = r.Identity
	}
}

// Another machine answers after the start: whatever runs there, and however long
// it has been up, is neither the kernel's fault nor the old boot.
func TestBootOfAnotherMachine(t *testing.T) {
	for name, change := range map[string]func(*machine){
		"with a kernel of its own": func(m *machine) { m.release = "4.4.0" },
		"up since yesterday":       func(m *machine) { m.uptime = 86400 },
		"with the wanted kernel":   func(*machine) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine()
			m.identity = "/sys/class/dmi/id/product_serial=9J3LM6K\n"
			tg := &Target{Name: "pc3", Dial: m.dial, Boot: started(BootTraits{}, func(Kernel) { m.set(func(m *machine) { m.id = idNew; change(m) }) })}
			_, rec, err := Boot(t.Context(), tg, Kernel{Name: "k", Release: "6.1.*"}, BootLog{Known: idOld, Machine: pc(nil)})
			var other *OtherMachineError
			var crash *BootError
			if !errors.As(err, &other) || errors.As(err, &crash) || !strings.Contains(err.Error(), `"7H2KQ5J" and is "9J3LM6K"`) {
				t.Errorf("%s: %v", name, err)
			}
			if rec.Identity == nil || rec.Identity.Serial != "9J3LM6K" || tg.Held != nil {
				t.Errorf("%s: record %+v, held %v", name, rec.Identity, tg.Held)
			}
		})
	}
}

// Whatever a target prints, a machine is itself.
func FuzzIdentity(f *testing.F) {
	f.Add([]byte("net /sys/devices/pci0000:00/0000:02:00.0=b8:ca:3a:91:02:7e 0 pci\n/sys/class/dmi/id/product_uuid=4C4C4544-0048-3210-804B-B7C04F51354A\n"),
		[]byte("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t: 58\n"), []byte("Linux\nx\n6.1\n#1\nx86_64\n"))
	f.Add([]byte("net x=00:11 - -\nnet =\n=\n/proc/device-tree/serial-number=0\x00\n"), []byte("Serial : 10000000a1b2c3d4\n"), []byte("armv7l"))
	f.Fuzz(func(t *testing.T, section, cpuinfo, uname []byte) {
		i := (&Evidence{Files: map[string][]byte{"identity": section, "cpuinfo": cpuinfo, "uname": uname}}).identity()
		if d := i.Differs(i); d != "" {
			t.Error(d)
		}
		if i.Differs(pc(nil)) != "" != (pc(nil).Differs(i) != "") {
			t.Errorf("%+v differs one way only", i)
		}
	})
}
