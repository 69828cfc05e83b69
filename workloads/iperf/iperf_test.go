package iperf

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// captured maps "archive/name" to an output; "name.err" is its standard error.
func captured(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no archives in testdata", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(f), ".txtar")
		for _, file := range txtar.Parse(data).Files {
			out[base+"/"+file.Name] = string(file.Data)
		}
	}
	return out
}

// want is a line of testdata/expected.tsv.
type want struct {
	name, role, dir string
	rate, sec       float64 // Mbit/s, s; 0 = no figure
	streams         int
}

func expected(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
}

func TestCaptured(t *testing.T) {
	files := captured(t)
	for _, line := range expected(t) {
		f := strings.Split(line, "\t")
		c := want{name: f[0], role: f[1], dir: strings.TrimPrefix(f[2], "any")}
		if f[3] != "-" {
			if _, err := fmt.Sscan(f[3]+" "+f[4]+" "+f[5], &c.rate, &c.sec, &c.streams); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
		text, ok := files[c.name]
		if !ok {
			t.Fatalf("%s is not in the archives", c.name)
		}
		r := Read([]byte(text), []byte(files[c.name+".err"]), Hint{Process: processOf(c.name)})
		got, err := r.Total(c.role, c.dir)
		if c.rate == 0 {
			if !errors.Is(err, ErrNoFinal) {
				t.Errorf("%s: %s %s = %+v, %v; want no final line", c.name, c.role, c.dir, got, err)
			}
			continue
		}
		if err != nil || len(r.Errors) > 0 {
			t.Errorf("%s: %v, errors %q", c.name, err, r.Errors)
			continue
		}
		if math.Abs(got.Rate/1e6-c.rate) > c.rate*0.0006 || math.Abs(got.Seconds-c.sec) > 0.02 || got.Streams != c.streams {
			t.Errorf("%s: %s %s: %.6f Mbit/s in %.4f s over %d streams, want %.6f in %.4f over %d",
				c.name, c.role, c.dir, got.Rate/1e6, got.Seconds, got.Streams, c.rate, c.sec, c.streams)
		}
	}
}

func processOf(name string) string {
	if strings.HasSuffix(name, ".server") {
		return Server
	}
	return Client
}

// TestEveryCapturedRow holds the reader against all captured lines: figures
// agree with themselves, and nothing healthy is called an error.
func TestEveryCapturedRow(t *testing.T) {
	files := captured(t)
	sick := map[string]bool{}
	for _, n := range []string{"err_refused", "err_dns", "err_option", "err_timeout", "tcp_dualtest_d", "tcp_tradeoff_r",
		"csv_dual", "v205_tcp_dual_d", "v205_tcp_tradeoff_r", "v205_refused", "v312_refused", "v321_refused",
		"v312_refused_json", "v321_refused_json", "v312_dns_json", "v321_dns_json", "v312_busy", "v312_busy_json",
		"v312_serverkilled_json", "v312_serverterm_json", "v321_serverterm_json", "v312_clientint_json",
		"v321_clientint_json", "v312_json_stream_unsupported"} {
		sick[n+".client"] = true
	}
	for _, n := range []string{"v312_clientint", "v321_clientint"} {
		sick[n+".server"] = true
	}
	rows := 0
	for name, text := range files {
		base := filepath.Base(name)
		if strings.HasSuffix(name, ".err") {
			if _, ok := files[strings.TrimSuffix(name, ".err")]; ok {
				continue
			}
			base, text = strings.TrimSuffix(base, ".err"), ""
			name = strings.TrimSuffix(name, ".err")
		}
		r := Read([]byte(text), []byte(files[name+".err"]), Hint{Process: processOf(name)})
		if got := len(r.Errors) > 0; got != sick[base] {
			t.Errorf("%s: errors %q, want some: %v", name, r.Errors, sick[base])
		}
		for _, list := range [][]Row{r.Streams, r.Sums, r.Intervals, r.ServerReport} {
			for _, row := range list {
				rows++
				if err := row.Check(); err != nil && !sick[base] && row.Bytes > 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	if rows < 300 {
		t.Errorf("only %d rows were found", rows)
	}
}

func TestDatagrams(t *testing.T) {
	files := captured(t)
	r := Read([]byte(files["iperf2/udp_interval.client"]), nil, Hint{})
	got, err := r.Reported()
	if err != nil || got.UDP == nil || got.UDP.Total != 5104 || got.UDP.Lost != 0 || got.UDP.JitterMS != 0.005 {
		t.Errorf("server report of 2.1.8: %+v %+v, %v", got, got.UDP, err)
	}
	r = Read([]byte(files["iperf205/v205_udp.client"]), nil, Hint{})
	if got, err = r.Reported(); err != nil || got.UDP.Total != 5101 || got.UDP.OutOfOrder != 1 {
		t.Errorf("server report of 2.0.5: %+v %+v, %v", got, got.UDP, err)
	}
	r = Read([]byte(files["iperf205/v205_csv_udp.client"]), nil, Hint{Process: Client})
	if got, err = r.Reported(); err != nil || got.UDP.Total != 5102 || got.UDP.JitterMS != 0.008 || got.UDP.OutOfOrder != 1 {
		t.Errorf("CSV server report of 2.0.5: %+v, %v", got, err)
	}
	r = Read([]byte(files["iperf3/v312_udp_json.client"]), nil, Hint{})
	if got, err = r.Total(Receiver, Up); err != nil || got.UDP == nil || got.UDP.Total != 229 {
		t.Errorf("iperf3 JSON: %+v, %v", got, err)
	}
}

func TestIperf3Extras(t *testing.T) {
	files := captured(t)
	r := Read([]byte(files["iperf3/v312_tcp_text.client"]), nil, Hint{})
	if got, err := r.Total(Sender, ""); err != nil || got.Retr == nil || *got.Retr != 4 {
		t.Errorf("retransmits: %+v, %v", got, err)
	}
	r = Read([]byte(files["iperf3/v312_verbose.client"]), nil, Hint{})
	if r.Version != "3.12" || r.CPU == nil || r.CPU.Local != 3.0 || r.CPU.Remote != 1.0 || r.String() != "iperf3 3.12" {
		t.Errorf("verbose: %+v", r)
	}
	r = Read([]byte(files["iperf3/v312_tcp_P3_json.client"]), nil, Hint{})
	if r.Version != "3.12" || r.Process != Client || r.CPU == nil || math.Abs(r.CPU.Remote-2.5223) > 1e-3 {
		t.Errorf("JSON: %+v", r)
	}
	if _, all := r.Stalls(); all != 8 {
		t.Errorf("%d intervals", all)
	}
}

// TestDualWithoutHint: with -d and -r a client listens before it connects.
func TestDualWithoutHint(t *testing.T) {
	files := captured(t)
	for name, process := range map[string]string{"v20_dual.client": Client, "v20_tradeoff.client": Client, "v20_dual.server": Server} {
		if r := Read([]byte(files["versions/"+name]), nil, Hint{}); r.Process != process {
			t.Errorf("%s is taken for a %s", name, r.Process)
		}
	}
}
