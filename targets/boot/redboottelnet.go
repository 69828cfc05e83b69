package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/console"
)

const (
	knockEvery = 300 * time.Millisecond // the window is seconds wide
	knockTime  = time.Second            // for one try: an address that is not there yet answers nothing
	execAnswer = 5 * time.Second
)

// overTelnet does what Boot does through the loader's own TCP port.
func (r *RedBoot) overTelnet(ctx context.Context, t *targets.Target, k targets.Kernel, names netFiles) error {
	return r.tries(ctx, redbootKind, func(try int) error {
		if t.Console != nil {
			tap, err := t.Tap() // what the loader prints there is not judged
			if err != nil {
				return &finalError{err}
			}
			defer tap.Close()
		}
		how, err := restart(ctx, t, try)
		if err != nil {
			return err
		}
		conn, err := r.knock(ctx, t.Timeout.WithDefaults().Down)
		if err != nil {
			return fmt.Errorf("restarted by %s: %w", how, err)
		}
		remote := console.NewRemote(conn)
		defer remote.Close()
		d := r.dialogue(remote, redbootKind)
		outcome, err := d.Interrupt(ctx, 20*time.Second, console.Interruption{Keys: r.keys(redbootKind)})
		if err != nil {
			return err
		}
		if outcome == console.MissedAutoboot {
			return errMissed
		}
		if err := redbootKind.syncWith(ctx, d, fmt.Sprintf("%d", time.Now().UnixNano()%1e6)); err != nil {
			return err
		}
		line, err := r.load(ctx, d, k, names)
		if err != nil {
			return err
		}
		return r.execute(ctx, d, k, line)
	})
}

// knock tries to connect until the loader's window opens.
func (r *RedBoot) knock(ctx context.Context, within time.Duration) (net.Conn, error) {
	ctx, stop := context.WithTimeoutCause(ctx, within, fmt.Errorf("%s did not open within %s: has the loader this address at its start, and this machine one in its network?", r.Telnet, within))
	defer stop()
	tick := time.NewTicker(knockEvery)
	defer tick.Stop()
	dialer := net.Dialer{Timeout: knockTime}
	for {
		conn, err := dialer.DialContext(ctx, "tcp", r.Telnet)
		if err == nil {
			return conn, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; last try: %w", context.Cause(ctx), err)
		}
	}
}

// execute starts the kernel. The connection dies with the loader, so no answer is
// as good as a good one.
func (r *RedBoot) execute(ctx context.Context, d *console.Dialogue, k targets.Kernel, line string) error {
	if err := d.Type(ctx, line); err != nil {
		return err
	}
	if _, err := d.Channel.Write([]byte("\r")); err != nil {
		return fmt.Errorf("typing to %s: %w", r.Telnet, err)
	}
	which, said, err := d.Expect(ctx, execAnswer, regexp.MustCompile(`Now booting linux kernel|Using base address`),
		regexp.MustCompile(`(?m)^.*(?:`+redbootBad.String()+`).*\n`))
	var late *console.TimeoutError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && which == 1:
		return r.refusal(k, line, complaint(said, redbootBad), nil)
	case err == nil || !errors.As(err, &late):
		return nil // it runs, or the connection is gone
	}
	r.note("RedBoot did not say that it starts the kernel: %v", err)
	return nil
}
