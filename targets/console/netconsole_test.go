package console

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
)

// sendTo sends packets to an open netconsole.
func sendTo(t *testing.T, n *netLine, packets ...string) {
	t.Helper()
	c, err := net.DialUDP("udp", nil, n.conn.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, p := range packets {
		if _, err := c.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
}

func openNetconsole(t *testing.T, from string) *netLine {
	t.Helper()
	c := &Netconsole{Listen: fmt.Sprintf("127.0.0.1:%d", targetstest.FreePort(t)), From: from}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	rw, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rw.Close() })
	return rw.(*netLine)
}

func TestNetconsole(t *testing.T) {
	for name, c := range map[string]struct{ packets, want []string }{
		"plain":    {[]string{"Linux version 2.6.30\n", "half a ", "line\n"}, []string{"Linux version 2.6.30\r\nhalf a line\r\n"}},
		"extended": {[]string{"6,444,501151268,-;netpoll: netconsole: local port 1234\n SUBSYSTEM=net\n"}, []string{"[  501.151268] netpoll: netconsole: local port 1234\r\n"}},
		"release":  {[]string{"6.4.0,6,444,501151268,-,caller=T1;a;b\n"}, []string{"[  501.151268] a;b\r\n"}},
		"order": {[]string{"6,1,1000000,-;a\n", "6,3,3000000,-;c\n", "6,2,2000000,-;b\n"},
			[]string{"[    1.000000] a\r\n[    2.000000] b\r\n[    3.000000] c\r\n"}},
		"lost": {[]string{"6,1,1000000,-;a\n", "6,5,2000000,-;b\n"},
			[]string{"[    1.000000] a\r\n", "[kernsweep: netconsole: records 2 to 4 did not come (lost, or below the console's log level)]\r\n", "[    2.000000] b\r\n"}},
		"late": {[]string{"6,7,1000000,-;a\n", "6,6,900000,-;before\n", "6,8,2000000,-;b\n"},
			[]string{"a\r\n[kernsweep: netconsole: record 6 came late or twice:]\r\n[    0.900000] before\r\n[    2.000000] b\r\n"}},
		"a new kernel": {[]string{"6,900,99000000,-;reboot: Restarting system\n", "6,0,0,-;Linux version 6.1\n", "6,1,0,-;Command line: x\n"},
			[]string{"[   99.000000] reboot: Restarting system\r\n[    0.000000] Linux version 6.1\r\n[    0.000000] Command line: x\r\n"}},
		"fragments": {[]string{"6,416,1758426,-,ncfrag=16/33; the 2nd chunk.\n", "6,416,1758426,-,ncfrag=0/33;the first chunk,"},
			[]string{"[    1.758426] the first chunk, the 2nd chunk.\r\n"}},
		"a fragment is lost": {[]string{"6,416,1758426,-,ncfrag=0/33;the first chunk,"},
			[]string{"[    1.758426] the first chunk,?????????????????\r\n", "17 of 33 bytes of record 416 did not come"}},
		"a line in pieces": {[]string{"4,1,1000000,c;sda:", "4,2,1000001,+; sda1", "4,3,1000002,+; sda2", "6,4,2000000,-;next\n"},
			[]string{"[    1.000000] sda: sda1 sda2\r\n[    2.000000] next\r\n"}},
		"escapes":   {[]string{`6,1,0,-;two\x0alines \x5c and \xc3\xa9 \x4` + "\n"}, []string{"two\r\nlines \\ and é \\x4\r\n"}},
		"malformed": {[]string{"6,1;x\n", "6,1,2,-,ncfrag=9/3;xx", "6,1,2,-,ncfrag=-1/99999999;xx\n", ";\n", "99999999999999999999,1,1,-;y\n"}, []string{"6,1;x\r\n", "ncfrag=9/3;xx", ";\r\n", "99999999999999999999,1,1,-;y\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := openNetconsole(t, "127.0.0.1")
			sendTo(t, n, c.packets...)
			n.conn.SetReadDeadline(time.Time{})
			var got strings.Builder
			buf := make([]byte, 100)
			limit := time.AfterFunc(5*time.Second, func() { n.Close() })
			defer limit.Stop()
			for _, w := range c.want {
				for !strings.Contains(got.String(), w) {
					m, err := n.Read(buf)
					got.Write(buf[:m])
					if err != nil {
						t.Fatalf("%v; got %q, want %q", err, got.String(), w)
					}
				}
			}
		})
	}
}

// Only the target's packets count, nothing can be typed, and Close ends a read.
func TestNetconsoleOfAnother(t *testing.T) {
	n := openNetconsole(t, "127.0.0.2")
	sendTo(t, n, "forged\n")
	if _, err := n.Write([]byte("x")); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Error(err)
	}
	got := make(chan string)
	go func() {
		m, err := n.Read(make([]byte, 100))
		got <- fmt.Sprint(m, err != nil)
	}()
	c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}, n.conn.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "true\n")
	if s := <-got; s != "6 false" {
		t.Errorf("the first read: %s", s)
	}
	go func() {
		m, err := n.Read(make([]byte, 100))
		got <- fmt.Sprint(m, err != nil)
	}()
	n.Close()
	if s := <-got; s != "0 true" {
		t.Errorf("after Close: %s", s)
	}
	a := openNetconsole(t, "")
	if _, err := (&Netconsole{Listen: a.conn.LocalAddr().String()}).Open(t.Context()); err == nil || !strings.Contains(err.Error(), "another console") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// Whatever comes, memory is bounded and no line is without an end.
func FuzzNetconsole(f *testing.F) {
	f.Add("6,1,1,-;a\n", "6,3,1,c,ncfrag=2/9;b")
	f.Add("6.4.0,6,444,501151268,-,caller=T1;x\\x0a", ";")
	f.Fuzz(func(t *testing.T, a, b string) {
		var n netRecords
		now := time.Unix(0, 0)
		var out []byte
		for i := range 300 {
			out = n.add(out[:0], []byte([2]string{a, b}[i%2]), now)
			now = now.Add(time.Millisecond)
		}
		if len(n.held) > maxHeld {
			t.Errorf("%d held", len(n.held))
		}
		n.expire(out, now.Add(holdTime))
		if len(n.held) > 0 || !n.due().IsZero() {
			t.Errorf("%d are still held", len(n.held))
		}
	})
}

// Whatever a server says, the decoder neither grows nor loses its place.
func FuzzTelnet(f *testing.F) {
	f.Add([]byte{iac, sb, optComPort, 101, 0, 0, 1, 0, iac, se, 'x', iac, iac, '\r', 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		line := &telnetLine{set: lineSettings(Line{Baud: 9600}, format{})}
		sent := 0
		for _, c := range b {
			if _, event := line.in.add(c, false); event {
				sent += len(line.react())
			}
		}
		if len(line.in.sub) > maxSub || sent > 3*len(b)+100 {
			t.Errorf("%d held, %d sent for %d", len(line.in.sub), sent, len(b))
		}
	})
}
