package workloads

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
)

// iperfPlanFile keeps what a trial ran, for Parse and for people.
const iperfPlanFile = "iperf.json"

// iperfPlan is one trial, resolved for the two machines at hand.
type iperfPlan struct {
	Tool          string        `json:"tool"`
	ServerVersion string        `json:"server_version,omitempty"`
	ClientVersion string        `json:"client_version,omitempty"`
	Server        string        `json:"server"` // which end listens
	Direction     string        `json:"direction"`
	Reverse       bool          `json:"reverse,omitempty"` // the server sends
	UDP           bool          `json:"udp,omitempty"`
	Parallel      int           `json:"parallel"`
	Duration      time.Duration `json:"duration_ns"`
	Clock         string        `json:"clock"`
	ClocksDiffer  bool          `json:"clocks_differ,omitempty"` // the target's seconds are its own
	Listen        int           `json:"listen"`
	Dial          string        `json:"dial"`
	ServerArgv    []string      `json:"server_argv"`
	ClientArgv    []string      `json:"client_argv"`
}

// iperfTool is one iperf found on a machine.
type iperfTool struct{ Bin, Version string }

// findTools asks for versions; iperf2 prints its own to standard error.
const findTools = `for t in iperf3 iperf iperf2; do command -v $t >/dev/null 2>&1 && { echo "== $t"; $t -v </dev/null 2>&1; }; done; exit 0`

var (
	version2Pattern = regexp.MustCompile(`^iperf version (2\.\S+)`)
	version3Pattern = regexp.MustCompile(`^iperf (3\.\S+)`)
)

// iperfTools looks for iperf2 and iperf3, by what they say and not by name. An
// error is the link's.
func iperfTools(ctx context.Context, conn targets.Conn, side string) (map[string]iperfTool, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var out bytes.Buffer
	if _, err := conn.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", findTools}, Stdout: &out}); err != nil {
		return nil, fmt.Errorf("ask the %s for its iperf versions: %w", side, err)
	}
	found := map[string]iperfTool{}
	bin := ""
	for line := range strings.Lines(out.String()) {
		if name, ok := strings.CutPrefix(line, "== "); ok {
			bin = strings.TrimSpace(name)
			continue
		}
		for tool, pattern := range map[string]*regexp.Regexp{toolIperf2: version2Pattern, toolIperf3: version3Pattern} {
			if m := pattern.FindStringSubmatch(line); m != nil && found[tool].Bin == "" {
				found[tool] = iperfTool{Bin: bin, Version: m[1]}
			}
		}
	}
	return found, nil
}

// plan resolves w for env: tool, versions, address, port, command lines.
func (w *Iperf) plan(ctx context.Context, env *Env) (*iperfPlan, error) {
	f := w.filled()
	if env.Peer.Conn == nil || env.Peer.Agent == nil {
		return nil, &UnavailableError{Reason: "no peer: iperf needs a second machine"}
	}
	p := &iperfPlan{Server: f.Server, Direction: f.Direction, Reverse: f.reverse(), UDP: f.UDP, Parallel: f.Parallel,
		Duration: f.Duration, Clock: f.Clock}
	if env.Target.Network.Clock == "guest" {
		p.Clock, p.ClocksDiffer = clockTarget, true
	}
	server, client := p.sides(env)
	serverTools, err := iperfTools(ctx, server.Conn, p.Server)
	if err != nil {
		return nil, err
	}
	clientTools, err := iperfTools(ctx, client.Conn, p.client())
	if err != nil {
		return nil, err
	}
	if err := p.choose(f, env, serverTools, clientTools); err != nil {
		return nil, err
	}
	if err := p.address(f, env); err != nil {
		return nil, err
	}
	return p, p.argv(f, serverTools[p.Tool], clientTools[p.Tool])
}

// sides tells who is who in env.
func (p *iperfPlan) sides(env *Env) (server, client Side) {
	if p.Server == sideTarget {
		return env.Target, env.Peer
	}
	return env.Peer, env.Target
}

// client is the end that does not listen.
func (p *iperfPlan) client() string {
	if p.Server == sideTarget {
		return sidePeer
	}
	return sideTarget
}

// choose takes the tool asked for, or the first one that both ends have.
func (p *iperfPlan) choose(f Iperf, env *Env, server, client map[string]iperfTool) error {
	tools := []string{f.Tool}
	if f.Tool == toolAuto {
		tools = []string{toolIperf3, toolIperf2, toolStream}
	}
	var why []string
	for _, tool := range tools {
		reason := p.lacks(tool, f, env, server[tool], client[tool])
		if reason == "" {
			p.Tool, p.ServerVersion, p.ClientVersion = tool, server[tool].Version, client[tool].Version
			return nil
		}
		why = append(why, reason)
	}
	return &UnavailableError{Reason: strings.Join(why, "; ")}
}

// lacks says why a tool cannot be used here, "" when it can.
func (p *iperfPlan) lacks(tool string, f Iperf, env *Env, server, client iperfTool) string {
	if tool == toolStream {
		for _, s := range []struct {
			name  string
			agent Agent
		}{{sideTarget, env.Target.Agent}, {sidePeer, env.Peer.Agent}} {
			if kind := s.agent.Kind(); kind != "go" {
				return "stream: the " + s.name + " runs the " + kind + " agent, which has no sockets"
			}
		}
		if f.UDP || f.Bandwidth != "" || f.Window != "" || len(f.ClientArgs)+len(f.ServerArgs) > 0 {
			return "stream knows only TCP at full speed"
		}
		return ""
	}
	switch {
	case server.Bin == "" && client.Bin == "":
		return "no " + tool + " on target and peer"
	case server.Bin == "":
		return "no " + tool + " on the " + p.Server
	case client.Bin == "":
		return "no " + tool + " on the " + p.client()
	}
	old, where := server.Version, p.Server
	if !strings.HasPrefix(old, "2.0.") {
		old, where = client.Version, p.client()
	}
	switch {
	case tool != toolIperf2 || !strings.HasPrefix(old, "2.0."):
		return ""
	case p.Reverse:
		return fmt.Sprintf("iperf %s on the %s cannot reverse (it may ignore -R and exit with 0): set server = %q", old, where, p.client())
	case f.Bandwidth != "" && !f.UDP:
		return fmt.Sprintf("iperf %s on the %s takes -b for UDP: a TCP bandwidth needs 2.1 or iperf3", old, where)
	}
	return ""
}

// address finds where the client dials.
func (p *iperfPlan) address(f Iperf, env *Env) error {
	p.Listen = f.Port
	host, forwarded := env.Peer.Network.Address, env.Peer.Network.Ports
	if p.Server == sideTarget {
		host, forwarded = env.Target.Network.Address, env.Target.Network.Ports
	} else if host == "" { // the controller
		host = env.Target.Network.Peer
	}
	if host == "" {
		return &UnavailableError{Reason: "the address of the " + p.Server + " is not known: set network { address = … } (or peer_address) on the target"}
	}
	if p.Listen == 0 {
		var ok bool
		if p.Listen, ok = usualPort(p.Tool, forwarded); !ok {
			return &UnavailableError{Reason: "no port of the " + p.Server + " is forwarded but that of SSH: add 5001 to the forwarded ports, or set server = " + strconv.Quote(p.client())}
		}
	}
	port := p.Listen
	if there := forwarded[port]; there != 0 {
		port = there
	}
	p.Dial = net.JoinHostPort(host, strconv.Itoa(port))
	return nil
}

// usualPort is the tool's own port, unless only others are forwarded.
func usualPort(tool string, forwarded map[int]int) (port int, ok bool) {
	port = 5001
	if tool == toolIperf3 {
		port = 5201
	}
	if _, ok := forwarded[port]; ok || len(forwarded) == 0 {
		return port, true
	}
	for _, p := range slices.Sorted(maps.Keys(forwarded)) {
		if p != 22 {
			return p, true
		}
	}
	return 0, false
}

// argv builds both command lines, as the agents' tasks.
func (p *iperfPlan) argv(f Iperf, server, client iperfTool) error {
	host, port, err := net.SplitHostPort(p.Dial)
	if err != nil {
		return fmt.Errorf("iperf: %w", err)
	}
	bits, err := f.bits()
	if err != nil {
		return err
	}
	seconds := strconv.Itoa(int(p.Duration / time.Second))
	every := strconv.FormatFloat(f.Interval.Seconds(), 'f', -1, 64)
	streams, listen := strconv.Itoa(p.Parallel), strconv.Itoa(p.Listen)
	s, c := []string{"exec", "--", server.Bin, "-s", "-p", listen}, []string{"exec", "--", client.Bin, "-c", host, "-p", port}
	switch p.Tool {
	case toolStream:
		way := "send"
		if p.Reverse {
			way = "receive"
		}
		p.ServerArgv = []string{"stream", "-listen", listen, "-once"}
		p.ClientArgv = []string{"stream", "-connect", p.Dial, "-direction", way, "-duration", p.Duration.String(), "-parallel", streams}
		return nil
	case toolIperf2: // -P ends the server after so many connections; -f k has the finest step
		s = append(s, "-f", "k", "-i", every, "-P", streams)
		c = append(c, "-f", "k", "-i", every, "-P", streams, "-t", seconds)
		if strings.Contains(host, ":") {
			s, c = append(s, "-V"), append(c, "-V")
		}
		if p.UDP {
			s = append(s, "-u")
		}
		if f.Window != "" {
			s = append(s, "-w", f.Window)
		}
	case toolIperf3:
		s = append(s, "-1", "-J", "-i", every)
		c = append(c, "-J", "-i", every, "-P", streams, "-t", seconds)
	}
	if p.UDP {
		c = append(c, "-u")
	}
	if bits > 0 {
		c = append(c, "-b", strconv.FormatInt(bits, 10))
	}
	if f.Window != "" {
		c = append(c, "-w", f.Window)
	}
	if p.Reverse {
		c = append(c, "-R")
	}
	p.ServerArgv, p.ClientArgv = append(s, f.ServerArgs...), append(c, f.ClientArgs...)
	return nil
}
