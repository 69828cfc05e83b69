package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/iana"
	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/proxydhcp"
	"kernsweep/targets/targetstest"
	"kernsweep/targets/tftp"
)

func TestPXEChecks(t *testing.T) {
	good := Netload{TFTP: "10.0.2.2"}
	for _, p := range []PXE{
		{Netload: good, MAC: "52:54:00:12:34:56"},
		{Netload: good, MAC: "5254.0012.3456", Style: []string{"grub", "ipxe"}},
		{Netload: good, MAC: "52-54-00-12-34-5A", Proxy: true, Interface: "eth1"},
		{Netload: Netload{Root: "/srv/tftp"}, MAC: "52540012345a"},
	} {
		if err := p.Check(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for want, p := range map[string]PXE{
		"tftp is missing":         {MAC: "52:54:00:12:34:56"},
		"want an Ethernet":        {Netload: good, MAC: "52:54:00:12:34"},
		"no address of a single":  {Netload: good, MAC: "ff:ff:ff:ff:ff:ff"},
		"is no address":           {Netload: good, MAC: "00:00:00:00:00:00"},
		`style = "syslinux"`:      {Netload: good, MAC: "52:54:00:12:34:56", Style: []string{"syslinux"}},
		"interface is for proxy":  {Netload: good, MAC: "52:54:00:12:34:56", Interface: "eth1"},
		"by its IPv4 address":     {Netload: Netload{TFTP: "labserver"}, MAC: "52:54:00:12:34:56", Proxy: true},
		"exclude each other":      {Netload: Netload{TFTP: "10.0.2.2", Root: "/srv", Listen: ":69"}, MAC: "52:54:00:12:34:56"},
		"tftp is missing: the ad": {Netload: Netload{Root: "/srv"}, MAC: "52:54:00:12:34:56", Proxy: true},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", p, err, want)
		}
	}
	if got := (&PXE{MAC: "52-54-00-12-34-5A"}).Owns(); !slices.Equal(got, []string{"MAC 52:54:00:12:34:5a"}) {
		t.Error(got)
	}
}

func TestPXEConfigs(t *testing.T) {
	k := targets.Kernel{Name: "bfs", Cmdline: "root=/dev/sda1 note=it's", Nonce: "kernsweep.nonce=1", Image: targets.Image{Cmdline: "console=ttyS0"}}
	f := netFiles{Kernel: "ks-1.k", Initrd: "ks-2.i"}
	for style, want := range map[string]string{
		stylePxelinux: `# written by kernsweep: kernel bfs
default kernsweep
prompt 0
label kernsweep
  kernel ks-1.k
  initrd ks-2.i
  append console=ttyS0 root=/dev/sda1 note=it's kernsweep.nonce=1
`,
		styleGrub: `# written by kernsweep: kernel bfs
linux /ks-1.k 'console=ttyS0' 'root=/dev/sda1' 'note=it'\''s' 'kernsweep.nonce=1'
initrd /ks-2.i
boot
`,
		styleIPXE: `#!ipxe
# written by kernsweep: kernel bfs
kernel ks-1.k initrd=ks-2.i console=ttyS0 root=/dev/sda1 note=it's kernsweep.nonce=1
initrd ks-2.i
boot
`,
	} {
		if got, err := kernelConfig(style, f, k); err != nil || got != want {
			t.Errorf("%s: %v\n%s", style, err, got)
		}
	}
	for _, bad := range []string{"a && b", "x=${net0/mac}", "a || b", "a #b", "a ; b"} {
		if _, err := kernelConfig(styleIPXE, f, targets.Kernel{Cmdline: bad}); err == nil || !strings.Contains(err.Error(), "leave \"ipxe\" out") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, s := range pxeStyles() {
		if _, err := kernelConfig(s, f, targets.Kernel{Cmdline: "a\nb"}); err == nil {
			t.Errorf("%s passes a line break", s)
		}
	}
}

// pxeFixture is a target that cannot be restarted but by a counter.
func pxeFixture(t *testing.T) (*targets.Target, targets.Kernel, *counter) {
	t.Helper()
	dir := t.TempDir()
	k := targets.Kernel{Name: "k", Nonce: "kernsweep.nonce=1", Image: targets.Image{Kernel: filepath.Join(dir, "k"), Initrd: filepath.Join(dir, "i")}}
	for _, f := range []string{k.Image.Kernel, k.Image.Initrd} {
		if err := os.WriteFile(f, []byte(f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := new(counter)
	files := tftp.New(zap.NewNop())
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return &targets.Target{Name: "server", Power: c, Serve: files.Serve,
		Dial: func(context.Context, targets.SSH, targets.DialOptions) (targets.Conn, error) {
			return nil, errors.New("it is off")
		}}, k, c
}

type counter struct{ ons int }

func (c *counter) Set(_ context.Context, on bool) error {
	if on {
		c.ons++
	}
	return nil
}

func readPXE(t *testing.T, root string) string {
	t.Helper()
	all := ""
	for _, name := range []string{"pxelinux.cfg/01-52-54-00-00-00-01", "grub/grub.cfg-01-52-54-00-00-00-01", "MAC-525400000001.ipxe"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	return all
}

func wantLocal(t *testing.T, root, when string) {
	t.Helper()
	if got := readPXE(t, root); strings.Contains(got, "ks-") || strings.Count(got, "exit\n") != 2 || !strings.Contains(got, "localboot 0\n") {
		t.Errorf("%s the files are\n%s", when, got)
	}
}

// With another server's folder the files start the kernel until the next boot or
// the end, and never replace somebody's own.
func TestPXEFiles(t *testing.T) {
	tg, k, power := pxeFixture(t)
	p := &PXE{Netload: Netload{Root: t.TempDir()}, MAC: "52:54:00:00:00:01"}
	if p.Traits().Returns {
		t.Error("another server's files are said to be read once")
	}
	if err := p.Boot(t.Context(), tg, k); err != nil {
		t.Fatal(err)
	}
	if got := readPXE(t, p.Root); strings.Count(got, "kernsweep.nonce=1") != 3 || power.ons != 1 {
		t.Errorf("%d starts, files\n%s", power.ons, got)
	}
	if i, err := os.Stat(filepath.Join(p.Root, "pxelinux.cfg/01-52-54-00-00-00-01")); err != nil || i.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	wantLocal(t, p.Root, "after the end")

	theirs := filepath.Join(p.Root, "MAC-525400000001.ipxe")
	if err := os.WriteFile(theirs, []byte("#!ipxe\nsanboot http://example/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Boot(t.Context(), tg, k); err == nil || !strings.Contains(err.Error(), theirs+" decides already") {
		t.Errorf("somebody's file: %v", err)
	}
	if err := os.Remove(theirs); err != nil {
		t.Fatal(err)
	}
	tg.Power = nil
	if err := p.Boot(t.Context(), tg, k); err == nil || !strings.Contains(err.Error(), "cannot be restarted") {
		t.Errorf("no supply: %v", err)
	}
	wantLocal(t, p.Root, "after a failed start")
}

// A controller that is killed leaves no machine that starts a kernel under test
// for ever.
func TestPXEFilesOfAKilledController(t *testing.T) {
	const mark = "KERNSWEEP_TEST_PXE_ROOT"
	if root := os.Getenv(mark); root != "" { // it is the controller
		tg, k, _ := pxeFixture(t)
		p := &PXE{Netload: Netload{Root: root}, MAC: "52:54:00:00:00:01"}
		if err := p.Boot(t.Context(), tg, k); err != nil {
			t.Fatal(err)
		}
		fmt.Println("armed")
		<-t.Context().Done()
		return
	}
	root := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), mark+"="+root)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := out.Read(buf); err != nil || string(buf) != "armed" {
		t.Fatalf("%q, %v", buf, err)
	}
	if got := readPXE(t, root); !strings.Contains(got, "ks-") {
		t.Fatalf("not armed:\n%s", got)
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // killed
	limit, tick := time.After(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for strings.Contains(readPXE(t, root), "ks-") {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the files still start the kernel")
		}
	}
	wantLocal(t, root, "after the crash")
}

// Our own server's files start the kernel until the machine has it.
func TestPXEOwnServer(t *testing.T) {
	tg, k, _ := pxeFixture(t)
	curl := targetstest.Tool(t, "curl")
	l := targetstest.FreePort(t)
	p := &PXE{Netload: Netload{TFTP: "127.0.0.1", Listen: fmt.Sprintf("127.0.0.1:%d", l)}, MAC: "52:54:00:00:00:01"}
	if err := p.Boot(t.Context(), tg, k); err != nil {
		t.Fatal(err)
	}
	get := func(name string) string {
		out, err := exec.Command(curl, "-sS", fmt.Sprintf("tftp://127.0.0.1:%d/%s", l, name)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		return string(out)
	}
	if notes := strings.Join(p.Notes(), "\n"); !strings.Contains(notes, "nobody asked for ks-") {
		t.Errorf("the notes: %s", notes)
	}
	get(p.names[0]) // another machine with the same kernel
	get(p.names[1])
	if p.fetched() {
		t.Error("another machine's transfers are ours")
	}
	script := get("MAC-525400000001.ipxe")
	if !strings.Contains(script, p.names[0]) {
		t.Fatalf("the script:\n%s", script)
	}
	limit, tick := time.After(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !strings.HasSuffix(get("MAC-525400000001.ipxe"), "exit\n") {
		get(p.names[0])
		get(p.names[1])
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the machine has its kernel, and its script starts it again")
		}
	}
	if notes := strings.Join(p.Notes(), "\n"); !strings.Contains(notes, "127.0.0.1 fetched "+p.names[0]) || !strings.Contains(notes, "fetched MAC-525400000001.ipxe") {
		t.Errorf("the notes: %s", notes)
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
}

func TestPXELoaders(t *testing.T) {
	dir := t.TempDir()
	bios := filepath.Join(dir, "core.0")
	if err := os.WriteFile(bios, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	mac, err := parseMAC("525400000001")
	if err != nil {
		t.Fatal(err)
	}
	p := &PXE{BIOS: bios, Style: []string{"grub"}, mac: mac}
	if got, err := p.loader(proxydhcp.Client{Arch: iana.INTEL_X86PC}); got != "core.0" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := p.loader(proxydhcp.Client{IPXE: true}); got != "core.0" || err != nil {
		t.Errorf("iPXE without its style: %s, %v", got, err)
	}
	if got := p.loaderFiles()["core.0"]; got != bios {
		t.Errorf("served: %s", got)
	}
	p.Style = nil
	if got, err := p.loader(proxydhcp.Client{IPXE: true}); got != "MAC-525400000001.ipxe" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	p = &PXE{Netload: Netload{Root: dir}, Style: []string{"pxelinux"}}
	if err := p.anyLoader(); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "pxelinux.0")+" (of pxelinux syslinux-common)") {
		t.Error(err)
	}
	if _, err := p.loader(proxydhcp.Client{Arch: iana.PPC_OPAL}); err == nil {
		t.Error("PowerPC has a loader")
	}
}
