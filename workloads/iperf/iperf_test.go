package iperf

import (
	"errors"
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

func TestCaptured(t *testing.T) {
	files := captured(t)
	// Rates in Mbit/s; 0 = no figure expected.
	for _, c := range []struct {
		name      string
		role, dir string
		rate, sec float64
		streams   int
	}{
		{"iperf2/tcp_default.client", Sender, Up, 17000, 3.0046, 1},
		{"iperf2/tcp_default.server", Receiver, Up, 17000, 3.0004, 1},
		{"iperf2/tcp_interval.client", Sender, Up, 199, 3.0174, 1},
		{"iperf2/tcp_interval.server", Receiver, "", 200, 3.0086, 1},
		{"iperf2/tcp_interval.server", Sender, "", 0, 0, 0},
		{"iperf2/tcp_parallel.server", Receiver, Up, 601, 3.0055, 3},
		{"iperf2/tcp_sumonly.server", Receiver, Up, 601, 3.0042, 1},
		{"iperf2/tcp_enhanced.client", Sender, Up, 199, 3.0209, 1},
		{"iperf2/tcp_enhanced.server", Receiver, Up, 200, 3.0050, 1},
		{"iperf2/tcp_fullduplex.client", Sender, Up, 200, 3.0044, 1},
		{"iperf2/tcp_fullduplex.client", Receiver, Down, 199, 3.0194, 1},
		{"iperf2/tcp_fullduplex.server", Receiver, Up, 200, 3.0050, 1},
		{"iperf2/tcp_fullduplex.server", Sender, Down, 200, 3.0116, 1},
		{"iperf2/tcp_reverse_R.client", Receiver, Down, 200, 3.0079, 1},
		{"iperf2/tcp_reverse_R.client", Sender, "", 0, 0, 0},
		{"iperf2/tcp_reverse_R.server", Sender, Down, 199, 3.0258, 1},
		{"iperf2/udp_interval.client", Sender, Up, 20, 3.0039, 1},
		{"iperf2/udp_interval.client", Receiver, "", 0, 0, 0}, // only Reported
		{"iperf2/udp_interval.server", Receiver, Up, 20, 3.0039, 1},
		{"iperf2/udp_enhanced.server", Receiver, Up, 20, 3.0007, 1},
		{"iperf2/udp_reverse.client", Receiver, Down, 20, 3.0004, 1},
		{"iperf2/fmt_k.server", Receiver, Up, 200.516, 2.0029, 1},
		{"iperf2/fmt_M.server", Receiver, Up, 200.5, 2.0, 1},
		{"iperf2/fmt_A.client", Sender, Up, 199.6, 2.0103, 1},
		{"iperf2/fmt_B.server", Receiver, Up, 200.520816, 2.0028, 1},
		{"iperf2/fmt_b.server", Receiver, Up, 199.209101, 2.0107, 1},
		{"iperf2/fmt_G.server", Receiver, Up, 197.6, 2.0029, 1},
		{"iperf2/csv_tcp.client", Sender, Up, 198.377962, 3, 1},
		{"iperf2/csv_tcp_parallel.server", Receiver, Up, 400.518252, 3, 2},
		{"iperf2/csv_udp.server", Receiver, Up, 20.007425, 3, 1},
		{"iperf2/csv_reverse.client", Receiver, Down, 200.00188, 3, 1},
		{"iperf2/ipexclude_x.client", Sender, "", 200, 2.0128, 1},
		{"iperf2/err_clientint.client", Sender, Up, 199, 2.4943, 1},
		{"iperf205/v205_tcp_default.client", Sender, Up, 14100, 3, 1},
		{"iperf205/v205_tcp_default.server", Receiver, Up, 14000, 3, 1},
		{"iperf205/v205_tcp_interval.server", Receiver, Up, 7520, 3, 1},
		{"iperf205/v205_tcp_parallel.client", Sender, Up, 7120, 3, 3},
		{"iperf205/v205_tcp_parallel.server", Receiver, Up, 7010, 3.1, 3},
		{"iperf205/v205_udp.server", Receiver, Up, 20, 3, 1},
		{"iperf205/v205_csv_tcp.server", Receiver, Up, 15363.519157, 3, 1},
		{"iperf205/v205_csv_tcp_P2.server", Receiver, Up, 18789.529932, 3, 2},
		{"iperf205/v205_csv_tcp_P2.client", Sender, Up, 18926.082965, 3, 2},
		{"iperf205/v205_fmt_M.server", Receiver, Up, 13195, 2, 1},
		{"iperf3/v312_tcp_text.client", Receiver, "", 200, 3.01, 1},
		{"iperf3/v312_tcp_P3_text.client", Receiver, "", 601, 3, 3},
		{"iperf3/v312_tcp_bidir_text.client", Receiver, Down, 200, 3, 1},
		{"iperf3/v312_udp_text.client", Receiver, "", 20, 3, 1},
		{"iperf3/v312_udp_text.server", Receiver, "", 20, 3, 1},
		{"iperf3/v312_verbose.client", Receiver, "", 197, 2.03, 1},
		{"iperf3/v312_fmt_M.client", Sender, "", 200.49, 2, 1},
		{"iperf3/v312_get_server_output_text.client", Receiver, "", 200, 2, 1},
		{"iperf3/v321_tcp_text.client", Receiver, "", 200, 3.01, 1},
		{"iperf3/v312_tcp_P3_json.client", Receiver, Up, 599.389818, 2.004819, 3},
		{"iperf3/v312_tcp_P3_json.client", Sender, Up, 600.392759, 2.00147, 3},
		{"iperf3/v312_omit_json.client", Receiver, Up, 199.895175, 3.0005, 1},
		{"iperf3/v321_tcp_bidir_json.client", Receiver, Down, 200.061683, 3.003244, 1},
		{"iperf3/v321_tcp_bidir_json.client", Receiver, Up, 200.061683, 3.003244, 1},
		{"iperf3/v321_udp_json.client", Receiver, Up, 20.074808, 3.003422, 1},
		{"iperf3/v321_udp_reverse_json.client", Receiver, Down, 20.043834, 2.001016, 1},
		{"iperf3/v312_udp_json.server", Receiver, "", 20.0, 3, 1},
	} {
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
