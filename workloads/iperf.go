package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// Iperf measures the throughput of a network transfer between a target and a
// peer: with iperf2, iperf3, or the agent's own stream. A transfer has one
// direction; for both, write two scenarios.
type Iperf struct {
	Tool       string        `hcl:"tool,optional" doc:"\"iperf2\", \"iperf3\", \"stream\" (built into the Go agent), or \"auto\" (default): the first of iperf3, iperf2, stream that both ends have"`
	Server     string        `hcl:"server,optional" doc:"which end listens: \"target\" (default) or \"peer\""`
	Direction  string        `hcl:"direction,optional" doc:"\"to_target\" or \"from_target\" (default: towards the server). Against the server's direction iperf is asked to reverse, which iperf2 knows only from 2.1 on"`
	Duration   time.Duration `hcl:"duration,optional" doc:"length of the transfer, on the clock of the sender, with iperf3 of the client (default 10s)"`
	Parallel   int           `hcl:"parallel,optional" doc:"streams at once (default 1)"`
	UDP        bool          `hcl:"udp,optional" doc:"datagrams instead of TCP; needs bandwidth"`
	Bandwidth  string        `hcl:"bandwidth,optional" doc:"rate offered by each stream, in bit/s: \"20M\" is 20,000,000 (default: as fast as TCP goes)"`
	Window     string        `hcl:"window,optional" doc:"socket buffer, as iperf's -w takes it: \"64K\""`
	Port       int           `hcl:"port,optional" doc:"where the server listens (default 5001, for iperf3 5201; on a target whose ports are forwarded: one of those)"`
	Interval   time.Duration `hcl:"interval,optional" doc:"between iperf's own lines, which show stalls (default 1s, longer where that would be over 1000 lines)"`
	Clock      string        `hcl:"clock,optional" doc:"whose seconds count: \"receiver\" (default) or \"target\"; a target whose clock is its own (QEMU with -icount) is always \"target\""`
	ClientArgs []string      `hcl:"client_args,optional" doc:"further arguments of the client, as they are"`
	ServerArgs []string      `hcl:"server_args,optional" doc:"further arguments of the server, as they are"`
}

// Words of the configuration.
const (
	toolAuto   = "auto"
	toolIperf2 = "iperf2"
	toolIperf3 = "iperf3"
	toolStream = "stream"

	sideTarget = "target"
	sidePeer   = "peer"

	toTarget   = "to_target"
	fromTarget = "from_target"

	clockReceiver = "receiver"
	clockTarget   = "target"
)

// filled is w with the defaults in place.
func (w *Iperf) filled() Iperf {
	f := *w
	set := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	set(&f.Tool, toolAuto)
	set(&f.Server, sideTarget)
	set(&f.Clock, clockReceiver)
	if f.Server == sideTarget {
		set(&f.Direction, toTarget)
	}
	set(&f.Direction, fromTarget)
	if f.Duration == 0 {
		f.Duration = 10 * time.Second
	}
	if f.Parallel == 0 {
		f.Parallel = 1
	}
	if f.Interval == 0 {
		f.Interval = time.Second * time.Duration(1+int(f.Duration.Seconds())*f.Parallel/maxIntervals)
	}
	return f
}

// maxIntervals bounds the lines of one process: iperf3 needs half a kilobyte for
// each, and an agent keeps a megabyte.
const maxIntervals = 1000

// reverse says whether the server has to send.
func (w *Iperf) reverse() bool { return (w.Server == sideTarget) != (w.Direction == toTarget) }

// Check implements Workload.
func (w *Iperf) Check() error {
	f := w.filled()
	for _, c := range []struct{ name, value, words string }{
		{"tool", f.Tool, "auto iperf2 iperf3 stream"}, {"server", f.Server, "target peer"},
		{"direction", f.Direction, "to_target from_target"}, {"clock", f.Clock, "receiver target"},
	} {
		if !oneOf(c.value, c.words) {
			return fmt.Errorf("%s = %q: must be one of: %s", c.name, c.value, strings.ReplaceAll(c.words, " ", ", "))
		}
	}
	switch {
	case f.Duration < time.Second || f.Duration%time.Second != 0:
		return fmt.Errorf("duration = %q: must be whole seconds, at least 1s (iperf3 knows no others)", f.Duration)
	case f.Parallel < 1 || f.Parallel > 128:
		return fmt.Errorf("parallel = %d: must be 1 to 128", f.Parallel)
	case f.Port < 0 || f.Port > 65535:
		return fmt.Errorf("port = %d: must be 1 to 65535", f.Port)
	case f.Interval < 100*time.Millisecond:
		return fmt.Errorf("interval = %q: must be at least 100ms", f.Interval)
	case f.Duration.Seconds()/f.Interval.Seconds()*float64(f.Parallel) > 1.1*maxIntervals:
		return fmt.Errorf("interval = %q: with %d streams in %v that is over %d lines, more than an agent keeps: make it longer", f.Interval, f.Parallel, f.Duration, maxIntervals)
	case f.UDP && f.Bandwidth == "":
		return errors.New("udp = true needs a bandwidth: without one iperf offers 1 Mbit/s, which measures nothing")
	case f.Tool == toolStream && (f.UDP || f.Bandwidth != "" || f.Window != "" || len(f.ClientArgs)+len(f.ServerArgs) > 0):
		return errors.New("tool = \"stream\" knows only TCP at full speed: take udp, bandwidth, window and extra arguments away, or use iperf2 or iperf3")
	}
	if f.Window != "" && !sizePattern.MatchString(f.Window) {
		return fmt.Errorf("window = %q: must be a number with K or M, as in \"64K\"", f.Window)
	}
	_, err := f.bits()
	return err
}

func oneOf(word, words string) bool {
	for _, w := range strings.Fields(words) {
		if w == word {
			return true
		}
	}
	return false
}

var (
	sizePattern = regexp.MustCompile(`^\d+[KMkm]?$`)
	ratePattern = regexp.MustCompile(`^(\d+(?:\.\d+)?)([KMGkmg]?)$`)
)

// bits is Bandwidth in bit/s, 0 for none. iperf2 takes M for 2^20 where iperf3
// takes 10^6, so tools are given plain digits.
func (w *Iperf) bits() (int64, error) {
	if w.Bandwidth == "" {
		return 0, nil
	}
	m := ratePattern.FindStringSubmatch(w.Bandwidth)
	if m == nil {
		return 0, fmt.Errorf("bandwidth = %q: must be a number of bit/s with K, M or G, as in \"20M\"", w.Bandwidth)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("bandwidth = %q: %w", w.Bandwidth, err)
	}
	n *= map[string]float64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[strings.ToUpper(m[2])]
	if n < 1 || n > 1e12 {
		return 0, fmt.Errorf("bandwidth = %q: out of range", w.Bandwidth)
	}
	return int64(n), nil
}

// Needs implements Workload.
func (w *Iperf) Needs() Needs {
	n := Needs{Peer: true}
	if w.Tool == toolStream {
		n.GoAgent = "stream is built into the Go agent; the shell agent has no sockets"
	}
	return n
}

// Estimate implements Workload.
func (w *Iperf) Estimate() time.Duration { return w.filled().Duration + 3*time.Second }

// Metrics implements Workload.
func (w *Iperf) Metrics() []Metric {
	m := []Metric{metricThroughput}
	if w.UDP {
		m = append(m, metricLoss, metricJitter)
	}
	if f := w.filled(); f.Tool == toolAuto || f.Tool == toolIperf3 {
		if !w.UDP {
			m = append(m, metricRetransmits)
		}
		m = append(m, metricCPUTarget, metricCPUPeer)
	}
	return m
}

var (
	metricThroughput  = Metric{Name: "throughput", Unit: "Mbit/s", Better: HigherIsBetter, Primary: true}
	metricLoss        = Metric{Name: "loss", Unit: "%", Better: LowerIsBetter}
	metricJitter      = Metric{Name: "jitter", Unit: "ms", Better: LowerIsBetter}
	metricRetransmits = Metric{Name: "retransmits", Unit: "count", Better: Informative}
	metricCPUTarget   = Metric{Name: "iperf_cpu_target", Unit: "%", Better: Informative} // of the process, without interrupts
	metricCPUPeer     = Metric{Name: "iperf_cpu_peer", Unit: "%", Better: Informative}
)

// Prepare implements Preparer: it asks both ends for their tools once, so that
// what cannot run is said before the first trial.
func (w *Iperf) Prepare(ctx context.Context, env *Env) error {
	_, err := w.plan(ctx, env)
	return err
}

// Run implements Workload. The target's files have plain names, the peer's
// begin with "peer-"; iperf.json says who listened and what was run.
func (w *Iperf) Run(ctx context.Context, env *Env) error {
	if p, err := keptPlan(env.Dir); p != nil || err != nil { // begun by an earlier session
		if err != nil {
			return err
		}
		return p.run(ctx, env)
	}
	p, err := w.plan(ctx, env)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("iperf: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(env.Dir, iperfPlanFile), append(text, '\n'), 0o644, renameio.WithTempDir(env.Dir)); err != nil {
		return fmt.Errorf("iperf: keep the plan of the trial: %w", err)
	}
	return p.run(ctx, env)
}

// keptPlan is the plan of a trial that was begun in dir, nil when none was.
func keptPlan(dir string) (*iperfPlan, error) {
	text, err := os.ReadFile(filepath.Join(dir, iperfPlanFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	p := &iperfPlan{}
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil {
		return nil, fmt.Errorf("iperf: the plan of the trial that was begun: %w", err)
	}
	return p, nil
}
