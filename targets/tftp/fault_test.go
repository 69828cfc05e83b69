package tftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
)

// hurried serves as serve does, and sends again after a short time.
func hurried(t testing.TB, retry time.Duration, files map[string]string) (*server, *publication) {
	t.Helper()
	l, err := newListener(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(l, zap.NewNop(), retry)
	t.Cleanup(s.close)
	p, err := s.publish(files)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// quiet fails the test when a packet comes within a while.
func (c *client) quiet(what string) {
	c.t.Helper()
	if b, _, err := c.nextWithin(150 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("%s is answered: % x, %v", what, b, err)
	}
}

// block wants data block n.
func (c *client) block(n int) {
	c.t.Helper()
	b, from, err := c.next()
	if err != nil {
		c.t.Fatal(err)
	}
	if binary.BigEndian.Uint16(b) != opData || binary.BigEndian.Uint16(b[2:]) != uint16(n) {
		c.t.Fatalf("got % x; want block %d", b[:4], n)
	}
	c.peer = from
}

// Neither doubled acknowledgements nor doubled requests double the data.
func TestDuplicatesAreNotAnswered(t *testing.T) {
	s, p := hurried(t, 10*time.Second, map[string]string{"k": file(t, "k", 2000)})
	c := dial(t, s.l.addr)
	defer c.close()
	c.ask("k")
	c.block(1)
	for range 5 {
		c.ask("k")
	}
	c.quiet("a doubled request")
	c.ack(0)
	c.quiet("an old acknowledgement")
	c.ack(1)
	c.block(2)
	for range 5 {
		c.ack(1)
	}
	c.quiet("a doubled acknowledgement")
	c.ack(7)
	c.quiet("an acknowledgement of what was not sent")
	c.write(c.peer, []byte{0})
	c.write(c.peer, nil)
	c.write(c.peer, []byte{0, opData, 0, 2, 1, 2, 3})
	c.quiet("nonsense")
	c.ack(2)
	c.block(3)
	if got := p.records(); len(got) != 1 || got[0].Sent != 1024 || got[0].Resent != 0 {
		t.Errorf("%+v", got)
	}
}

func TestStrangersAreToldSo(t *testing.T) {
	s, p := hurried(t, 10*time.Second, map[string]string{"k": file(t, "k", 700)})
	c, stranger := dial(t, s.l.addr), dial(t, s.l.addr)
	defer c.close()
	defer stranger.close()
	c.ask("k")
	c.block(1)
	stranger.peer = c.peer
	stranger.ack(1)
	if _, _, err := stranger.next(); err == nil || err.Error() != "error 5: unknown transfer ID" {
		t.Error(err)
	}
	for range 3 {
		stranger.write(c.peer, errorPacket(errOther, "end it"))
	}
	stranger.quiet("a stranger's error")
	c.ack(1)
	c.block(2)
	c.write(c.peer, errorPacket(3, "Disk \x1b[31mfull"))
	awaitRecords(t, p, func(r []targets.Transfer) bool { return r[0].Failed == "the client says: Disk ?[31mfull" })
}

func awaitRecords(t testing.TB, p *publication, what func([]targets.Transfer) bool) {
	t.Helper()
	await(t, &targets.Serving{Transfers: p.records, Changed: p.changed}, what)
}

// A client that asks for the size only, as loaders do first, failed in nothing.
func TestSizeOnly(t *testing.T) {
	s, p := hurried(t, time.Second, map[string]string{"k": file(t, "k", 700)})
	c := dial(t, s.l.addr)
	defer c.close()
	c.ask("k", option{"TSize", "0"}, option{"multicast", ""}, option{"blksize", "7"}, option{"timeout", "256"}, option{"windowsize", "0"}, option{"blksize", "1000"})
	b, from, err := c.next()
	if err != nil || string(b) != "\x00\x06tsize\x00700\x00" {
		t.Fatalf("%q, %v", b, err)
	}
	c.write(from, errorPacket(errOptions, ""))
	awaitRecords(t, p, func(r []targets.Transfer) bool { return r[0].Asked && r[0].Failed == "" })
}

// A loader that was reset and asks anew from the same port gets its file, and is
// not disturbed by the end of the old transfer.
func TestClientBeginsAnew(t *testing.T) {
	s, _ := hurried(t, 50*time.Millisecond, map[string]string{"k": file(t, "k", 2000), "i": file(t, "i", 600)})
	c := dial(t, s.l.addr)
	defer c.close()
	c.ask("k")
	c.block(1)
	c.ack(1)
	c.block(2)
	c.block(2) // again: it has fallen silent
	if got, err := c.get("i"); err != nil || len(got) != 600 {
		t.Errorf("another file: %d bytes, %v", len(got), err)
	}
}

// The answer to the last block may be lost; a client that asks for the next file
// has this one.
func TestLastAnswerIsLost(t *testing.T) {
	s, p := hurried(t, 10*time.Second, map[string]string{"k": file(t, "k", 700), "i": file(t, "i", 600)})
	c := dial(t, s.l.addr)
	defer c.close()
	c.ask("k")
	c.block(1)
	c.ack(1)
	c.block(2)
	if got, err := c.get("i"); err != nil || len(got) != 600 {
		t.Errorf("the next file: %d bytes, %v", len(got), err)
	}
	awaitRecords(t, p, func(r []targets.Transfer) bool { return len(r) == 2 && r[0].Done && r[0].Sent == 700 && r[1].Done })
}

func TestTimeoutIsTheClients(t *testing.T) {
	s, p := hurried(t, 10*time.Second, map[string]string{"k": file(t, "k", 700)})
	c := dial(t, s.l.addr)
	defer c.close()
	c.ask("k", option{"timeout", "1"})
	for range 2 { // the second one after a second
		b, _, err := c.nextWithin(3 * time.Second)
		if err != nil || string(b) != "\x00\x06timeout\x001\x00" {
			t.Fatalf("%q, %v", b, err)
		}
	}
	awaitRecords(t, p, func(r []targets.Transfer) bool { return r[0].Resent == 1 })
}

func TestWindowGoesOnAfterAGap(t *testing.T) {
	s, p := hurried(t, 10*time.Second, map[string]string{"k": file(t, "k", 8*512+1)})
	c := dial(t, s.l.addr)
	defer c.close()
	c.ask("k", option{"windowsize", "4"})
	_, from, err := c.next()
	if err != nil {
		t.Fatal(err)
	}
	c.peer = from
	c.ack(0)
	for n := 1; n <= 4; n++ {
		c.block(n)
	}
	c.ack(2) // 3 was lost
	for n := 3; n <= 6; n++ {
		c.block(n)
	}
	c.ack(6)
	for n := 7; n <= 9; n++ {
		c.block(n)
	}
	c.quiet("the end")
	c.ack(9)
	awaitRecords(t, p, func(r []targets.Transfer) bool { return r[0].Done && r[0].Resent == 2 })
}

// lossy relays between a client and a server, loses and doubles packets.
type lossy struct {
	front *net.UDPConn
	to    netip.AddrPort // of requests
	wg    sync.WaitGroup

	mu   sync.Mutex
	rnd  *rand.Rand
	back map[netip.AddrPort]*net.UDPConn
	peer map[netip.AddrPort]netip.AddrPort // client -> the transfer's address
}

func newLossy(t testing.TB, to netip.AddrPort) *lossy {
	l := &lossy{to: to, rnd: rand.New(rand.NewPCG(1, 2)), back: map[netip.AddrPort]*net.UDPConn{}, peer: map[netip.AddrPort]netip.AddrPort{}}
	var err error
	if l.front, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	l.wg.Go(func() { l.pump(l.front, l.forward) })
	t.Cleanup(func() {
		l.front.Close()
		l.mu.Lock()
		for _, c := range l.back {
			c.Close()
		}
		l.mu.Unlock()
		l.wg.Wait()
	})
	return l
}

func (l *lossy) pump(c *net.UDPConn, take func(b []byte, from netip.AddrPort)) {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		copies := 1
		switch p := l.rnd.IntN(100); {
		case p < 5:
			copies = 0
		case p < 10:
			copies = 2
		}
		l.mu.Unlock()
		for range copies {
			take(buf[:n], from)
		}
	}
}

// forward is the way from a client to the server.
func (l *lossy) forward(b []byte, from netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.back[from]
	if c == nil {
		var err error
		if c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			return
		}
		l.back[from] = c
		l.wg.Go(func() {
			l.pump(c, func(b []byte, peer netip.AddrPort) {
				l.mu.Lock()
				l.peer[from] = peer
				l.mu.Unlock()
				_, _ = l.front.WriteToUDPAddrPort(b, from)
			})
		})
	}
	to, ok := l.peer[from]
	if !ok || len(b) > 1 && b[1] == opRead {
		to = l.to
	}
	_, _ = c.WriteToUDPAddrPort(b, to)
}

func TestLossAndDuplication(t *testing.T) {
	path := file(t, "k", 400_000)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, p := hurried(t, 20*time.Millisecond, map[string]string{"k": path})
	relay := newLossy(t, s.l.addr)
	front := relay.front.LocalAddr().(*net.UDPAddr).AddrPort()
	for _, window := range []int{1, 4, 16} {
		c := dial(t, front)
		got, err := c.get("k", option{"windowsize", strconv.Itoa(window)})
		c.close()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("window %d: %d of %d bytes, %v", window, len(got), len(want), err)
		}
	}
	resent := 0
	for _, r := range p.records() {
		resent += r.Resent
	}
	if resent < 20 || resent > 5000 {
		t.Errorf("%d packets sent again", resent)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte("\x00\x01k\x00octet\x00"))
	f.Add([]byte("\x00\x01k\x00octet\x00blksize\x001432\x00tsize\x000\x00windowsize\x004\x00timeout\x001\x00"))
	f.Add([]byte("\x00\x02k\x00netascii\x00blksize\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRequest(b)
		if err != nil {
			return
		}
		if k := key(r.name); len(k) > 0 && (k[0] == '/' || bytes.Contains([]byte("/"+k+"/"), []byte("/../"))) {
			t.Errorf("%q becomes %q", r.name, k)
		}
		a := r.agree(12345, 1468)
		if a.block < 8 || a.block > mostBlock || a.window < 1 || a.window > mostWindow || a.timeout < 0 || a.timeout > 255*time.Second {
			t.Errorf("%+v", a)
		}
	})
}

// Whatever comes to its ports, the server goes on, starts nothing and answers
// with no more packets than came.
func FuzzServer(f *testing.F) {
	for _, s := range []string{"", "\x00", "\x00\x01", "\x00\x01\x00\x00", "\x00\x01k", "\x00\x01k\x00mail\x00", "\x00\x02k\x00octet\x00", "\x00\x03\x00\x01data", "\x00\x04\x00\x01",
		"\x00\x05\x00\x00x\x00", "\x00\x06blksize\x00", "\xff\xff\xff\xff", "\x00\x01k\x00octet\x00blksize\x0099999999999999999999\x00"} {
		f.Add([]byte(s))
	}
	s, _ := hurried(f, 10*time.Second, map[string]string{"good": file(f, "k", 100)})
	bad := dial(f, s.l.addr)
	f.Cleanup(bad.close)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1500 {
			return
		}
		if _, err := bad.conn.WriteToUDPAddrPort(b, s.l.addr); err != nil {
			t.Fatal(err)
		}
		c := dial(t, s.l.addr)
		defer c.close()
		c.ask("good")
		c.block(1)
		c.write(c.peer, b)
		c.ack(1)
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := s.total(); n > 20 { // those of earlier inputs may be about to end
			t.Errorf("%d transfers", n)
		}
	})
}
