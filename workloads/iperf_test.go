package workloads

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/tools/txtar"
)

// captured finds a captured output: "iperf2.txtar", "tcp_default.client".
func captured(t *testing.T, archive, name string) string {
	t.Helper()
	data, err := os.ReadFile("iperf/testdata/" + archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(data).Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("%s holds no %s", archive, name)
	return ""
}

// iperfTrial is an attempt's folder.
func iperfTrial(t *testing.T, p iperfPlan, files map[string]string) fs.FS {
	t.Helper()
	plan, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	m := fstest.MapFS{iperfPlanFile: {Data: plan}}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// spoolThat is a spool of a task that ended so; values are name, value, ….
func spoolThat(status, reason string, values ...string) string {
	s := "kernsweep-spool 1\n" + spoolRecord("begin", "", "pid=7\n")
	for i := 0; i+1 < len(values); i += 2 {
		s += spoolRecord("value", values[i], "value="+values[i+1]+"\nunit=x\n")
	}
	return s + spoolRecord("end", "", "status="+status+"\nreason="+reason+"\n")
}

func spoolRecord(typ, name, body string) string {
	head := typ + " 1000 " + strconv.Itoa(len(body))
	if name != "" {
		head += " " + name
	}
	return head + "\n" + body + "\n"
}

func plan2(seconds int) iperfPlan {
	return iperfPlan{Tool: toolIperf2, Server: sideTarget, Direction: toTarget, Parallel: 1, ServerVersion: "2.1.8", ClientVersion: "2.1.8",
		Duration: time.Duration(seconds) * time.Second, Clock: clockReceiver}
}

func TestIperfParse(t *testing.T) {
	p3 := iperfPlan{Tool: toolIperf3, Server: sidePeer, Direction: fromTarget, Parallel: 1, ServerVersion: "3.12", ClientVersion: "3.12",
		Duration: 2 * time.Second, Clock: clockReceiver}
	p3target := p3
	p3target.Clock, p3target.ClocksDiffer = clockTarget, true
	stream := plan2(3)
	stream.Tool = toolStream
	guest := stream
	guest.Clock, guest.ClocksDiffer = clockTarget, true
	// The sender times an iperf2 transfer: here the controller, whose 5 s are 0.74 s of the guest.
	reversed := plan2(5)
	reversed.Server, reversed.Reverse, reversed.Clock, reversed.ClocksDiffer = sidePeer, true, clockTarget, true
	head := "Client connecting to 10.0.2.2, TCP port 5001\n[  1] local 10.0.2.15 port 4 connected with 10.0.2.2 port 5001 (reverse)\n"
	hostHead := "Server listening on TCP port 5001\n[  1] local 127.0.0.1 port 5001 connected with 127.0.0.1 port 4 (reverse)\n"
	for _, c := range []struct {
		name  string
		w     Iperf
		plan  iperfPlan
		files map[string]string
		want  float64 // Mbit/s
		note  string
	}{
		{"iperf2, the server's line counts", Iperf{}, plan2(3), map[string]string{
			"stdout": captured(t, "iperf2.txtar", "tcp_interval.server"), "peer-stdout": captured(t, "iperf2.txtar", "tcp_interval.client"),
			"stderr": "", "peer-stderr": "", "spool": spoolThat("ok", ""), "peer-spool": spoolThat("ok", "")}, 200, "server on the target"},
		{"a server that had to be stopped", Iperf{}, plan2(3), map[string]string{
			"stdout": captured(t, "iperf205.txtar", "v205_tcp_default.server"), "peer-stdout": captured(t, "iperf205.txtar", "v205_tcp_default.client"),
			"stderr": "Waiting for server threads to complete. Interrupt again to force quit.\n", "spool": spoolThat("stopped", "")}, 14000, "server on the target"},
		{"iperf3 JSON, the peer receives", Iperf{}, p3, map[string]string{
			"stdout": captured(t, "iperf3.txtar", "v312_server_json.client"), "peer-stdout": captured(t, "iperf3.txtar", "v312_server_json.server")},
			199.77, "server on the peer"},
		{"iperf3 JSON, only the target's clock", Iperf{}, p3target, map[string]string{
			"stdout": captured(t, "iperf3.txtar", "v312_server_json.client"), "peer-stdout": captured(t, "iperf3.txtar", "v312_server_json.server")},
			200.10, "bytes sent as counted by the client on the target"},
		{"stream", Iperf{}, stream, map[string]string{
			"spool": spoolThat("ok", "", "bytes", "37500000", "seconds", "3.0"), "peer-spool": spoolThat("ok", "", "bytes", "37500000", "seconds", "3.01")}, 100, "server on the target"},
		{"iperf2 reversed, a guest that receives", Iperf{}, reversed, map[string]string{
			"stdout": head + "[ *1] 0.0000-0.7371 sec  44356 KBytes  492968 Kbits/sec\n", "peer-stdout": hostHead + "[  1] 0.0000-5.9098 sec  44356 KBytes  61485 Kbits/sec\n"},
			492.968, "as counted by the client on the target, in its own 0.7371 s"},
		{"stream, a guest whose seconds are longer", Iperf{}, guest, map[string]string{
			"spool": spoolThat("ok", "", "bytes", "37500000", "seconds", "1.5"), "peer-spool": spoolThat("ok", "", "bytes", "37500000", "seconds", "3.01")}, 200, "the target's clock is its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.w.Parse(iperfTrial(t, c.plan, c.files))
			if err != nil {
				t.Fatal(err)
			}
			v := valueOf(t, got, "throughput")
			if math.Abs(v.Value-c.want) > c.want*0.001 || v.Unit != "Mbit/s" || !v.Primary {
				t.Errorf("throughput %+v, want %v", v, c.want)
			}
			if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

func TestIperfParseUDP(t *testing.T) {
	p := plan2(3)
	p.UDP = true
	w := Iperf{UDP: true, Bandwidth: "20M", Tool: toolIperf2}
	client := strings.Replace(captured(t, "iperf2.txtar", "udp_interval.client"), "0.005 ms 0/5104 (0%)", "0.005 ms 3113/5104 (61%)", 1)
	server := strings.Replace(captured(t, "iperf2.txtar", "udp_interval.server"), "3.0039 sec  7.16 MBytes  20.0 Mbits/sec   0.005 ms 0/5104 (0%)",
		"3.0039 sec  2.79 MBytes  7.79 Mbits/sec   0.005 ms 3113/5104 (61%)", 1)
	got, err := w.Parse(iperfTrial(t, p, map[string]string{"stdout": server, "peer-stdout": client}))
	if err != nil {
		t.Fatal(err)
	}
	if v := valueOf(t, got, "throughput"); v.Value != 7.79 || math.Abs(v.Resolution-0.01) > 1e-9 {
		t.Errorf("the sender's 20 Mbit/s must not stand in for what arrived: %+v", v)
	}
	if loss, jitter := valueOf(t, got, "loss"), valueOf(t, got, "jitter"); math.Abs(loss.Value-61) > 0.1 || jitter.Value != 0.005 {
		t.Errorf("loss %+v jitter %+v", loss, jitter)
	}
	// On the sender's clock it is still what arrived that counts.
	from := p
	from.Server, from.Direction, from.Clock = sidePeer, fromTarget, clockTarget
	got, err = w.Parse(iperfTrial(t, from, map[string]string{"stdout": client, "peer-stdout": server}))
	if err != nil {
		t.Fatal(err)
	}
	if v := valueOf(t, got, "throughput"); math.Abs(v.Value-2.79*1.048576*8/3.0039) > 1e-6 || math.Abs(valueOf(t, got, "loss").Value-61) > 0.1 {
		t.Errorf("a sender does not see losses: %+v", got.Values)
	}
	// Without the server's own output its report to the client will do.
	got, err = w.Parse(iperfTrial(t, p, map[string]string{"peer-stdout": captured(t, "iperf2.txtar", "udp_interval.client"), "stdout": ""}))
	if err != nil || valueOf(t, got, "throughput").Value != 20 || !strings.Contains(strings.Join(got.Notes, ""), "own line is missing") {
		t.Errorf("%+v, %v", got, err)
	}
	nothing := strings.Split(captured(t, "iperf2.txtar", "udp_interval.client"), "[  1] Server Report:")[0]
	_, err = w.Parse(iperfTrial(t, p, map[string]string{"peer-stdout": nothing, "stdout": ""}))
	wantFailed(t, err, "left no final line")
}

func wantFailed(t *testing.T, err error, want string) {
	t.Helper()
	var f *FailedError
	if !errors.As(err, &f) || !strings.Contains(f.Reason, want) {
		t.Errorf("error %v, want a FailedError with %q", err, want)
	}
}

func wantInvalid(t *testing.T, err error, want string) {
	t.Helper()
	var f *InvalidError
	if !errors.As(err, &f) || !strings.Contains(f.Reason, want) {
		t.Errorf("error %v, want an InvalidError with %q", err, want)
	}
}

func TestIperfRefuses(t *testing.T) {
	server := captured(t, "iperf2.txtar", "tcp_default.server")
	client := captured(t, "iperf2.txtar", "tcp_default.client")
	for _, c := range []struct {
		name    string
		plan    iperfPlan
		files   map[string]string
		failed  string
		invalid string
	}{
		{"nothing was collected", plan2(3), nil, "neither end left any output", ""},
		{"refused, exit status 0", plan2(3), map[string]string{"stdout": "", "stderr": "", "peer-stdout": captured(t, "iperf2.txtar", "err_refused.client"),
			"peer-stderr": "tcp connect failed: Connection refused\n", "peer-spool": spoolThat("ok", "")}, "client on the peer: tcp connect failed: Connection refused", ""},
		{"a foreign listener", plan2(3), map[string]string{"stdout": "", "stderr": "",
			"spool": spoolThat("failed", "port 5001 is already taken by pid 77 (iperf3): end it, or choose another port")}, "server on the target: port 5001 is already taken by pid 77 (iperf3)", ""},
		{"a foreign server answered", plan2(3), map[string]string{"stdout": strings.Split(server, "[  1]")[0], "peer-stdout": client}, "server on the target left no final line", ""},
		{"the client was killed at its deadline", plan2(3), map[string]string{"stdout": server, "peer-stdout": client, "peer-spool": spoolThat("timeout", "")}, "still running at its deadline", ""},
		{"the machine died", plan2(3), map[string]string{"stdout": server, "peer-stdout": client, "spool": "kernsweep-spool 1\nbegin 1 2\n"}, "did the machine die", ""},
		{"a dead link: late and lower", plan2(3), map[string]string{
			"stdout": "[  1] local 1.2.3.4 port 5001 connected with 1.2.3.5 port 4\n[  1] 0.0000-6.2400 sec   396 MBytes   533 Mbits/sec\n", "peer-stdout": client}, "", "lasted 6.24 s, not 3 s"},
		{"ended early", plan2(10), map[string]string{"stdout": server, "peer-stdout": client}, "", "not 10 s"},
		{"figures that contradict", plan2(3), map[string]string{"stdout": strings.Replace(server, "17.0 Gbits", "5.44 Gbits", 1), "peer-stdout": client}, "", "contradict"},
		{"iperf 2.0.5 into an iperf3 server", plan2(3), map[string]string{"stdout": "", "stderr": "iperf3: error - unable to receive parameters from client: \n",
			"peer-stdout": client, "peer-stderr": ""}, "server on the target: iperf3: error", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := (&Iperf{}).Parse(iperfTrial(t, c.plan, c.files))
			if len(got.Values) > 0 {
				t.Errorf("values %+v beside an error", got.Values)
			}
			if c.failed != "" {
				wantFailed(t, err, c.failed)
			} else {
				wantInvalid(t, err, c.invalid)
			}
		})
	}
	reverse := plan2(4)
	reverse.Reverse, reverse.Direction = true, fromTarget
	_, err := (&Iperf{}).Parse(iperfTrial(t, reverse, map[string]string{"stdout": "", "peer-stdout": "Client connecting to 1.2.3.4, TCP port 5001\n" +
		"[  1] local 1.2.3.5 port 4 connected with 1.2.3.4 port 5001 (reverse)\n[ *1] 0.0000-4.0971 sec  0.000 Bytes  0.000 bits/sec\n"}))
	wantFailed(t, err, "0 bytes arrived")
	cut := plan2(5) // the same as a guest's trial, but the controller stopped sending early
	cut.Server, cut.Reverse, cut.Clock, cut.ClocksDiffer = sidePeer, true, clockTarget, true
	_, err = (&Iperf{}).Parse(iperfTrial(t, cut, map[string]string{
		"stdout":      "Client connecting to 10.0.2.2, TCP port 5001\n[  1] local 10.0.2.15 port 4 connected with 10.0.2.2 port 5001 (reverse)\n[ *1] 0.0000-0.7371 sec  44356 KBytes  492968 Kbits/sec\n",
		"peer-stdout": "Server listening on TCP port 5001\n[  1] local 127.0.0.1 port 5001 connected with 127.0.0.1 port 4 (reverse)\n[  1] 0.0000-2.9098 sec  44356 KBytes  124877 Kbits/sec\n"}))
	wantInvalid(t, err, "server on the peer: the transfer lasted 2.91 s")
	busy := plan2(3)
	busy.Tool = toolIperf3
	_, err = (&Iperf{}).Parse(iperfTrial(t, busy, map[string]string{"stdout": "", "peer-stdout": captured(t, "iperf3.txtar", "v312_busy_json.client")}))
	wantFailed(t, err, "busy running a test")
	_, err = (&Iperf{}).Parse(iperfTrial(t, busy, map[string]string{"stdout": "", "peer-stdout": captured(t, "iperf3.txtar", "v312_serverterm_json.client")}))
	wantFailed(t, err, "the server has terminated")
}

func TestIperfCheck(t *testing.T) {
	for want, w := range map[string]Iperf{
		"":                         {},
		"tool = \"iperf\"":         {Tool: "iperf"},
		"server = \"controller\"":  {Server: "controller"},
		"direction = \"both\"":     {Direction: "both"},
		"whole seconds":            {Duration: 1500 * time.Millisecond},
		"needs a bandwidth":        {UDP: true},
		"bandwidth = \"fast\"":     {Bandwidth: "fast"},
		"knows only TCP":           {Tool: "stream", UDP: true, Bandwidth: "1M"},
		"window = \"64 K\"":        {Window: "64 K"},
		"parallel = 1000":          {Parallel: 1000},
		"over 1000 lines":          {Parallel: 64, Duration: 100 * time.Second, Interval: time.Second},
		"port = 70000":             {Port: 70000},
		"clock = \"controller's\"": {Clock: "controller's"},
	} {
		err := w.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", w, err, want)
		}
	}
	w := Iperf{Parallel: 128, Duration: time.Hour}
	if err := w.Check(); err != nil || w.filled().Interval < 7*time.Minute {
		t.Errorf("a long trial with many streams: %v, interval %v", err, w.filled().Interval)
	}
	w = Iperf{Bandwidth: "1.5M"}
	if n, err := w.bits(); n != 1500000 || err != nil {
		t.Errorf("1.5M is %d, %v", n, err)
	}
}
