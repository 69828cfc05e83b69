package tftp

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file writes size bytes of no pattern and returns its path.
func file(t testing.TB, name string, size int) string {
	t.Helper()
	b := make([]byte, size)
	if _, err := rand.NewChaCha8([32]byte{byte(size)}).Read(b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve publishes files on a free port of 127.0.0.1 until the test ends.
func serve(t testing.TB, files map[string]string) *targets.Serving {
	t.Helper()
	p := New(zap.NewNop())
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := p.Serve(t.Context(), "127.0.0.1:0", files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// await waits until the serving's transfers satisfy what.
func await(t testing.TB, s *targets.Serving, what func([]targets.Transfer) bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !what(s.Transfers()) {
		select {
		case <-s.Changed:
		case <-limit:
			t.Fatalf("transfers: %v", s.Transfers())
		}
	}
}

func same(t testing.TB, got, want string) {
	t.Helper()
	a, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%d bytes came, another content than the %d bytes that are served", len(a), len(b))
	}
}

// clients are the command lines of real TFTP clients.
func clients(t testing.TB, addr netip.AddrPort, name, to string) map[string][]string {
	host, port := addr.Addr().String(), strconv.Itoa(int(addr.Port()))
	url := "tftp://" + addr.String() + "/" + name
	tftp, curl, box := targetstest.Tool(t, "tftp"), targetstest.Tool(t, "curl"), targetstest.Tool(t, "busybox")
	return map[string][]string{
		"tftp-hpa":         {tftp, "-m", "binary", host, port, "-c", "get", name, to},
		"curl":             {curl, "-sS", "-o", to, url},
		"curl blksize":     {curl, "-sS", "--tftp-blksize", "8192", "-o", to, url},
		"curl no options":  {curl, "-sS", "--tftp-no-options", "-o", to, url},
		"busybox":          {box, "tftp", "-g", "-r", name, "-l", to, host, port},
		"busybox blksize":  {box, "tftp", "-g", "-b", "1432", "-r", name, "-l", to, host, port},
		"busybox odd size": {box, "tftp", "-g", "-b", "65464", "-r", "/" + name, "-l", to, host, port},
	}
}

func TestRealClients(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, 8192, 300_000} {
		path := file(t, "kernel", size)
		s := serve(t, map[string]string{"ks-1.k": path})
		to := filepath.Join(t.TempDir(), "got")
		n := 0
		for client, argv := range clients(t, s.Addr, "ks-1.k", to) {
			if size == 0 && strings.HasPrefix(client, "curl") {
				continue // curl 7.88 fails on an empty file of any server
			}
			if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%s, %d bytes: %v: %s", client, size, err, out)
				continue
			}
			same(t, to, path)
			n++
			_ = os.Remove(to)
		}
		await(t, s, func(all []targets.Transfer) bool {
			done := 0
			for _, x := range all {
				if x.Done && x.Sent == int64(size) {
					done++
				}
			}
			return done == n
		})
	}
}

// A file of more than 65535 blocks: the number starts again at 0.
func TestBlockNumbersStartAgain(t *testing.T) {
	path := file(t, "initrd", 70_000*512+7)
	s := serve(t, map[string]string{"i": path})
	to := filepath.Join(t.TempDir(), "got")
	argv := clients(t, s.Addr, "i", to)["tftp-hpa"]
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	same(t, to, path)
}

func TestNetascii(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("default ks\nlabel\rks\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, map[string]string{"text": path, "kernel": file(t, "k", mostText+1)})
	to := filepath.Join(t.TempDir(), "got")
	tftp := targetstest.Tool(t, "tftp")
	get := func(name string) string {
		out, err := exec.Command(tftp, "-m", "ascii", "127.0.0.1", strconv.Itoa(int(s.Addr.Port())), "-c", "get", name, to).CombinedOutput()
		return fmt.Sprint(string(out), err)
	}
	if said := get("text"); strings.Contains(said, "rror") {
		t.Fatal(said)
	}
	same(t, to, path)
	if said := get("kernel"); !strings.Contains(said, "binary") {
		t.Errorf("a kernel as text: %s", said)
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	path := file(t, "kernel", 2_000_000)
	s := serve(t, map[string]string{"k": path})
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			c := dial(t, s.Addr)
			defer c.close()
			got, err := c.get("k", option{"blksize", "1432"}, option{"windowsize", strconv.Itoa(1 + i%5)})
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("client %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wg.Wait()
	await(t, s, func(all []targets.Transfer) bool {
		for _, x := range all {
			if !x.Done {
				return false
			}
		}
		return len(all) == 64
	})
}

func TestOnlyWhatIsServed(t *testing.T) {
	secret := file(t, "secret", 10)
	s := serve(t, map[string]string{"dir/ks-1.k": file(t, "k", 1000)})
	for _, name := range []string{secret, "../../../../../.." + secret, "dir", "dir/", "..", "/", ".", "DIR/KS-1.K", "dir/ks-1.k/..", "dir/ks-1.k\n", `dir\..\..\etc\passwd`} {
		c := dial(t, s.Addr)
		_, err := c.get(name)
		c.close()
		if err == nil || !strings.Contains(err.Error(), "error 1") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"dir/ks-1.k", "/dir/ks-1.k", `\dir\ks-1.k`, "./dir//ks-1.k", "../dir/ks-1.k", "/x/../dir/ks-1.k"} {
		c := dial(t, s.Addr)
		b, err := c.get(name)
		c.close()
		if err != nil || len(b) != 1000 {
			t.Errorf("%q: %d bytes, %v", name, len(b), err)
		}
	}
	c := dial(t, s.Addr)
	defer c.close()
	c.write(s.Addr, append([]byte{0, opWrite}, "dir/ks-1.k\x00octet\x00"...))
	if _, _, err := c.next(); err == nil || !strings.Contains(err.Error(), "error 2") {
		t.Errorf("a write: %v", err)
	}
}

func TestServing(t *testing.T) {
	p := New(zap.NewNop())
	a, b := file(t, "a", 100), file(t, "b", 100)
	one, err := p.Serve(t.Context(), "127.0.0.1:0", map[string]string{"k": a})
	if err != nil {
		t.Fatal(err)
	}
	at := one.Addr.String()
	two, err := p.Serve(t.Context(), at, map[string]string{"/k": a, "i": b})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Serve(t.Context(), at, map[string]string{"k": b}); err == nil || !strings.Contains(err.Error(), "one name") {
		t.Errorf("one name for two files: %v", err)
	}
	one.Release()
	one.Release()
	c := dial(t, two.Addr)
	defer c.close()
	if got, err := c.get("k"); err != nil || len(got) != 100 {
		t.Errorf("the other lane's file: %v", err)
	}
	await(t, two, func([]targets.Transfer) bool { return two.Fetched(netip.Addr{}, "k") })
	if two.Fetched(netip.Addr{}, "k", "i") || one.Fetched(netip.Addr{}, "k") || two.Fetched(netip.MustParseAddr("127.0.0.2"), "k") {
		t.Error("what was not fetched is said to be")
	}
	facts := strings.Join(two.Facts("k"), "\n")
	if !strings.HasPrefix(facts, "TFTP: 127.0.0.1 fetched k, 100 bytes in ") {
		t.Error(facts)
	}
	if facts := strings.Join(two.Facts("i"), "\n"); !strings.Contains(facts, "nobody asked for i") {
		t.Error(facts)
	}
	two.Release()
	again, err := p.Serve(t.Context(), at, map[string]string{"k": b}) // the port is free again
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	again.Release()
	if _, err := p.Serve(t.Context(), at, map[string]string{"k": b}); err == nil {
		t.Error("a closed pool serves")
	}
}

func TestWhyItCannotListen(t *testing.T) {
	p := New(zap.NewNop())
	defer p.Close()
	k := file(t, "k", 1)
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for listen, want := range map[string]string{
		taken.LocalAddr().String(): fmt.Sprintf("is taken by tftp.test (process %d)", os.Getpid()),
		"198.51.100.7:69":          "not an address of this machine",
		"127.0.0.1":                "want host:port",
		"127.0.0.1:tftp":           "port is a number",
	} {
		if _, err := p.Serve(t.Context(), listen, map[string]string{"k": k}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", listen, err)
		}
	}
	if err := explain(netip.MustParseAddrPort("127.0.0.1:69"), os.ErrPermission); !strings.Contains(err.Error(), "setcap cap_net_bind_service=+ep /") {
		t.Error(err)
	}
	for _, path := range []string{t.TempDir(), "/no/such/file", "/dev/zero"} {
		if _, err := p.Serve(t.Context(), "127.0.0.1:0", map[string]string{"k": path}); err == nil {
			t.Errorf("%s is served", path)
		}
	}
}

// A server on every address answers from the one that was asked.
func TestAnswersComeFromTheAddressThatWasAsked(t *testing.T) {
	p := New(zap.NewNop())
	defer p.Close()
	for listen, asked := range map[string]string{"0.0.0.0:0": "127.0.0.77", "[::]:0": "::1"} {
		s, err := p.Serve(t.Context(), listen, map[string]string{"k": file(t, "k", 2000)})
		if err != nil {
			t.Fatal(err)
		}
		to := netip.AddrPortFrom(netip.MustParseAddr(asked), s.Addr.Port())
		c := dial(t, to)
		if got, err := c.get("k"); err != nil || len(got) != 2000 || c.peer.Addr() != to.Addr() {
			t.Errorf("%s: %d bytes from %s, %v", asked, len(got), c.peer, err)
		}
		c.write(to, append([]byte{0, opRead}, "x\x00octet\x00"...))
		if _, from, err := c.next(); err == nil || from.Addr() != to.Addr() {
			t.Errorf("a refusal from %s: %v", from, err)
		}
		c.close()
	}
}

func TestCloseEndsTransfers(t *testing.T) {
	p := New(zap.NewNop())
	s, err := p.Serve(context.Background(), "127.0.0.1:0", map[string]string{"k": file(t, "k", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, s.Addr)
	defer c.close()
	c.ask("k")
	if _, _, err := c.next(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.Release()
	if took := time.Since(begin); took > 500*time.Millisecond {
		t.Errorf("the end took %s", took)
	}
	if _, _, err := c.next(); err == nil || !strings.Contains(err.Error(), "no longer served") {
		t.Errorf("the client was told: %v", err)
	}
	if got := s.Transfers(); len(got) != 1 || got[0].Failed != "no longer served" {
		t.Error(got)
	}
}
