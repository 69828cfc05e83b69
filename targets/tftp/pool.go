package tftp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"go.uber.org/zap"

	"kernsweep/targets"
)

// Pool shares TFTP servers between lanes: one for each address, from the first
// file that is served there to the last.
type Pool struct {
	log *zap.Logger

	mu      sync.Mutex
	servers []*server
	closed  bool
}

// New makes a pool that listens nowhere yet.
func New(log *zap.Logger) *Pool { return &Pool{log: log} }

// Serve is a targets.ServeFunc. The files are opened when they are asked for;
// that they can be read is checked at once. The same name may be served more than
// once, as long as it is the same path. With port 0 the system chooses the port.
func (p *Pool) Serve(ctx context.Context, listen string, files map[string]string) (*targets.Serving, error) {
	addr, err := resolve(ctx, listen)
	if err != nil {
		return nil, fmt.Errorf("TFTP server: tftp_listen: %w", err)
	}
	named := map[string]string{}
	for name, path := range files {
		src, err := openSource(path, "octet")
		if err != nil {
			return nil, fmt.Errorf("TFTP server: %s: %w", path, err)
		}
		_ = src.close() // only read from
		if k := key(name); k == "" || len(k) > mostName {
			return nil, fmt.Errorf("TFTP server: %q is no name of a file", name)
		} else if other, ok := named[k]; ok && other != path {
			return nil, fmt.Errorf("TFTP server: %s means both %s and %s", k, other, path)
		} else {
			named[k] = path
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("TFTP server: it has ended")
	}
	s := p.find(addr)
	if s == nil {
		l, err := newListener(addr)
		if err != nil {
			return nil, fmt.Errorf("TFTP server: %w", err)
		}
		s = newServer(l, p.log, firstRetry)
		p.servers = append(p.servers, s)
	}
	pub, err := s.publish(named)
	if err != nil {
		return nil, fmt.Errorf("TFTP server: %w", err)
	}
	return &targets.Serving{Addr: s.l.addr, Transfers: pub.records, Changed: pub.changed,
		Release: sync.OnceFunc(func() { p.release(s, pub) })}, nil
}

// find looks for a server that requests to addr reach.
func (p *Pool) find(addr netip.AddrPort) *server {
	for _, s := range p.servers {
		if s.l.addr == addr || s.l.every && s.l.addr.Port() == addr.Port() && s.l.addr.Addr().Is4() == addr.Addr().Is4() {
			return s
		}
	}
	return nil
}

// release withdraws files; the last ones end their server.
func (p *Pool) release(s *server, pub *publication) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.withdraw(pub) && slices.Contains(p.servers, s) {
		p.servers = slices.DeleteFunc(p.servers, func(o *server) bool { return o == s })
		s.close()
	}
}

// Close ends every server and transfer, and waits for them. Nothing is served
// afterwards.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.servers {
		s.close()
	}
	p.servers = nil
	return nil
}
