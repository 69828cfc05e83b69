package boot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// ubootShell is a scripted U-Boot with an environment; simple is the parser
// without hush, which joins words and takes backslashes away.
type ubootShell struct {
	env    map[string]string
	tftp   func(b *targetstest.BootLoader, name string) string // what the transfer says
	start  string                                              // what the boot command says
	simple bool
}

var vendorPrompts = []string{"=> ", "U-Boot> ", "u-boot> ", "ath> ", "ar7240> ", "Marvell>> ", "maltael # ", "MT7621 # ", "(IPQ) # ", "IPQ40xx # ", "OpenRD> ", "DM36x EVM # ", "U-Boot # ", "hisilicon # "}

func (s *ubootShell) machine() *targetstest.BootLoader {
	return &targetstest.BootLoader{
		Banner: "\r\n\r\nU-Boot 1.1.4 (Nov 11 2009 - 16:21:46)\r\n\r\nDRAM:  64 MB\r\nHit any key to stop autoboot:  1 ",
		Prompt: "ath> ", CtrlC: "<INTERRUPT>\r\n", Deaf: 400 * time.Millisecond, Window: 300 * time.Millisecond, Longest: 255,
		Flash: "\b\b\b 0 \r\n## Booting image at 9f050000 ...\r\nStarting kernel ...\r\n\r\n" + flashKernel,
		Run:   s.run,
	}
}

// words takes a line apart as the parsers do.
func (s *ubootShell) words(line string) []string {
	var words []string
	word, quoted, double, any := "", false, false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"' && !quoted && !s.simple:
			double, any = !double, true
		case c == '$' && !quoted && strings.HasPrefix(line[i:], "${"):
			name, _, _ := strings.Cut(line[i+2:], "}")
			i += len(name) + 2
			if double { // hush takes quotes away here too
				word += regexp.MustCompile(`\\(.)|'`).ReplaceAllString(s.env[name], "$1")
				continue
			}
			parts := strings.Split(s.env[name], " ") // what it holds is not looked at again
			for _, p := range parts[:len(parts)-1] {
				words, word = append(words, word+p), ""
			}
			word, any = word+parts[len(parts)-1], true
		case c == '\'' && !double:
			quoted, any = !quoted, true
		case c == '\\' && i+1 < len(line):
			i++
			word, any = word+string(line[i]), true
		case c == ' ' && !quoted && !double:
			if any {
				words = append(words, word)
			}
			word, any = "", false
		default:
			word, any = word+string(c), true
		}
	}
	if any {
		words = append(words, word)
	}
	return words
}

func (s *ubootShell) run(b *targetstest.BootLoader, line string) bool {
	w := s.words(line)
	switch {
	case w[0] == "echo":
		b.Say(strings.Join(w[1:], " ") + "\r\n")
	case w[0] == "version":
		b.Say("U-Boot 1.1.4 (Nov 11 2009 - 16:21:46)\r\n")
	case w[0] == "setenv" && len(w) > 64:
		b.Say("setenv - set environment variables\r\n\r\nUsage:\r\nsetenv [-f] name value ...\r\n")
	case w[0] == "setenv" && len(w) > 2:
		b.Say("eth1: link down\r\n") // the loader's own words at any time
		s.env[w[1]] = strings.Join(w[2:], " ")
	case w[0] == "printenv":
		if v, ok := s.env[w[1]]; ok {
			b.Say(w[1] + "=" + v + "\r\n")
		} else {
			b.Say("## Error: \"" + w[1] + "\" not defined\r\n")
		}
	case w[0] == "tftpboot":
		b.Say("Using eth0 device\r\nTFTP from server 10.0.0.1; our IP address is 10.0.0.2\r\nFilename '" + w[2] + "'.\r\nLoad address: " + w[1] + "\r\nLoading: ")
		for range 4 {
			b.Wait(2 * time.Second)
			b.Say("#################################\r\n\t ")
		}
		b.Say(s.tftp(b, w[2]))
	case w[0] == "bootm" || w[0] == "go":
		b.Say(s.start)
		return !strings.Contains(s.start, "Starting kernel")
	default:
		b.Say("Unknown command '" + w[0] + "' - try 'help'\r\n")
	}
	return true
}

func arrives(size int) func(*targetstest.BootLoader, string) string {
	return func(*targetstest.BootLoader, string) string {
		return fmt.Sprintf("done\r\nBytes transferred = %d (%x hex)\r\n", size, size)
	}
}

const ubootStarts = "## Booting image at 81000000 ...\r\n   Image Name:   lab\r\nStarting kernel ...\r\n\r\n" + panics

func newShell(size int) *ubootShell {
	return &ubootShell{env: map[string]string{"loadaddr": "0x81000000", "ipaddr": "10.0.0.2"}, tftp: arrives(size), start: ubootStarts}
}

func newUBoot() *UBoot { return &UBoot{Netload: Netload{TFTP: "10.0.0.1"}} }

const uImageSize = 1 << 20

func TestUBootScripted(t *testing.T) {
	hard := `a=1;2 b="c d" e=$x f='g h' i=j\k ` + strings.Repeat("mtdparts=spi0.0:256k(u-boot)ro,64k(u-boot-env) ", 6) + "z=1"
	for name, c := range map[string]struct {
		change func(s *ubootShell, b *targetstest.BootLoader)
		args   string
	}{
		"clean":            {nil, ""},
		"hush":             {nil, hard},
		"simple parser":    {func(s *ubootShell, _ *targetstest.BootLoader) { s.simple = true }, hard},
		"lost and doubled": {func(_ *ubootShell, b *targetstest.BootLoader) { b.Drop, b.Double, b.Faults = 71, 89, 5 }, hard},
		"foreign lines":    {func(_ *ubootShell, b *targetstest.BootLoader) { b.Noise, b.NoiseAt = "\r\neth1: link down\r\n", 31 }, hard},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(uImageSize)
			b := s.machine()
			if c.change != nil {
				c.change(s, b)
			}
			k := image(t, 0, "\x27\x05\x19\x56", uImageSize)
			k.Cmdline = c.args
			said, judged := scripted(t, b, newUBoot(), k)
			if said != nil || stageOf(t, judged) != targets.StageNoRoot {
				t.Fatal(said, judged)
			}
			typed := b.Typed()
			if typed[len(typed)-1] != "bootm 0x81000000" || s.env["serverip"] != "10.0.0.1" {
				t.Errorf("%q", typed)
			}
			want := strings.Join(strings.Fields("console=ttyS0,115200 "+c.args), " ") + " kernsweep.nonce="
			if !strings.HasPrefix(s.env["bootargs"], want) {
				t.Errorf("bootargs is  %q\nand begins   %q", s.env["bootargs"], want)
			}
			if slices.ContainsFunc(typed, func(l string) bool { return strings.Contains(l, "saveenv") || len(l) > 240 }) {
				t.Errorf("%q", typed)
			}
		})
	}
}

// slowPlug switches at once and says so late, as plugs behind a cloud do: the
// window is over then.
type slowPlug struct{ *targetstest.BootLoader }

func (p slowPlug) Set(ctx context.Context, on bool) error {
	err := p.BootLoader.Set(ctx, on)
	select {
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
	return err
}

func TestUBootSlowPlug(t *testing.T) {
	s := newShell(uImageSize)
	b := s.machine()
	said, judged := scriptedWith(t, b, slowPlug{b}, newUBoot(), image(t, 0, "\x27\x05\x19\x56", uImageSize))
	if said != nil || stageOf(t, judged) != targets.StageNoRoot || b.Sessions != 2 {
		t.Errorf("%v, %v, %d starts", said, judged, b.Sessions)
	}
}

func TestUBootPrompts(t *testing.T) {
	for _, p := range vendorPrompts {
		s := newShell(uImageSize)
		b := s.machine()
		b.Prompt = p
		if said, _ := scripted(t, b, newUBoot(), image(t, 0, "\x27\x05\x19\x56", uImageSize)); said != nil {
			t.Errorf("%q: %v", p, said)
		}
	}
	for _, no := range []string{"root@OpenWrt:/# ", "/ # ", "~ # ", "bash-5.1# ", "$ ", "OpenWrt login: ", "[    1.0] sda: sda1 # ", "> "} {
		if regexp.MustCompile(`^(?:` + ubootKind.prompt + `) ?$`).MatchString(no) {
			t.Errorf("%q is taken for a loader's prompt", no)
		}
	}
}

func TestUBootFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *ubootShell, u *UBoot)
		stage  string
		want   []string
	}{
		"half a file": {func(s *ubootShell, _ *UBoot) { s.tftp = arrives(4711) }, "", []string{"gave up after 3 tries", "4711 of 1048576 bytes"}},
		"file missing": {func(s *ubootShell, _ *UBoot) {
			s.tftp = func(*targetstest.BootLoader, string) string {
				return "\r\nTFTP error: 'File not found' (1)\r\nNot retrying...\r\n"
			}
		}, "", []string{"the TFTP server at 10.0.0.1 does not give ks-", "File not found"}},
		"network down": {func(s *ubootShell, _ *UBoot) {
			s.tftp = func(b *targetstest.BootLoader, _ string) string {
				b.Say("T T T T T T T T T T \r\nRetry count exceeded; starting again\r\n")
				b.Wait(time.Hour)
				return ""
			}
		}, "", []string{"gave up after 3 tries"}},
		"wrong image": {func(s *ubootShell, _ *UBoot) {
			s.start = "Wrong Image Format for bootm command\r\nERROR: can't get kernel image!\r\n"
		}, targets.StageRefused, []string{"Wrong Image Format"}},
		"bad checksum": {func(s *ubootShell, _ *UBoot) {
			s.start = "   Verifying Checksum ... Bad Data CRC\r\nERROR: can't get kernel image!\r\n"
		}, targets.StageRefused, []string{"Bad Data CRC"}},
		"no address": {func(s *ubootShell, _ *UBoot) { delete(s.env, "loadaddr") }, "", []string{"set kernel_addr"}},
		"commands":   {func(s *ubootShell, u *UBoot) { u.Commands = []string{"nosuch ${ks_kernel}", "bootm"} }, "", []string{"Unknown command 'nosuch'"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, u := newShell(uImageSize), newUBoot()
			c.change(s, u)
			said, judged := scripted(t, s.machine(), u, image(t, 0, "\x27\x05\x19\x56", uImageSize))
			if stageOf(t, judged) != c.stage {
				t.Errorf("stage %q", stageOf(t, judged))
			}
			has(t, said, c.want...)
		})
	}
}

func TestUBootCommands(t *testing.T) {
	s, u := newShell(uImageSize), newUBoot()
	u.Commands = []string{"tftpboot 0x80800000 ${ks_kernel}", "setenv bootargs ${ks_args} more", "bootm 0x80800000"}
	if said, _ := scripted(t, s.machine(), u, image(t, 0, "\x27\x05\x19\x56", uImageSize)); said != nil {
		t.Fatal(said)
	}
	if !strings.HasSuffix(s.env["bootargs"], " more") || !strings.HasPrefix(s.env["ks_kernel"], "ks-") {
		t.Errorf("%q", s.env)
	}
}

// The command is chosen by the image's first bytes.
func TestUBootHow(t *testing.T) {
	for want, c := range map[string]struct {
		at    int
		magic string
	}{"bootm": {0, "\xd0\x0d\xfe\xed"}, "booti": {0x38, "ARM\x64"}, "bootz": {0x24, "\x18\x28\x6f\x01"}, "zboot": {0x202, "HdrS"}} {
		if how, err := ubootHow(image(t, c.at, c.magic, 4096).Image.Kernel); how != want || err != nil {
			t.Errorf("%s: %q %v", want, how, err)
		}
	}
	_, err := ubootHow(image(t, 0, "\x7fELF", 4096).Image.Kernel)
	has(t, err, "pack it with mkimage")
	empty := filepath.Join(t.TempDir(), "k")
	if err := os.WriteFile(empty, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = ubootHow(empty)
	has(t, err, "too short")
}

func TestUBootCheck(t *testing.T) {
	n := Netload{TFTP: "10.0.0.1"}
	for want, u := range map[string]*UBoot{
		"tftp is missing": {},
		"network =":       {Netload: n, Network: "bootp"},
		"exclude":         {Netload: n, Network: "dhcp", loaderNet: loaderNet{Address: "10.0.0.2"}},
		"how =":           {Netload: n, How: "boot"},
		"kernel_addr":     {Netload: n, KernelAddr: "$loadaddr"},
		"not one line":    {Netload: n, Commands: []string{"a\nb"}},
		"pace":            {Netload: n, Loader: Loader{Pace: time.Minute}},
		"line =":          {Netload: n, Loader: Loader{Line: 10}},
		"retries":         {Netload: n, Loader: Loader{Retries: -1}},
		"tftp_listen":     {Netload: Netload{TFTP: "10.0.0.1", Listen: "nowhere"}},
	} {
		has(t, u.Check(), want)
	}
	if err := newUBoot().Check(); err != nil {
		t.Error(err)
	}
}
