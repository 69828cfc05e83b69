package iperf

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
)

const clientHead = `------------------------------------------------------------
Client connecting to 192.0.2.10, TCP port 5001
TCP window size: 16.0 KByte (default)
------------------------------------------------------------
[  3] local 192.0.2.20 port 40000 connected with 192.0.2.10 port 5001
[ ID] Interval       Transfer     Bandwidth
`

// TestImpossible feeds the lines that iperf itself prints and that are wrong.
func TestImpossible(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"2.0.13a adds wrongly", "[  3]  0.0- 3.0 sec  5.90 GBytes  5.44 Gbits/sec", "contradict"},
		{"a negative rate", "[  3]  0.0- 3.0 sec  5.90 GBytes  -5268806371.92 bits/sec", "negative"},
		{"a dead link", "[  3]  0.0- 3.0 sec  0.00 \x01s  147573952589675986944 Bytes/sec", "unreadable line"},
		{"petabytes", "[  3] 0.0000-1552.0000 sec  9.55 PBytes  55.4 Tbits/sec   0.000 ms 0/0 (-nan%)", "no link has"},
		{"no datagrams at all", "[  3] 0.0-3.0 sec  1.00 MBytes  2.80 Mbits/sec   0.000 ms 0/0 (-nan%)", "datagram"},
		{"NaN", "[  3]  0.0- 3.0 sec  1.00 MBytes  nan Mbits/sec", "not a number"},
		{"cut short", "[  3]  0.0- 3.0 se", "unreadable line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Read([]byte(clientHead+c.line+"\n"), nil, Hint{})
			_, err := r.Total(Sender, Up)
			if r.UDP {
				_, err = r.Total(Sender, "")
			}
			said := strings.Join(r.Errors, "; ")
			if err != nil {
				said += err.Error()
			}
			if err == nil && len(r.Errors) == 0 || !strings.Contains(said, c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
}

func TestReverseAgainstOldServer(t *testing.T) {
	r := Read([]byte(strings.Replace(clientHead, "port 5001\n[ ID", "port 5001 (reverse)\n[ ID", 1)+
		"[ *1] 0.0000-4.0971 sec  0.000 Bytes  0.000 bits/sec\n"), nil, Hint{})
	got, err := r.Total(Receiver, Down)
	if err != nil || got.Bytes != 0 {
		t.Errorf("%+v, %v; want a final line of 0 bytes", got, err)
	}
	old := Read([]byte(captured(t)["iperf205/v205_reverse_R.client"]), nil, Hint{})
	if _, err := old.Total(Receiver, Down); !errors.Is(err, ErrNoFinal) {
		t.Errorf("2.0.5 ignores -R, yet a reverse figure was found: %v", err)
	}
}

func TestBlanksCollapsed(t *testing.T) {
	text := "[ 3] local 192.0.2.1 port 4 connected with 192.0.2.2 port 5001\n[ ID] Interval Transfer Bandwidth\n[ 3] 0.0-10.0 sec 27.4 MBytes 23.0 Mbits/sec\n"
	for _, s := range []string{text, strings.ReplaceAll(text, " ", "   "), strings.ReplaceAll(text, "\n", "\r\n"),
		"> " + strings.ReplaceAll(text, "\n", "\n> "), text + "[ 3] 0.0-10.0 sec T8(f)-PDF: bin(w=10us):cnt(40)=1:34,2:3\n"} {
		r := Read([]byte(s), nil, Hint{Process: Client})
		if got, err := r.Total(Sender, Up); err != nil || got.Rate != 23e6 || got.Resolution != 0.1e6 || got.Seconds != 10 || len(r.Errors) > 0 {
			t.Errorf("%q: %+v, %v, errors %q", s, got, err, r.Errors)
		}
	}
}

func TestDeadServer(t *testing.T) {
	cut := clientHead + "[  3]  0.0- 1.0 sec  11.0 MBytes  92.3 Mbits/sec\n[  3]  1.0- 2.0 sec  0.00 MBytes  0.00 Mbits/sec\n"
	r := Read([]byte(cut), nil, Hint{})
	if got, err := r.Total(Sender, Up); !errors.Is(err, ErrNoFinal) {
		t.Errorf("intervals without a final line gave %+v, %v", got, err)
	}
	if zero, all := r.Stalls(); zero != 1 || all != 2 {
		t.Errorf("%d of %d intervals empty, want 1 of 2", zero, all)
	}
}

func TestCrossVersion(t *testing.T) {
	r := Read([]byte(clientHead+"[  1] 0.0000-0.2950 sec  36.6 MBytes  1.04 Gbits/sec\n"),
		[]byte("tcp write failed: Connection reset by peer\n"), Hint{})
	if len(r.Errors) != 1 {
		t.Errorf("iperf 2.1.8 against an iperf3 server: errors %q", r.Errors)
	}
	r = Read(nil, []byte("iperf3: error - received an unknown control message (ensure other side is iperf3 and not iperf)\n"), Hint{})
	if r.Tool != Iperf3 || len(r.Errors) != 1 {
		t.Errorf("iperf3 against an iperf2 server: %+v", r)
	}
}

func TestJSONTraps(t *testing.T) {
	files := captured(t)
	whole := files["iperf3/v312_tcp_json.client"]
	for _, cut := range []int{20, len(whole) / 2, len(whole) - 3} {
		r := Read([]byte(whole[:cut]), nil, Hint{})
		if len(r.Errors) == 0 || !strings.Contains(r.Errors[0], "stops in the middle") {
			t.Errorf("cut at %d: errors %q", cut, r.Errors)
		}
		if _, err := r.Total(Receiver, ""); err == nil {
			t.Errorf("cut at %d: a figure was found", cut)
		}
	}
	r := Read([]byte("warning: a banner\n"+whole), nil, Hint{})
	if got, err := r.Total(Receiver, Up); err != nil || got.Rate == 0 || len(r.Notes) != 1 {
		t.Errorf("after a banner: %+v, %v, notes %q", got, err, r.Notes)
	}
	r = Read([]byte(files["iperf3/v312_serverterm_json.client"]), nil, Hint{})
	if len(r.Errors) != 1 || r.Errors[0] != "the server has terminated" {
		t.Errorf("sums beside an error must not hide it: %q", r.Errors)
	}
	r = Read([]byte(`{"start":{"version":"iperf 3.9","connecting_to":{}},"end":{"sum_received":{"bytes":null,"bits_per_second":null}}}`), nil, Hint{})
	if len(r.Errors) != 1 {
		t.Errorf("null figures: %q", r.Errors)
	}
}

func TestJSONStream(t *testing.T) {
	text := `{"event":"start","data":{"version":"iperf 3.17","connecting_to":{"host":"192.0.2.1","port":5201},"test_start":{"protocol":"TCP","reverse":1}}}
{"event":"interval","data":{"streams":[],"sum":{"start":0,"end":1.0,"bytes":12500000,"bits_per_second":100000000,"sender":false}}}
{"event":"end","data":{"sum_sent":{"start":0,"end":2.0,"bytes":25100000,"bits_per_second":100400000,"retransmits":3,"sender":false},"sum_received":{"start":0,"end":2.0,"bytes":25000000,"bits_per_second":100000000,"sender":false}}}
`
	r := Read([]byte(text), nil, Hint{})
	got, err := r.Total(Receiver, Down)
	if err != nil || got.Rate != 1e8 || r.Version != "3.17" || len(r.Intervals) != 1 || len(r.Errors) != 0 {
		t.Errorf("%+v, %v, %+v", got, err, r)
	}
	r = Read([]byte(strings.SplitAfter(text, "\n")[0]+`{"event":"error","data":"the server is busy running a test. try again later"}`), nil, Hint{})
	if len(r.Errors) != 1 || !strings.Contains(r.Errors[0], "busy") {
		t.Errorf("error event: %q", r.Errors)
	}
}

// TestOldIperf3UDP: 3.1.x has one sum, with the sender's bytes.
func TestOldIperf3UDP(t *testing.T) {
	r := Read([]byte(`{"start":{"version":"iperf 3.1.3","connecting_to":{},"test_start":{"protocol":"UDP"}},"intervals":[],
"end":{"streams":[{"udp":{"socket":4,"start":0,"end":10,"bytes":25000000,"bits_per_second":20000000,"jitter_ms":0.5,"lost_packets":610,"packets":1000,"sender":true}}],
"sum":{"start":0,"end":10,"bytes":25000000,"bits_per_second":20000000,"jitter_ms":0.5,"lost_packets":610,"packets":1000,"lost_percent":61}}}`), nil, Hint{})
	got, err := r.Total(Receiver, Up)
	if err != nil || math.Abs(got.Rate-7.8e6) > 1 || got.UDP == nil || got.UDP.LossPercent() != 61 || len(r.Notes) != 1 {
		t.Errorf("%+v %+v, %v, notes %q", got, got.UDP, err, r.Notes)
	}
}

const (
	csvUp   = "20260301120010.120,192.0.2.20,40112,192.0.2.10,5001,1,0.0-10.0,1175000000,940000000\n"
	csvDown = "20260301120010.120,192.0.2.10,5001,192.0.2.20,40112,1,0.0-10.0,1150000000,920000000\n"
)

// TestCSVRows: rows are known by endpoints and id, whatever their order, and a
// sum row is no direction.
func TestCSVRows(t *testing.T) {
	odd := "19700101000000,192.0.2.10,5001,::,0,1,0.0-10.0,1150000000,920000000\n"
	for name, c := range map[string]struct {
		text     string
		up, down float64
	}{
		"two rows":         {csvDown + csvUp, 940, 920},
		"the other order":  {csvUp + csvDown, 940, 920},
		"a sum row":        {csvDown + csvUp + "20260301120010.120,192.0.2.20,0,192.0.2.10,5001,-1,0.0-10.0,2325000000,1860000000\n", 940, 920},
		"an odd first row": {odd + csvUp, 940, 920},
		"no sum row": {"19700101000000,192.0.2.20,40140,192.0.2.10,5001,1,0.0-10.0,500000000,400000000\n" +
			"19700101000000,192.0.2.20,40142,192.0.2.10,5001,2,0.0-10.0,475000000,380000000\n", 780, 0},
	} {
		r := Read([]byte(c.text), nil, Hint{})
		up, err := r.Total(Sender, Up)
		if err != nil || up.Rate != c.up*1e6 {
			t.Errorf("%s: up %v, %v; want %v", name, up.Rate/1e6, err, c.up)
		}
		down, err := r.Total(Receiver, Down)
		if c.down == 0 && !errors.Is(err, ErrNoFinal) || c.down != 0 && (err != nil || down.Rate != c.down*1e6) {
			t.Errorf("%s: down %v, %v; want %v", name, down.Rate/1e6, err, c.down)
		}
	}
	r := Read([]byte(csvUp), nil, Hint{})
	if want := netip.MustParseAddrPort("192.0.2.10:5001"); r.Streams[0].To != want {
		t.Errorf("to %v, want %v", r.Streams[0].To, want)
	}
	r = Read([]byte(csvUp+"20260301120010,192.0.2.10,5001,192.0.2.20,40112,1,0.0-10.0,1150000000\n"), nil, Hint{})
	if len(r.Errors) != 1 {
		t.Errorf("a row with 8 fields: errors %q", r.Errors)
	}
}

// TestOutOfOrderLine: an extra line shifts nothing, and a sender's figure never
// stands in for a missing report.
func TestOutOfOrderLine(t *testing.T) {
	head := "Client connecting to 192.0.2.7, UDP port 5001\n[  3] local 192.0.2.20 port 41000 connected with 192.0.2.7 port 5001\n" +
		"[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec  59.6 MBytes  50.0 Mbits/sec\n[  3] Sent 42520 datagrams\n"
	report := "[  3] Server Report:\n[  3]  0.0-10.0 sec  58.9 MBytes  49.4 Mbits/sec   0.231 ms  504/42520 (1.2%)\n"
	for text, order := range map[string]int64{head + report: 0,
		head + report + "[  3] 0.00-10.00 sec  17 datagrams received out-of-order\n": 17} {
		r := Read([]byte(text), nil, Hint{})
		got, err := r.Reported()
		if err != nil || got.Rate != 49.4e6 || got.UDP.JitterMS != 0.231 || got.UDP.Lost != 504 || got.UDP.Total != 42520 || got.UDP.OutOfOrder != order {
			t.Errorf("%+v %+v, %v", got, got.UDP, err)
		}
		if order > 0 && (len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "17 datagrams")) {
			t.Errorf("notes %q", r.Notes)
		}
	}
	r := Read([]byte(head+"[  3] WARNING: did not receive ack of last datagram after 10 tries.\n"), nil, Hint{})
	if _, err := r.Reported(); !errors.Is(err, ErrNoFinal) {
		t.Errorf("a report was found: %v", err)
	}
	if _, err := r.Total(Receiver, ""); !errors.Is(err, ErrNoFinal) {
		t.Errorf("the sender's figure stood in: %v", err)
	}
	if len(r.Notes) != 1 {
		t.Errorf("notes %q", r.Notes)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range captured(f) {
		f.Add([]byte(text), []byte("tcp connect failed: refused"), "")
	}
	f.Add([]byte(csvUp+csvDown), []byte(nil), Server)
	f.Fuzz(func(t *testing.T, out, errs []byte, process string) {
		r := Read(out, errs, Hint{Process: process})
		for _, role := range []string{Sender, Receiver} {
			got, err := r.Total(role, "")
			if err == nil && (math.IsNaN(got.Rate) || got.Rate < 0 || got.Seconds <= 0) {
				t.Errorf("believed %+v", got)
			}
		}
		r.Stalls()
	})
}

// TestDatagramsOfASum: 2.1.8 prints no jitter in the sum of UDP streams.
func TestDatagramsOfASum(t *testing.T) {
	r := Read([]byte(`Server listening on UDP port 5001
[  1] local 127.0.0.1 port 5001 connected with 127.0.0.1 port 56717
[  2] local 127.0.0.1 port 5001 connected with 127.0.0.1 port 59060
[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams
[  2] 0.0000-5.3393 sec  4878 KBytes  7484 Kbits/sec   0.423 ms 2/3400 (0.059%)
[  1] 0.0000-5.3407 sec  4878 KBytes  7482 Kbits/sec   0.419 ms 0/3398 (0%)
[SUM] 0.0000-5.3407 sec  9756 KBytes  14965 Kbits/sec   2/6798 (0.029%)
`), nil, Hint{})
	got, err := r.Total(Receiver, Up)
	if err != nil || got.Rate != 14965e3 || got.Streams != 2 || got.UDP == nil || got.UDP.Lost != 2 || got.UDP.Total != 6798 || got.UDP.JitterMS != 0.423 {
		t.Errorf("%+v %+v, %v", got, got.UDP, err)
	}
}

// Both ends of one connection in one output are not two streams to be added.
func TestConnectionWithItself(t *testing.T) {
	r := Read([]byte(`19700101000000,127.0.0.1,40124,127.0.0.1,5001,1,0.0-3.0,75235388,200618609
19700101000000,127.0.0.1,40140,127.0.0.1,5001,3,0.0-3.0,75235324,200416486
19700101000000,127.0.0.1,40140,127.0.0.1,5001,2,0.0-3.0,75235328,199833239
`), nil, Hint{})
	got, err := r.Total(Receiver, "")
	if err == nil || !strings.Contains(err.Error(), "two final lines") {
		t.Errorf("%+v, %v; want an error", got, err)
	}
}
