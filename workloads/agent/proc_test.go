package agent

import (
	"strings"
	"testing"
)

func TestParseProc(t *testing.T) {
	rest := " S 7 42 42 0 -1 4194560 1 0 0 0 3 4 0 0 20 0 1 0 98765 1000 10"
	for in, want := range map[string]procInfo{
		"12 (sh)" + rest:            {pid: 12, ppid: 7, group: 42, name: "sh", state: 'S', start: "98765"},
		"12 (a) b (c) d)" + rest:    {pid: 12, ppid: 7, group: 42, name: "a) b (c) d", state: 'S', start: "98765"},
		"12 (x\ny)" + rest + " 0 0": {pid: 12, ppid: 7, group: 42, name: "x\ny", state: 'S', start: "98765"},
	} {
		if got, ok := parseProc(in); !ok || got != want {
			t.Errorf("%q: %+v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "12", "12 (sh", "12 )sh(" + rest, "12 (sh) S 1 2", "x (sh)" + rest, "12 (sh)" + strings.Replace(rest, "S", "SS", 1)} {
		if got, ok := parseProc(in); ok {
			t.Errorf("%q: %+v", in, got)
		}
	}
}

func FuzzParseProc(f *testing.F) {
	f.Add("12 (sh) S 7 42 42 0 -1 4194560 1 0 0 0 3 4 0 0 20 0 1 0 98765 1000 10")
	f.Fuzz(func(t *testing.T, s string) {
		if p, ok := parseProc(s); ok && (p.start == "" || p.state == 0) {
			t.Errorf("%q: %+v", s, p)
		}
	})
}

func TestParseListeners(t *testing.T) {
	const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1389 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 0 100 0 0 10 0
   1: 0100007F:1389 0100007F:9000 01 00000000:00000000 00:00000000 00000000     0        0 1002 1 0 100 0 0 10 0
   2: 0100007F:138A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1003 1 0 100 0 0 10 0
   3: 00000000000000000000000000000000:1389 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 1004 1
   4: 0100007F:1389 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 0 1
torn 0100007F:1389
`
	if got := strings.Join(parseListeners(tcp, 5001, false), " "); got != "1001 1004" {
		t.Errorf("TCP listeners of port 5001: %q", got)
	}
	if got := strings.Join(parseListeners(tcp, 5001, true), " "); got != "1001 1002 1004" {
		t.Errorf("read as UDP: %q", got)
	}
}

func TestEnvironTheLastOneCounts(t *testing.T) {
	got := strings.Join(environ([]string{"A=1", "B=2", "A=3"}, []string{"C=", "B=4"}), " ")
	if got != "A=3 C= B=4" {
		t.Errorf("%q", got)
	}
}
