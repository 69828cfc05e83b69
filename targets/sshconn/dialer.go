// Package sshconn is targets.Conn over SSH. A Dialer resolves a target's
// settings with the user's own ssh configuration, passes its jump hosts, checks
// host keys, logs in, and hands out one connection for everything: commands,
// and files by SFTP or, where the server has none, by a plain channel. Every
// failure of the link is a *targets.LinkError that names the phase, the machine
// and what to do next.
package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

const (
	connectTimeout   = 10 * time.Second // for one TCP connection
	handshakeTimeout = 30 * time.Second // key exchange and log-in; slow routers take seconds
	handshakesAtOnce = 4                // per server: more make sshd and Dropbear drop log-ins
)

// Dialer opens connections and remembers what holds across them: host keys
// accepted after a boot, parsed known_hosts files, resolved configurations.
// It is safe for concurrent use.
type Dialer struct {
	log      *zap.Logger
	patience time.Duration // for one handshake
	opening  time.Duration // for the opening of a session, and for the start of SFTP
	pause    time.Duration // before a server that closed at once is asked again; it doubles

	mu       sync.Mutex
	accepted map[string]ssh.PublicKey // address -> key accepted after a boot
	gates    map[string]chan struct{} // address -> handshakes under way
	known    map[string]*knownHosts
	resolved map[string]resolved
}

// New returns a Dialer that logs to log.
func New(log *zap.Logger) *Dialer {
	if log == nil {
		log = zap.NewNop()
	}
	return &Dialer{
		log: log, patience: handshakeTimeout, opening: openTimeout, pause: busyPause, accepted: map[string]ssh.PublicKey{}, gates: map[string]chan struct{}{},
		known: map[string]*knownHosts{}, resolved: map[string]resolved{},
	}
}

var _ targets.DialFunc = (*Dialer)(nil).Dial

// Dial connects to s, through its jump hosts, and logs in. The error is a
// *targets.LinkError.
func (d *Dialer) Dial(ctx context.Context, s targets.SSH, o targets.DialOptions) (targets.Conn, error) {
	c, err := d.dial(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if o.Server != nil {
		o.Server(c.facts(ctx))
	}
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, s targets.SSH, o targets.DialOptions) (*conn, error) {
	route, err := d.route(ctx, s)
	if err != nil {
		return nil, &targets.LinkError{Phase: "connect", Err: err, Refused: ctx.Err() == nil}
	}
	var w way
	for i, h := range route {
		client, l, err := d.hop(ctx, w, h, o)
		if err != nil {
			w.close()
			if i < len(route)-1 {
				err.Hop, err.Err = h.String(), fmt.Errorf("jump host %d of %d: %w", i+1, len(route)-1, err.Err)
			}
			return nil, err
		}
		if i == len(route)-1 {
			return newConn(d, client, l, w, h, s, o), nil
		}
		w = append(w, jump{client, h})
	}
	return nil, &targets.LinkError{Phase: "connect", Err: fmt.Errorf("%s: no route", s.Host)}
}

// hop opens the next connection of the route, over w.
func (d *Dialer) hop(ctx context.Context, w way, h host, o targets.DialOptions) (*ssh.Client, *link, *targets.LinkError) {
	leave, err := d.enter(ctx, h.addr())
	if err != nil {
		return nil, nil, &targets.LinkError{Phase: "connect", Err: fmt.Errorf("%s: %w", h, err)}
	}
	defer leave()
	pause := d.pause
	for refusals := 0; ; refusals++ {
		client, l, lerr := d.attempt(ctx, w, h, o)
		if lerr != nil && l != nil && lerr.Phase == "handshake" && strings.Contains(l.begin(), "dropbear") && errors.Is(lerr, io.EOF) {
			// It may have agreed to an RSA key that it lacks (see hostKeyAlgorithms).
			h.noRSA = true
			client, l, lerr = d.attempt(ctx, w, h, o)
		}
		switch {
		case lerr == nil:
			if refusals > 0 && o.Note != nil {
				o.Note(fmt.Sprintf("%s: let us in after it had closed %d connections at once: too many log-ins there (MaxStartups?)", h, refusals))
			}
			return client, l, nil
		case o.AfterBoot || refusals == maxBusy || !turnedAway(lerr, l):
			return nil, l, lerr
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, l, lerr
		}
		pause *= 2
	}
}

// attempt makes one connection and one handshake.
func (d *Dialer) attempt(ctx context.Context, w way, h host, o targets.DialOptions) (*ssh.Client, *link, *targets.LinkError) {
	raw, err := connect(ctx, w, h, o.AfterBoot)
	if err != nil {
		return nil, nil, w.explain(ctx, h, err)
	}
	l := newLink(raw)
	client, lerr := d.handshake(ctx, w, l, h, o)
	if lerr != nil {
		raw.Close()
		return nil, l, lerr
	}
	return client, l, nil
}

// handshake makes an SSH client of an open link, within a deadline of its own:
// ssh.ClientConfig.Timeout covers nothing after the TCP connection.
func (d *Dialer) handshake(ctx context.Context, w way, l *link, h host, o targets.DialOptions) (*ssh.Client, *targets.LinkError) {
	a, err := d.auth(h)
	if err != nil {
		return nil, &targets.LinkError{Phase: "log in", Err: fmt.Errorf("%s: %w", h, err), Refused: true}
	}
	defer a.close()
	keys, err := d.hostKeys(h, o)
	if err != nil {
		return nil, &targets.LinkError{Phase: "handshake", Err: fmt.Errorf("%s: %w", h, err), Refused: true}
	}
	config := clientConfig(h, keys, a)
	limited, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	fault := make(chan *targets.LinkError, 1)
	stop := context.AfterFunc(limited, func() {
		fault <- w.fault(ctx, h)
		l.Close()
		w.cut() // over a jump host that hangs, closing the link alone ends nothing
	})
	c, chans, reqs, err := ssh.NewClientConn(l, h.addr(), config)
	if !stop() {
		if err == nil {
			c.Close()
			err = limited.Err()
		}
		if f := <-fault; f != nil {
			return nil, f
		}
	}
	if err != nil {
		phase := "handshake"
		if keys.passed.Load() {
			phase = "log in"
		}
		// A host key that is not accepted, or no common algorithm, stays so. A refused
		// log-in may not: pam_nologin passes.
		var algorithms *ssh.AlgorithmNegotiationError
		refused := keys.refusal != nil || errors.As(err, &algorithms)
		return nil, &targets.LinkError{Phase: phase, Refused: refused,
			Err: fmt.Errorf("%s: %w", h, d.explainHandshake(ctx, limited, l, h, keys, a, err))}
	}
	l.key = keys.shown
	if h.legacy && o.Note != nil {
		if m, ok := c.(ssh.AlgorithmsConnMetadata); ok {
			n := m.Algorithms()
			o.Note(fmt.Sprintf("%s: algorithms = \"legacy\" negotiated key exchange %s, host key %s, cipher %s, MAC %s",
				h, n.KeyExchange, n.HostKey, n.Write.Cipher, orText(n.Write.MAC, "of the cipher")))
		}
	}
	return ssh.NewClient(c, chans, reqs), nil
}

// enter waits for a place among the handshakes under way at addr.
func (d *Dialer) enter(ctx context.Context, addr string) (leave func(), err error) {
	d.mu.Lock()
	gate := d.gates[addr]
	if gate == nil {
		gate = make(chan struct{}, handshakesAtOnce)
		d.gates[addr] = gate
	}
	d.mu.Unlock()
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("stopped while waiting for other log-ins to it: %w", ctx.Err())
	}
}

// connect opens the byte stream to h, which comes up now when booting is set.
func connect(ctx context.Context, w way, h host, booting bool) (net.Conn, error) {
	limit := h.connectTimeout
	if limit == 0 {
		limit = connectTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch {
	case len(w) > 0:
		return w[len(w)-1].client.DialContext(ctx, "tcp", h.addr())
	case h.proxyCommand != "":
		return startProxy(h)
	}
	// Keepalives are ours alone: none may cross the link during a trial.
	dialer := net.Dialer{KeepAlive: -1}
	if booting {
		return knock(ctx, &dialer, h.addr())
	}
	return dialer.DialContext(ctx, "tcp", h.addr())
}

func (h host) addr() string { return net.JoinHostPort(h.hostName, strconv.Itoa(h.port)) }

// String is how messages name a machine: the user's word for it, and its address.
func (h host) String() string {
	s := h.user + "@" + h.addr()
	if h.name != h.hostName {
		s = h.name + " (" + s + ")"
	}
	return s
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
