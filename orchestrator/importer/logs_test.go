package importer

import (
	"fmt"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
)

const client = "Client connecting to 10.0.0.1, TCP port 5001\nTCP window size: 16.0 KByte (default)\n"

func row(id, span, rest string) string { return "[" + id + "]  " + span + " sec  " + rest + "\n" }

func TestIperf(t *testing.T) {
	conn := func(id string, port int) string {
		return fmt.Sprintf("[%s] local 10.0.0.2 port %d connected with 10.0.0.1 port 5001\n", id, port)
	}
	listen := "Server listening on TCP port 5001\n"
	taken := func(id string, port int) string {
		return fmt.Sprintf("[%s] local 10.0.0.1 port 5001 connected with 10.0.0.2 port %d\n", id, port)
	}
	udp := "Client connecting to 10.0.0.1, UDP port 5001\n[  3] local 10.0.0.2 port 4000 connected with 10.0.0.1 port 5001\n" +
		row("  3", "0.0-10.0", "12.5 MBytes  10.5 Mbits/sec") + "[  3] Sent 8920 datagrams\n"
	for _, c := range []struct{ name, text, want string }{
		{"three runs of one client", client + conn("  3", 1) + row("  3", "0.0-10.0", "27.4 MBytes  23.0 Mbits/sec") +
			client + conn("  3", 2) + row("  3", "0.0-10.0", "27.3 MBytes  22.9 Mbits/sec"), "23|22.9"},
		{"broken by mail", "[  3]  0.0-10.0 sec    27.4 MBytes\n23.0 Mbits/sec\n[  3]  0.0-10.0 sec    27.3 MBytes\n22.9 Mbits/sec\n", "23|22.9"},
		{"iperf3 broken by mail", row("  5", "0.00-1.00", "112 MBytes  942 Mbits/sec    0") + "sender\n" + row("  5", "0.00-1.00", "111 MBytes  931 Mbits/sec") + "receiver\n", "931"},
		{"CSV with a time zone", "-0700:20240315120001.1,10.0.0.2,4500,10.0.0.1,5001,1,0.0-2.0,23592960,94371840\n", "94.3718"},
		{"lines without a word around them", row(" 3", "0.0-10.0", "27.4 MBytes 23.0 Mbits/sec") + row(" 3", "0.0-10.0", "27.3 MBytes 22.9 Mbits/sec"), "23|22.9"},
		{"intervals before the sum", client + conn("  3", 1) + row("  3", "0.0- 1.0", "2.73 MBytes  22.9 Mbits/sec") + row("  3", "1.0- 2.0", "2.73 MBytes  22.9 Mbits/sec") +
			row("  3", "0.0- 2.0", "5.46 MBytes  22.9 Mbits/sec"), "22.9"},
		{"intervals of two runs without a word around them", row("  3", "0.0-1.0", "1.25 MBytes  10.5 Mbits/sec") + row("  3", "1.0-2.0", "1.25 MBytes  10.5 Mbits/sec") +
			row("  3", "0.0-2.0", "2.50 MBytes  10.5 Mbits/sec") + row("  3", "0.0-1.0", "2.50 MBytes  21.0 Mbits/sec") + row("  3", "1.0-2.0", "2.50 MBytes  21.0 Mbits/sec") +
			row("  3", "0.0-2.0", "5.00 MBytes  21.0 Mbits/sec"), "10.5|21"},
		{"parallel streams and their sum", client + conn("  3", 1) + conn("  4", 2) + row("  3", "0.0-10.0", "12.5 MBytes  10.5 Mbits/sec") +
			row("  4", "0.0-10.0", "12.5 MBytes  10.5 Mbits/sec") + row("SUM", "0.0-10.0", "25.0 MBytes  21.0 Mbits/sec"), "21"},
		{"a server's log of two clients, one after the other", listen + taken("  4", 1) + row("  4", "0.0-10.0", "12.5 MBytes  10.5 Mbits/sec") +
			taken("  5", 2) + row("  5", "0.0-10.0", "25.0 MBytes  21.0 Mbits/sec"), "10.5|21"},
		{"a server's log of two streams at once", listen + taken("  4", 1) + taken("  5", 2) + row("  4", "0.0-10.0", "12.5 MBytes  10.5 Mbits/sec") +
			row("  5", "0.0-10.0", "25.0 MBytes  21.0 Mbits/sec"), "31.5"},
		{"iperf3's final lines", row("  5", "0.00-10.00", "12.5 MBytes  10.5 Mbits/sec    0             sender") + row("  5", "0.00-10.00", "12.4 MBytes  10.4 Mbits/sec                  receiver"), "10.4"},
		{"iperf3's final lines of two runs", row("  5", "0.00-10.00", "12.5 MBytes  10.5 Mbits/sec    0             sender") + row("  5", "0.00-10.00", "12.4 MBytes  10.4 Mbits/sec                  receiver") +
			row("  5", "0.00-10.00", "12.5 MBytes  10.5 Mbits/sec    0             sender") + row("  5", "0.00-10.00", "12.2 MBytes  10.2 Mbits/sec                  receiver"), "10.4|10.2"},
		{"UDP lines without a word around them", row("  3", "0.0-10.0", "12.5 MBytes  10.5 Mbits/sec") + "[  3] Server Report:\n" + row("  3", "0.0-10.0", "12.1 MBytes  10.2 Mbits/sec   0.231 ms  250/ 8920 (2.8%)"), "10.2"},
		{"a run whose banner was cut away", client + conn("  3", 1) + row("  3", "0.0- 1.0", "1.25 MBytes  10.5 Mbits/sec") + row("  3", "1.0- 2.0", "1.25 MBytes  10.5 Mbits/sec") +
			row("  3", "0.0- 2.0", "2.50 MBytes  10.5 Mbits/sec") + row("  3", "0.0- 2.0", "5.00 MBytes  21.0 Mbits/sec"), "10.5|21"},
		{"both ways at once", listen + client + conn("  3", 1) + "[  5] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 7\n" +
			row("  3", "0.0-10.0", "12.5 MBytes  10.5 Mbits/sec") + row("  5", "0.0-10.0", "25.0 MBytes  21.0 Mbits/sec"), "up 10.5|down 21"},
		{"refused", client + "connect failed: Connection refused\n", "FAILED connect failed: Connection refused"},
		{"refused, and then not", client + "connect failed: Connection refused\n" + client + conn("  3", 1) + row("  3", "0.0-10.0", "27.4 MBytes  23.0 Mbits/sec"),
			"FAILED connect failed: Connection refused"},
		{"cut off", client + conn("  3", 1) + row("  3", "0.0- 1.0", "2.73 MBytes  22.9 Mbits/sec") + row("  3", "1.0- 2.0", "2.73 MBytes  22.9 Mbits/sec"),
			"FAILED no final line: it was cut off, or killed"},
		{"a line that contradicts itself", client + conn("  3", 1) + row("  3", "0.0-3.0", "5.90 GBytes  5.44 Gbits/sec"), "INVALID the figures contradict each other"},
		{"UDP without a report", udp + "[  3] WARNING: did not receive ack of last datagram after 10 tries.\n", "FAILED no report of the receiver"},
		{"UDP", udp + "[  3] Server Report:\n" + row("  3", "0.0-10.0", "12.1 MBytes  10.2 Mbits/sec   0.231 ms  250/ 8920 (2.8%)"), "10.2"},
		{"CSV of two runs", "20260301120010,10.0.0.2,41,10.0.0.1,5001,3,0.0-10.0,12500000,10000000\n20260301120110,10.0.0.2,42,10.0.0.1,5001,3,0.0-10.0,25000000,20000000\n", "10|20"},
		{"CSV of two streams", "20260301120010,10.0.0.2,41,10.0.0.1,5001,3,0.0-10.0,12500000,10000000\n20260301120010,10.0.0.2,42,10.0.0.1,5001,4,0.0-10.0,25000000,20000000\n", "30"},
		{"two objects of JSON", json3(1) + "\n" + json3(2), "1|2"},
		{"a list of JSON", "[" + json3(1) + ",\n" + json3(2) + "]", "1|2"},
		{"an error in JSON", `{"start":{"version":"iperf 3.12"},"intervals":[],"end":{},"error":"unable to connect to server: Connection refused"}`,
			"FAILED unable to connect to server"},
		{"JSON that is cut off", json3(1)[:60], "FAILED "},
	} {
		m, err := read(t, Options{Format: "iperf"}, "K=f|"+c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := figures(m)
		if !strings.HasPrefix(got, c.want) || strings.Count(got, "|") != strings.Count(c.want, "|") && !strings.HasPrefix(c.name, "refused, and") {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// figures of the trials' first metric, or why there is none.
func figures(m *Import) string {
	var out []string
	for i := range m.trials {
		t := &m.trials[i]
		s := ""
		if c := m.cells[t.cell]; c.Scenario != "default" {
			s = c.Scenario + " "
		}
		if t.ok() {
			s += m.figure(m.of(t)[0])
		} else {
			s += strings.ToUpper(string(t.more.outcome)) + " " + t.more.reason
		}
		out = append(out, s)
	}
	return strings.Join(out, "|")
}

// json3 is what iperf3 -J prints of a run at so many Mbit/s.
func json3(mbit int) string {
	sum := fmt.Sprintf(`{"start":0,"end":10,"seconds":10,"bytes":%d,"bits_per_second":%d,"sender":true}`, mbit*1250000, mbit*1000000)
	return `{"start":{"version":"iperf 3.12","connected":[],"test_start":{"protocol":"TCP","num_streams":1,"duration":10,"reverse":0}},` + "\n" +
		`"intervals":[],"end":{"streams":[{"sender":` + sum + `,"receiver":` + sum + `}],"sum_sent":` + sum + `,"sum_received":` + sum + `}}`
}

func TestIperfThatIsNone(t *testing.T) {
	for text, want := range map[string]string{
		"hello\nworld\n":                     `f:1: no line of iperf's figures in it; it begins with "hello"`,
		"{\"a\": 1} garbage":                 "f:1: broken JSON",
		"{\"event\": 3}":                     "this JSON is not iperf3's",
		"Server listening on TCP port 5001":  "no line of iperf's figures",
		strings.Repeat("x", 300):             "…",
		"real 1.0\nuser 1.0\nsys 0.0\n":      "no line of iperf's figures",
		"[\"a list\", \"of words\"]":         "no line of iperf's figures",
		"[{\"a\": 1}, 7":                     "broken JSON",
		"Average Half load -j 2 Run (x):\n1": "no line of iperf's figures",
	} {
		if _, err := read(t, Options{Format: "iperf"}, "K=f|"+text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := read(t, Options{Format: "iperf"}, "f|"+client); err == nil || !strings.Contains(err.Error(), "write KERNEL=f, or --kernel") {
		t.Errorf("no kernel: %v", err)
	}
}

const level = `Average %s Run (std deviation):
Elapsed Time %s
User Time 80 (0.1)
System Time 10 (0.1)
Percent CPU %s
Context Switches 500 (10)
Sleeps 900 (20)

`

func TestKernbench(t *testing.T) {
	old := "Mon Feb  1 10:00:00 UTC 2010\n2.6.30\n" + fmt.Sprintf(level, "Half load -j 3", "30 (0.2)", "300 (1)") + fmt.Sprintf(level, "Optimal load -j 16", "28.5 (0.3)", "315 (2)")
	m := must(t, Options{Format: "kernbench"}, "k.log|"+old+strings.ReplaceAll(old, "2.6.30", "2.6.31"))
	if got := figures(m); got != "half 30 (mean of 5, sd 0.2)|optimal 28.5 (mean of 5, sd 0.3)|half 30 (mean of 5, sd 0.2)|optimal 28.5 (mean of 5, sd 0.3)" {
		t.Error(got)
	}
	if m.told["2.6.31"].release != "2.6.31" || m.o.Baseline != "2.6.30" {
		t.Errorf("%+v, baseline %s", m.told, m.o.Baseline)
	}
	// The same release twice is one kernel measured twice.
	m = must(t, Options{Format: "kernbench"}, "k.log|"+old+old)
	if b := m.boots(fresh()); len(b) != 1 || len(b[0].trials) != 4 {
		t.Errorf("%d boots", len(b))
	}
	if b := must(t, Options{Format: "kernbench", Boots: BootsEachRow}, "k.log|"+old+old).boots(fresh()); len(b) != 4 {
		t.Errorf("%d boots", len(b))
	}
	// A single run has no spread; a failing build is a failed trial; the terminal says N.
	m = must(t, Options{Format: "kernbench"}, "k.log|Kernel 6.1\nPerforming 3 runs of\nmake -j 2\n\n"+fmt.Sprintf(level, "Single threaded", "90.000000", "100"))
	if got := figures(m); got != "single 90" || !strings.Contains(strings.Join(m.notes, " "), "says that each average is over 3 runs") {
		t.Error(got, m.notes)
	}
	m = must(t, Options{Format: "kernbench"}, "k.log|d\n6.1\n"+strings.ReplaceAll(fmt.Sprintf(level, "Single threaded", "0 (0)", "0 (0)"), "80 (0.1)", "0 (0)"))
	if got := figures(m); got != "single FAILED the build failed, which the script does not notice" {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"Elapsed Time 3\n":         "no load level in it",
		strings.Repeat("x", 70000): "more than 64 kB",
		strings.Repeat("x", 2<<20): "k.log:1: a line of 2097152 bytes",
		"d\n6.1\nAverage Half load -j 2 Run (std deviation):\nElapsed Time 4x (0)\n": `k.log:4: Elapsed Time: "4x" is not a number`,
		"Average Half load -j 2 Run (std deviation):\nElapsed Time 45 (0)\n":         "does not say which kernel",
	} {
		if _, err := read(t, Options{Format: "kernbench"}, "k.log|"+text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := read(t, Options{Format: "kernbench"}, "K=k.log|"+old+strings.ReplaceAll(old, "2.6.30", "2.6.31")); err == nil || !strings.Contains(err.Error(), "2 different kernels: take K= away") {
		t.Errorf("one name for two kernels: %v", err)
	}
}

func TestKernbenchCutOff(t *testing.T) {
	whole := "d\n6.1\n" + fmt.Sprintf(level, "Half load -j 2", "45 (0.2)", "200 (1)") + fmt.Sprintf(level, "Optimal load -j 4", "28 (0.3)", "321 (2)")
	m := must(t, Options{Format: "kernbench"}, "k.log|"+whole[:strings.LastIndex(whole, "Percent")])
	if w := m.trials[0].more.warnings; len(w) != 0 {
		t.Errorf("%v", w)
	}
	w := strings.Join(m.trials[1].more.warnings, "; ")
	if !strings.Contains(w, "lacks Percent CPU, Context Switches, Sleeps: was the log cut off?") || !strings.Contains(w, "cannot be told whether the script pooled") {
		t.Error(w)
	}
}

// TestKernbenchPooled: what the script mixes over levels is taken apart, and kept.
func TestKernbenchPooled(t *testing.T) {
	// Five runs of 10 s user at -j2, five of 14 s at -j4: the log shows their mean.
	text := "d\n6.1\n" + `Average Half load -j 2 Run (std deviation):
Elapsed Time 6 (0.1)
User Time 10 (0)
System Time 2 (0)
Percent CPU 200 (0)
Context Switches 100 (0)
Sleeps 40 (0)

Average Optimal load -j 4 Run (std deviation):
Elapsed Time 4 (0.1)
User Time 12 (2.10819)
System Time 2 (0)
Percent CPU 300 (105.409)
Context Switches 150 (52.7046)
Sleeps 40 (0)
`
	m := must(t, Options{Format: "kernbench"}, "k.log|"+text)
	got := said(m)[1]
	if !strings.HasPrefix(got, "6.1 optimal: elapsed=4 user=14 system=2 percent=400 ctx=200 sleeps=40 printed.user=12 printed.system=2 printed.percent=300 printed.ctx=150") {
		t.Error(got)
	}
	v := m.of(&m.trials[1])
	if v[1].n != 5 || v[6].n != 10 || v[6].sd != 2.10819 {
		t.Errorf("%+v", v)
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"bash, twice", "\nreal\t0m1.500s\nuser\t0m1.000s\nsys\t0m0.100s\n\nreal\t0m2.500s\nuser\t0m1.000s\nsys\t0m0.100s\n", "1.5|2.5"},
		{"a decimal comma", "real\t2m3,407s\nuser\t1m58,020s\nsys\t0m4,913s\n", "123.407"},
		{"busybox after other output", "building\nreal\t0m 3.40s\nuser\t0m 1.02s\nsys\t0m 0.91s\n", "3.4"},
		{"POSIX", "real 123.40\nuser 118.02\nsys 4.91\n", "123.4"},
		{"GNU", "1.02user 0.91system 0:03.40elapsed 56%CPU (0avgtext+0avgdata 30112maxresident)k\n0inputs+8outputs (0major+7421minor)pagefaults 0swaps\n" +
			"Command exited with non-zero status 2\n1.02user 0.91system 0:04.40elapsed 56%CPU (0avgtext+0avgdata 30112maxresident)k\n", "3.4|FAILED the command exited with status 2"},
		{"GNU -v", "\tCommand being timed: \"make\"\n\tUser time (seconds): 28660.33\n\tSystem time (seconds): 31.07\n\tElapsed (wall clock) time (h:mm:ss or m:ss): 2:03:17\n\tExit status: 0\n", "7397"},
		{"words that look like a time", "user friendly\nreal 1.00\nuser 0.50\nsys 0.10\n", "1"},
	} {
		m, err := read(t, Options{Format: "time"}, "K=f|"+c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := figures(m); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"real 1,234\nuser 1,100\nsys 0,050\n": `f:1: ambiguous`,
		"real 1.0\nuser 1.0\n":                "f:1: no sys time",
		"make: done\n":                        "no output of a time command",
	} {
		if _, err := read(t, Options{Format: "time"}, "K=f|"+text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

const vmHead = "procs -----------memory---------- ---swap-- -----io---- -system-- ----cpu----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa\n"

func TestVmstat(t *testing.T) {
	text := vmHead + " 0  0      0   9120    600   4100    0    0     5     1   40   60  1  1 98  0\n" + vmHead +
		" 1  0      0   9000    600   4100    0    0     0     0  900 1500 30 10 60  0\n 1  0      0   9000    600   4100    0    0     0     0  900  500 30 10 60  0\n"
	m := must(t, Options{Format: "vmstat"}, "K=f|"+text)
	a := m.trials[0].more.activity
	if a.Samples != 2 || a.Switches != 1000 || a.Idle != 60 || fmt.Sprint(a.Missing) != "[st]" {
		t.Errorf("%+v", a)
	}
	m = must(t, Options{Format: "vmstat", FirstRow: "keep"}, "K=f|"+text)
	if a := m.trials[0].more.activity; a.Samples != 3 || !strings.Contains(strings.Join(m.notes, ""), "--first-row keep") {
		t.Errorf("%+v %v", a, m.notes)
	}
	for _, v := range m.of(&m.trials[0]) {
		if x := m.metric[v.metric]; x.Name == "st" && v.why == 0 {
			t.Error("steal is 0, and not missing")
		}
	}
	for text, want := range map[string]string{
		vmHead + "vmstat: cannot read page counters: no such field\n":                              "cannot read page counters",
		vmHead + " 0  0      0   9120    600   4100    0    0     5     1   40   60  1  1 98  0\n": "say --first-row keep",
		vmHead + strings.Repeat(" 0  0      0   9120    600   4100    0    0     5     1   40   60  1  1 98  0\n"+vmHead, 1) +
			" 0  0      0   9120    600   4100    0    0     5     1   40   60  1  1 98  0\n": "each of its 2 rows has a header of its own: these are single calls of vmstat",
		"nothing\n": "no sample of vmstat in it",
	} {
		if _, err := read(t, Options{Format: "vmstat"}, "K=f|"+text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestRunsOfAnotherLength(t *testing.T) {
	m := must(t, Options{Format: "iperf"}, "K=f|"+row(" 3", "0.0-10.0", "27.4 MBytes 23.0 Mbits/sec")+row(" 3", "0.0-3.0", "8.2 MBytes 22.9 Mbits/sec")+row(" 3", "0.0-10.0", "27.4 MBytes 23.0 Mbits/sec"))
	if w := m.trials[1].more.warnings; len(w) != 1 || !strings.Contains(w[0], "lasted 3 s, and the others of the cell 10 s") || len(m.trials[0].more.warnings) > 0 {
		t.Errorf("%v", w)
	}
}

func TestFailedTrialsAreKept(t *testing.T) {
	m := must(t, Options{Format: "iperf"}, "K=f|"+client+"connect failed: Connection refused\n")
	r := m.records(m.boots(fresh())[0])
	last := r[len(r)-1]
	if last.Outcome != results.Failed || last.Reason != "connect failed: Connection refused" || last.Parsed.Notes[0] != "from f" {
		t.Errorf("%+v %+v", last, last.Parsed)
	}
}

// FuzzIperf: whatever the text, the splitter loses none of it and the reader stands.
func FuzzIperf(f *testing.F) {
	f.Add(client + row("  3", "0.0-10.0", "27.4 MBytes  23.0 Mbits/sec"))
	f.Add(json3(1))
	f.Add("20260301120010,10.0.0.2,41,10.0.0.1,5001,3,0.0-10.0,12500000,10000000\n")
	f.Add("Server listening on TCP port 1\n[ 4] local 1 port 1 connected with 2 port 3\n[ 4] 0.0-1.0 sec 1 Bytes 8 bits/sec\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Read(Options{Format: "iperf", Kernel: "K"}, []File{{Name: "f", Data: []byte(text)}})
		if err == nil {
			m.Describe()
			m.records(m.boots(fresh())[0])
		}
	})
}
