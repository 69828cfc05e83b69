package sshconn

import (
	"context"
	"net"
	"sync"
	"time"
)

// knockEvery is the time between two knocks.
const knockEvery = 400 * time.Millisecond

// knock connects to a machine that comes up. The kernel repeats an unanswered
// request to connect after 1, 3 and 7 s (RFC 6298), so a machine that begins to
// answer in between would be found late: a further request goes out every
// knockEvery beside those that wait. The first result counts.
func knock(ctx context.Context, dialer *net.Dialer, addr string) (net.Conn, error) {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	tick := time.NewTicker(knockEvery)
	defer tick.Stop()
	for {
		all.Go(func() {
			c, err := dialer.DialContext(ctx, "tcp", addr)
			select {
			case results <- result{c, err}:
			case <-ctx.Done():
				if c != nil {
					_ = c.Close() // another was first
				}
			}
		})
		select {
		case r := <-results:
			return r.conn, r.err
		case <-tick.C:
		}
	}
}
