package boot

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

const redbootBanner = "+Ethernet eth0: MAC address 00:18:84:11:22:33\r\nIP: 0.0.0.0/255.255.255.0, Gateway: 0.0.0.0\r\nDefault server: 0.0.0.0\r\n\r\n" +
	"RedBoot(tm) bootstrap and debug environment [ROMRAM]\r\nRelease, version V1.04 - built 12:24:00, Apr 17 2006\r\n\r\nBoard: ap51\r\nRAM: 0x80000000-0x81000000, [0x80040450-0x80fe1000] available\r\n" +
	"FLASH: 0xa8000000 - 0xa87f0000, 128 blocks of 0x00010000 bytes each.\r\n== Executing boot script in 1.500 seconds - enter ^C to abort\r\n"

// redboot is an AR2317's loader; load and exec are its answers.
func redboot(load, exec string) *targetstest.BootLoader {
	return &targetstest.BootLoader{
		Banner: redbootBanner, Prompt: "RedBoot> ", CtrlC: "^C\r\n", Stops: "\x03", Deaf: 400 * time.Millisecond, Window: 1500 * time.Millisecond, Longest: 255,
		Flash: "RedBoot> fis load -l vmlinux.bin.l7\r\nImage loaded from 0x80041000-0x803b6000\r\nRedBoot> exec\r\nNow booting linux kernel:\r\n Base address 0x80030000 Entry 0x80041000\r\n Cmdline :\r\n" + flashKernel,
		Run: func(b *targetstest.BootLoader, line string) bool {
			switch {
			case strings.HasPrefix(line, "ip_address "):
				b.Say("IP: 192.168.1.1/255.255.255.0, Gateway: 0.0.0.0\r\nDefault server: 192.168.1.99\r\n")
			case strings.HasPrefix(line, "load "):
				b.Say("Using default protocol (TFTP)\r\n")
				b.Wait(4 * time.Second)
				b.Say(load)
			case strings.HasPrefix(line, "exec "):
				b.Say(exec)
				return !strings.Contains(exec, "Now booting")
			default:
				b.Say("** Error: Illegal command: \"" + line + "\"\r\n")
			}
			return true
		},
	}
}

const (
	rawLoaded  = "Raw file loaded 0x80041000-0x8014106f, assumed entry at 0x80041000\r\n"
	rawSize    = 0x100070
	execStarts = "Now booting linux kernel:\r\n Base address 0x80030000 Entry 0x80041000\r\n Cmdline : console=ttyS0\r\n" + panics
)

func newRedBoot() *RedBoot {
	return &RedBoot{Netload: Netload{TFTP: "192.168.1.99"}, loaderNet: loaderNet{Address: "192.168.1.1"}}
}

var execLine = regexp.MustCompile(`^exec -c "console=ttyS0,115200 a=\\\$1\\\+2 kernsweep\.nonce=[0-9a-f]{16}" 0x80041000$`)

func TestRedBoot(t *testing.T) {
	for name, fault := range map[string]func(b *targetstest.BootLoader){
		"clean":            func(*targetstest.BootLoader) {},
		"at its prompt":    func(b *targetstest.BootLoader) { b.Window = 0 },
		"lost and doubled": func(b *targetstest.BootLoader) { b.Drop, b.Double, b.Faults = 53, 67, 4 },
		"foreign lines":    func(b *targetstest.BootLoader) { b.Noise, b.NoiseAt = "\r\neth0: link up\r\n", 29 },
		"in the middle":    func(b *targetstest.BootLoader) { once := 0; run := b.Run; b.Run = restartOnce(&once, run) },
		"short window":     func(b *targetstest.BootLoader) { b.Window = 300 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			b := redboot(rawLoaded, execStarts)
			fault(b)
			k := image(t, 0, "\x5d\x00\x00\x80", rawSize)
			k.Cmdline = "a=$1+2"
			said, judged := scripted(t, b, newRedBoot(), k)
			if said != nil || stageOf(t, judged) != targets.StageNoRoot {
				t.Error(said, judged)
			}
			typed := b.Typed()
			if n := len(typed); n < 4 || !execLine.MatchString(typed[n-1]) || !regexp.MustCompile(`^load -r -b 0x80041000 -m tftp -h 192\.168\.1\.99 ks-[0-9a-f]{12}\.k$`).MatchString(typed[n-2]) ||
				typed[n-3] != "ip_address -l 192.168.1.1/24 -h 192.168.1.99" {
				t.Errorf("%q", typed)
			}
		})
	}
}

func TestRedBootELF(t *testing.T) {
	b := redboot("Entry point: 0x80041300, address range: 0x80041000-0x8014106f\r\n", execStarts)
	if said, _ := scripted(t, b, newRedBoot(), image(t, 0, "\x7fELF", rawSize)); said != nil {
		t.Fatal(said)
	}
	if typed := b.Typed(); !strings.HasSuffix(typed[len(typed)-1], " 0x80041300") || strings.Contains(typed[len(typed)-2], "-r") {
		t.Errorf("%q", typed)
	}
}

func TestRedBootFails(t *testing.T) {
	long := image(t, 0, "\x5d", rawSize)
	long.Cmdline = strings.Repeat("x=y ", 80)
	for name, c := range map[string]struct {
		load, exec string
		k          targets.Kernel
		stage      string
		want       []string
	}{
		"time-out":     {"Can't load 'ks': operation timed out\r\n", "", image(t, 0, "\x5d", rawSize), "", []string{"gave up after 3 tries", "operation timed out"}},
		"network down": {"Can't load 'ks': some sort of network error\r\n", "", image(t, 0, "\x5d", rawSize), "", []string{"network error"}},
		"file missing": {"Can't load 'ks': file not found\r\n", "", image(t, 0, "\x5d", rawSize), "", []string{"does not give the file"}},
		"half a file":  {"Raw file loaded 0x80041000-0x80060fff, assumed entry at 0x80041000\r\n", "", image(t, 0, "\x5d", rawSize), "", []string{"131072 bytes were loaded of 1048688"}},
		"wrong format": {"Unrecognized image type: 0x5d000080\r\n", "", image(t, 0, "\x5d", rawSize), targets.StageRefused, []string{"Unrecognized image type"}},
		"no exec":      {rawLoaded, "** Error: Illegal command: \"exec\"\r\n", image(t, 0, "\x5d", rawSize), targets.StageRefused, []string{"RedBoot does not start it"}},
		"long line":    {rawLoaded, execStarts, long, "", []string{"more than the loader's line takes (250)"}},
	} {
		t.Run(name, func(t *testing.T) {
			said, judged := scripted(t, redboot(c.load, c.exec), newRedBoot(), c.k)
			if stageOf(t, judged) != c.stage {
				t.Errorf("stage %q", stageOf(t, judged))
			}
			has(t, said, c.want...)
			if name == "long line" && strings.Contains(said.Error(), "tries") {
				t.Error("it was tried again")
			}
		})
	}
}

// A machine without a serial console, over real TCP: its port opens for a moment
// after power-on, at first it refuses.
func TestRedBootTelnet(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", targetstest.FreePort(t))
	b := redboot(rawLoaded, "Now booting linux kernel:\r\n")
	b.Banner, b.FromOff = "\xff\xfb\x01"+redbootBanner, true
	p := &portLoader{BootLoader: b, address: address}
	t.Cleanup(p.close)
	r := newRedBoot()
	r.Telnet = address
	tg := &targets.Target{Name: "fonera", Power: p, Serve: serveNothing}
	tg.Dial = func(context.Context, targets.SSH, targets.DialOptions) (targets.Conn, error) {
		return nil, &targets.LinkError{Phase: "connect", Err: io.EOF}
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	k := image(t, 0, "\x5d\x00\x00\x80", rawSize)
	k.Nonce = "kernsweep.nonce=0123456789abcdef"
	if err := r.Boot(ctx, tg, k); err != nil {
		t.Fatal(err)
	}
	typed := b.Typed()
	if n := len(typed); n < 3 || typed[n-1] != `exec -c "console=ttyS0,115200 kernsweep.nonce=0123456789abcdef" 0x80041000` || !slices.Contains(typed, "ip_address -h 192.168.1.99") {
		t.Errorf("%q", typed)
	}
	if r.Traits().Console {
		t.Error("it needs a console")
	}
}

// portLoader offers a loader on a TCP port for as long as it waits.
type portLoader struct {
	*targetstest.BootLoader
	address string
	ended   chan struct{}
	l       net.Listener
}

func (p *portLoader) Set(ctx context.Context, on bool) error {
	if !on {
		return p.BootLoader.Set(ctx, false)
	}
	if p.l != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.l, p.ended = l, make(chan struct{})
	go func() {
		defer close(p.ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		line, err := p.BootLoader.Open(ctx)
		if err != nil {
			return
		}
		defer line.Close()
		if err := p.BootLoader.Set(ctx, true); err != nil {
			return
		}
		go func() { _, _ = io.Copy(line, c); line.Close() }()
		_, _ = io.Copy(c, line)
	}()
	return nil
}

func (p *portLoader) close() {
	p.BootLoader.Close()
	if p.l != nil {
		p.l.Close()
		<-p.ended
	}
}

func TestRedBootCheck(t *testing.T) {
	n := Netload{TFTP: "10.0.0.1"}
	for want, r := range map[string]*RedBoot{
		"tftp is missing": {},
		"telnet =":        {Netload: n, Telnet: "9000"},
		"load_addr":       {Netload: n, LoadAddr: "x"},
		"are options":     {Netload: n, ExecOptions: "; fis init"},
		"go with ipaddr":  {Netload: n, loaderNet: loaderNet{Gateway: "10.0.0.2"}},
	} {
		has(t, r.Check(), want)
	}
	if err := newRedBoot().Check(); err != nil {
		t.Error(err)
	}
}
