package workloads

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Margins of the two processes of a trial beyond its duration. A dead link
// makes iperf 2.0.5 hang for ever and ignore SIGTERM; the agent kills it then.
const (
	clientMargin = 20 * time.Second
	serverMargin = 30 * time.Second
	serverGrace  = 10 * time.Second // after the client; it ends by itself unless the client never came
)

// errClientOver ends a server that waits for a client that is over.
var errClientOver = errors.New("its client is over")

// run starts the server, waits until it owns its port, runs the client, and
// waits for the server to end. Both processes are over when it returns, or end
// on their machines by themselves within the margins.
func (p *iperfPlan) run(ctx context.Context, env *Env) error {
	server, client := p.sides(env)
	ready := make(chan struct{})
	var once sync.Once
	serve := Task{
		Argv: p.ServerArgv, Env: []string{"LC_ALL=C"},
		Listen: p.Listen, UDP: p.UDP && p.Tool == toolIperf2, // iperf3 listens on TCP for UDP too
		Ready:     func() { once.Do(func() { close(ready) }) },
		StopAfter: p.limit(env, serverMargin), Sample: env.Sample, Dir: env.Dir, Prefix: p.prefix(true),
	}
	call := Task{
		Argv: p.ClientArgv, Env: []string{"LC_ALL=C"},
		Deadline: p.limit(env, clientMargin), Sample: env.Sample, Dir: env.Dir, Prefix: p.prefix(false),
	}
	if p.Server == sideTarget {
		serve.Ended = env.Ended
	} else {
		call.Ended = env.Ended
	}
	serverCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over := make(chan error, 1)
	go func() { over <- server.Agent.Run(serverCtx, serve) }()
	select {
	case <-ready:
	case err := <-over: // it never owned the port; its spool says why
		return wrapEnd("server", err)
	}
	err := wrapEnd("client", client.Agent.Run(ctx, call))
	if err != nil {
		stop(errClientOver)
	}
	grace := time.NewTimer(p.grace())
	defer grace.Stop()
	var serr error
	select {
	case serr = <-over:
	case <-grace.C:
		stop(errClientOver)
		serr = <-over
	}
	if errors.Is(serr, errClientOver) { // our own doing
		serr = nil
	}
	return errors.Join(err, wrapEnd("server", serr))
}

func wrapEnd(end string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("iperf %s: %w", end, err)
}

// limit is how long a process may run, on its own machine's clock. Where the
// two clocks differ only the trial's own deadline is a bound that holds.
func (p *iperfPlan) limit(env *Env, margin time.Duration) time.Duration {
	d := p.Duration + margin
	if p.ClocksDiffer {
		return max(20*d, env.Deadline)
	}
	return d
}

// grace is how long a server may take to end after its client, on the
// controller's clock: a guest with a slow one needs longer.
func (p *iperfPlan) grace() time.Duration {
	if p.ClocksDiffer {
		return 6 * serverGrace
	}
	return serverGrace
}

// prefix of the files of one end: the target's have none.
func (p *iperfPlan) prefix(server bool) string {
	if server == (p.Server == sideTarget) {
		return ""
	}
	return "peer-"
}
