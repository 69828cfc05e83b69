package orchestrator

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// Waits of finding out whose power was cut.
const (
	silenceTry = 3 * time.Second // for one look at a target
	outageWait = 3 * time.Minute // for other lanes' power-offs to be confirmed
)

// outages knows which targets lost their power by another lane's hand. A lane
// asks before it blames a kernel or a cable for a target that went away.
type outages struct {
	mu   sync.Mutex
	open map[string]chan struct{} // target that is being switched off -> closed when it is known what that did
	hits map[string]outage        // the newest by victim
}

type outage struct {
	until time.Time // the outlet was on again
	why   string
}

func newOutages() *outages {
	return &outages{open: map[string]chan struct{}{}, hits: map[string]outage{}}
}

// begin says that a target's supply is being switched off; end, that it is known
// what fell silent.
func (o *outages) begin(target string) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := make(chan struct{})
	o.open[target] = known
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.open, target)
		close(known)
	}
}

// hit notes that a victim was without power until now.
func (o *outages) hit(victim, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hits[victim] = outage{time.Now(), why}
}

// cause says why target lost its power since a time, "" when nothing cut it. It
// waits until the power-offs of other targets that are under way have shown what
// they did.
func (o *outages) cause(ctx context.Context, target string, since time.Time) string {
	ctx, stop := context.WithTimeout(ctx, outageWait)
	defer stop()
	for _, known := range o.underway(target) {
		select {
		case <-known:
		case <-ctx.Done():
			return ""
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.hits[target]; h.until.After(since) {
		return h.why
	}
	return ""
}

func (o *outages) underway(but string) []chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []chan struct{}
	for target, known := range o.open {
		if target != but {
			out = append(out, known)
		}
	}
	return out
}

// dark are the other targets of the run that do not answer while the outlet of
// l's target is off.
func (l *lane) dark(ctx context.Context) []string {
	ctx, stop := context.WithTimeout(ctx, 3*silenceTry)
	defer stop()
	var mu sync.Mutex
	var victims []string
	var wg sync.WaitGroup
	for _, other := range l.r.lanes {
		if other == l || other.away.Load() || targets.TraitsOf(other.conf.Boot).Local {
			continue // one that boots is silent anyway
		}
		wg.Go(func() {
			if l.r.silent(ctx, other.conf) {
				mu.Lock()
				defer mu.Unlock()
				victims = append(victims, other.conf.Name)
			}
		})
	}
	wg.Wait()
	slices.Sort(victims)
	return victims
}

// blame tells the lanes of the victims why their targets went away.
func (l *lane) blame(ctx context.Context, victims []string) {
	why := "its power was cut: the outlet that is configured for target " + l.conf.Name + " was switched off, and this target fell silent"
	for _, v := range victims {
		l.r.outages.hit(v, why)
		_ = l.r.append(ctx, results.Record{Lane: v, Kind: results.KindNote, Note: why})
	}
}

// silent looks once whether a target has gone: one TCP connection disturbs a
// measurement least. Where that leads to nothing it may be a name that only
// ssh_config knows, so a log-in is tried too.
func (r *Runner) silent(ctx context.Context, t *config.Target) bool {
	if t.SSH.Host != "" && len(t.SSH.Via) == 0 {
		port := t.SSH.Port
		if port == 0 {
			port = 22
		}
		d := net.Dialer{Timeout: silenceTry}
		if c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(t.SSH.Host, strconv.Itoa(port))); err == nil {
			_ = c.Close() // that it came about was the question
			return false
		}
	}
	ctx, stop := context.WithTimeout(ctx, silenceTry)
	defer stop()
	conn, err := r.Dial(ctx, t.SSH, targets.DialOptions{})
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}
