package boot

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

const cfeBanner = "\r\n\r\nCFE version 1.0.37 for BCM947XX (32bit,SP,LE)\r\nBuild Date: Wed May 14 15:04:18 CST 2008 (lab@lab)\r\n" +
	"Initializing Arena\r\nInitializing Devices.\r\net0: Broadcom BCM47xx 10/100 Mbps Ethernet Controller\r\nCPU type 0x29029: 240MHz\r\n" +
	"Device eth0:  hwaddr 00-1D-60-11-22-33, ipaddr 192.168.1.1, mask 255.255.255.0\r\n        gateway not set, nameserver not set\r\n"

var bootLine = regexp.MustCompile(`^boot -tftp -(elf|raw)(?: -z)?(?: -addr=0x80001000 -max=0x[0-9a-f]+)? 192\.168\.1\.99:ks-[0-9a-f]{12}\.k( ".*")?$`)

// cfe is a WL-500gP V2's loader; load is what it says to boot.
func cfe(load func(b *targetstest.BootLoader) (started bool)) *targetstest.BootLoader {
	return &targetstest.BootLoader{
		Banner: cfeBanner, Prompt: "CFE> ", CtrlC: "^C\r\n", Stops: "\x03", Deaf: 400 * time.Millisecond, Window: 300 * time.Millisecond, Longest: 255,
		Flash: "Loader:raw Filesys:raw Dev:flash0.os File: Options:(null)\r\nLoading: .. 1651928 bytes read\r\nEntry at 0x80001000\r\nClosing network.\r\nStarting program at 0x80001000\r\n" + flashKernel,
		Run: func(b *targetstest.BootLoader, line string) bool {
			switch {
			case strings.HasPrefix(line, "ifconfig eth0 "), strings.HasPrefix(line, "setenv "):
				b.Wait(300 * time.Millisecond)
				b.Say("Device eth0:  hwaddr 00-1D-60-11-22-33, ipaddr 192.168.1.1, mask 255.255.255.0\r\n        gateway not set, nameserver not set\r\n*** command status = 0\r\n")
			case bootLine.MatchString(line), line == "go":
				b.Say("Loader:elf Filesys:tftp Dev:eth0 File:192.168.1.99:ks Options:(null)\r\nLoading: ")
				b.Wait(3 * time.Second)
				return !load(b)
			case strings.HasPrefix(line, "flash "):
				b.Say("Reading 192.168.1.99:ks: Done. 3801088 bytes read\r\nProgramming...done. 3801088 bytes written\r\n*** command status = 0\r\n")
			default:
				b.Say("Invalid command: \"" + line + "\"\r\nAvailable commands:\r\n\r\net                  Broadcom Ethernet utility.\r\n*** command status = -1\r\n")
			}
			return true
		},
	}
}

func starts(kernel string) func(*targetstest.BootLoader) bool {
	return func(b *targetstest.BootLoader) bool {
		b.Say("0x80001000/3072 0x80001c00/4452352 Entry at 0x80001000\r\nClosing network.\r\nStarting program at 0x80001000\r\n" + kernel)
		return true
	}
}

func fails(why, status string) func(*targetstest.BootLoader) bool {
	return func(b *targetstest.BootLoader) bool {
		b.Say("Failed.\r\nCould not load 192.168.1.99:ks: " + why + "\r\n*** command status = " + status + "\r\n")
		return false
	}
}

func newCFE() *CFE {
	return &CFE{Netload: Netload{TFTP: "192.168.1.99"}, loaderNet: loaderNet{Address: "192.168.1.1"}}
}

// The whole way, through what serial lines do: the kernel that starts is the one
// that is judged, and no flash is written.
func TestCFE(t *testing.T) {
	kernelLine := "\r\n[   12.345678] device eth0 left promiscuous mode\r\n"
	for name, fault := range map[string]func(b *targetstest.BootLoader){
		"clean":             func(*targetstest.BootLoader) {},
		"at its prompt":     func(b *targetstest.BootLoader) { b.Window = 0 },
		"twice":             func(b *targetstest.BootLoader) { b.Needed = 2 },
		"lost and doubled":  func(b *targetstest.BootLoader) { b.Drop, b.Double, b.Faults = 47, 61, 4 },
		"foreign lines":     func(b *targetstest.BootLoader) { b.Noise, b.NoiseAt = kernelLine, 19 },
		"in the middle":     func(b *targetstest.BootLoader) { once := 0; load := b.Run; b.Run = restartOnce(&once, load) },
		"prompt comes back": func(b *targetstest.BootLoader) { b.Prompt = "CFE> \r\nCFE> " },
	} {
		t.Run(name, func(t *testing.T) {
			b := cfe(starts(panics))
			fault(b)
			said, judged := scripted(t, b, newCFE(), image(t, 0, "\x7fELF\x01\x01\x01", 4<<20))
			if said != nil || stageOf(t, judged) != targets.StageNoRoot {
				t.Error(said, judged)
			}
			typed := b.Typed()
			if !bootLine.MatchString(typed[len(typed)-1]) || !slices.Contains(typed, "ifconfig eth0 -addr=192.168.1.1 -mask=255.255.255.0") {
				t.Errorf("typed %q", typed)
			}
			for _, c := range typed {
				if !bootLine.MatchString(c) && !strings.HasPrefix(c, "ifconfig eth0 -addr=192.168.1.1 ") && !regexp.MustCompile(`^ks\d+$`).MatchString(c) {
					t.Errorf("it ran %q", c)
				}
			}
			if n := strings.Count(b.Lost(), "\x03"); n > 1 {
				t.Errorf("%q was typed at a running system", b.Lost())
			}
		})
	}
}

// restartOnce makes the first boot command a reset of the machine.
func restartOnce(n *int, run func(*targetstest.BootLoader, string) bool) func(*targetstest.BootLoader, string) bool {
	return func(b *targetstest.BootLoader, line string) bool {
		if strings.HasPrefix(line, "boot ") || strings.HasPrefix(line, "load ") {
			if *n++; *n == 1 {
				b.Say("Loading: ")
				b.Wait(2 * time.Second)
				b.Restart()
				return false
			}
		}
		return run(b, line)
	}
}

func TestCFEFails(t *testing.T) {
	elf := func(t *testing.T) targets.Kernel { return image(t, 0, "\x7fELF\x01\x01\x01", 4<<20) }
	for name, c := range map[string]struct {
		b     *targetstest.BootLoader
		stage string
		want  []string
	}{
		"network down": {cfe(fails("Network interface has not been configured", "-23")), "", []string{"gave up after 3 tries", "Network interface has not been configured"}},
		"time-out":     {cfe(fails("Timeout occured", "-21")), "", []string{"gave up after 3 tries", "Timeout occured"}},
		"file missing": {cfe(fails("File not found", "-18")), "", []string{"TFTP server at 192.168.1.99 does not give the file"}},
		"wrong format": {cfe(fails("Executable file is wrong-endian", "-13")), targets.StageRefused, []string{"wrong-endian"}},
		"bad address":  {cfe(fails("Section would load outside available DRAM", "-17")), targets.StageRefused, []string{"DRAM"}},
	} {
		t.Run(name, func(t *testing.T) {
			said, judged := scripted(t, c.b, newCFE(), elf(t))
			if stageOf(t, judged) != c.stage {
				t.Errorf("stage %q", stageOf(t, judged))
			}
			has(t, said, c.want...)
		})
	}
}

// The window is missed every time: the outcome has its name, and nobody goes on
// as if at the prompt.
func TestCFEMissed(t *testing.T) {
	b := cfe(starts(panics))
	b.Stops = "x"
	said, judged := scripted(t, b, newCFE(), image(t, 0, "\x7fELF", 100_000))
	has(t, said, "gave up after 3 tries", "missed autoboot window", "restarted by power")
	if stageOf(t, judged) != "" || len(b.Typed()) != 0 || b.Sessions < 3 {
		t.Errorf("%v; typed %q in %d starts", judged, b.Typed(), b.Sessions)
	}
}

func TestCFECommands(t *testing.T) {
	k := image(t, 0, "\x1f\x8b\x08", 100_000)
	c := newCFE()
	c.Compressed, c.Cmdline = true, "args"
	b := cfe(starts(panics))
	if said, _ := scripted(t, b, c, k); said != nil {
		t.Fatal(said)
	}
	typed := b.Typed()
	if last := typed[len(typed)-1]; !strings.HasPrefix(last, "boot -tftp -raw -z -addr=0x80001000 -max=0xd0000 ") || !strings.Contains(last, `"console=ttyS0,115200 kernsweep.nonce=`) {
		t.Error(last)
	}
	c = newCFE()
	c.Flash, c.FlashCommand = true, "flash -noheader FILE flash1.trx"
	b = cfe(starts(panics))
	if said, _ := scripted(t, b, c, k); said != nil {
		t.Fatal(said)
	}
	typed = b.Typed()
	if n := len(typed); typed[n-1] != "go" || !strings.HasPrefix(typed[n-2], "flash -noheader 192.168.1.99:ks-") || c.Traits().Returns {
		t.Errorf("%q", typed)
	}
}

func TestCFECheck(t *testing.T) {
	for want, c := range map[string]*CFE{
		"tftp is missing": {},
		"go together":     {Netload: Netload{TFTP: "10.0.0.1"}, Flash: true},
		"does not say":    {Netload: Netload{TFTP: "10.0.0.1"}, Flash: true, FlashCommand: "flash flash1.trx"},
		"cmdline =":       {Netload: Netload{TFTP: "10.0.0.1"}, Cmdline: "yes"},
		"netmask":         {Netload: Netload{TFTP: "10.0.0.1"}, loaderNet: loaderNet{Netmask: "255.0.255.0", Address: "10.0.0.2"}},
		"load_addr":       {Netload: Netload{TFTP: "10.0.0.1"}, LoadAddr: "here"},
		"prompt":          {Netload: Netload{TFTP: "10.0.0.1"}, Loader: Loader{Prompt: "("}},
		"nothing at all":  {Netload: Netload{TFTP: "10.0.0.1"}, Loader: Loader{Prompt: ".*"}},
	} {
		has(t, c.Check(), want)
	}
	if err := newCFE().Check(); err != nil {
		t.Error(err)
	}
}
