package tftp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
)

// Limits of one server. What is over them is not answered, so that the client
// asks again a little later.
const (
	mostTransfers = 256
	mostPerClient = 128 // addresses may hide many clients behind them
	mostRecords   = 200 // of one publication

	errorPause = 100 * time.Millisecond // after a read that failed
)

// server serves everybody's files at one address.
type server struct {
	l     *listener
	log   *zap.Logger
	retry time.Duration
	ctx   context.Context // ends with the server
	end   context.CancelCauseFunc
	wg    sync.WaitGroup

	mu        sync.Mutex
	pubs      []*publication
	active    map[netip.AddrPort]*transfer // by client
	perClient map[netip.Addr]int
}

// publication is what one Serve call made readable.
type publication struct {
	files   map[string]string // name -> path
	changed chan struct{}

	mu   sync.Mutex
	sent []*transfer // oldest first
}

func newServer(l *listener, log *zap.Logger, retry time.Duration) *server {
	s := &server{l: l, log: log.With(zap.Stringer("tftp", l.addr)), retry: retry,
		active: map[netip.AddrPort]*transfer{}, perClient: map[netip.Addr]int{}}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	s.wg.Go(s.listen)
	return s
}

// close ends the server and every transfer, and waits for them.
func (s *server) close() {
	s.end(errReleased)
	_ = s.l.conn.Close() // ends listen
	s.wg.Wait()
}

func (s *server) listen() {
	buf := make([]byte, 2048)
	for s.ctx.Err() == nil {
		n, from, to, err := s.l.read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("read", zap.Error(err))
			select { // one that lasts must not cost a processor
			case <-s.ctx.Done():
			case <-time.After(errorPause):
			}
			continue
		}
		s.request(buf[:n], from, to)
	}
}

// request answers one packet. What is no request costs nothing more.
func (s *server) request(b []byte, from netip.AddrPort, to netip.Addr) {
	r, err := parseRequest(b)
	switch {
	case err != nil:
	case r.op == opWrite:
		s.refuse(r, from, to, errAccess, "this server only gives files")
	case r.mode != "octet" && r.mode != "netascii":
		s.refuse(r, from, to, errIllegal, "mode is neither octet nor netascii")
	default:
		s.read(r, from, to)
	}
}

// read starts a transfer.
func (s *server) read(r request, from netip.AddrPort, to netip.Addr) {
	name := key(r.name)
	path, ok := s.path(name)
	if !ok {
		s.refuse(r, from, to, errNotFound, "not served")
		return
	}
	if !s.admit(name, from) {
		return
	}
	src, err := openSource(path, r.mode)
	if err != nil {
		s.leave(from, nil)
		s.log.Warn("file", zap.String("path", path), zap.Error(err))
		s.refuse(r, from, to, errOther, err.Error())
		return
	}
	conn, err := open(to)
	if err != nil {
		s.leave(from, nil)
		_ = src.close() // only read from
		s.log.Warn("socket", zap.Error(err))
		return
	}
	t := &transfer{name: name, client: from, conn: conn, src: src, terms: r.agree(src.size, fits(to)), retry: s.retry,
		from: time.Now(), last: time.Now(), fact: targets.Transfer{Name: name, Client: from, Size: src.size}}
	if t.terms.timeout > 0 {
		t.retry = t.terms.timeout
	}
	var ctx context.Context
	ctx, t.end = context.WithCancelCause(s.ctx)
	s.mu.Lock()
	s.active[from] = t
	pubs := s.record(t)
	s.mu.Unlock()
	s.wg.Go(func() {
		t.run(ctx)
		t.end(nil)
		s.leave(from, t)
		s.log.Debug("transfer", zap.Stringer("result", t.record()))
		for _, p := range pubs {
			p.tell()
		}
	})
}

// path finds a name. It never becomes part of a path.
func (s *server) path(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pubs {
		if path, ok := p.files[name]; ok {
			return path, true
		}
	}
	return "", false
}

// admit says whether a request starts a transfer. One that is sent again because
// the answer was slow does not start a second one; one of a client that began
// anew ends the first.
func (s *server) admit(name string, from netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.active[from]; old != nil {
		if old.name == name && !old.stalled() {
			return false
		}
		old.end(errSuperseded)
		delete(s.active, from)
	}
	if total := s.total(); total >= mostTransfers || s.perClient[from.Addr()] >= mostPerClient {
		s.log.Warn("too many transfers at once: a request is dropped", zap.Stringer("client", from), zap.Int("transfers", total))
		return false
	}
	s.perClient[from.Addr()]++
	return true
}

func (s *server) total() int {
	n := 0
	for _, c := range s.perClient {
		n += c
	}
	return n
}

// leave gives a transfer's place back; nil is one that did not begin.
func (s *server) leave(from netip.AddrPort, t *transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perClient[from.Addr()]--; s.perClient[from.Addr()] == 0 {
		delete(s.perClient, from.Addr())
	}
	if t != nil && s.active[from] == t {
		delete(s.active, from)
	}
}

// record notes a transfer for those whose file it is, or for all when it is
// nobody's; s.mu is held.
func (s *server) record(t *transfer) []*publication {
	var of []*publication
	for _, p := range s.pubs {
		if _, ok := p.files[t.name]; ok || t.fact.Size < 0 {
			p.add(t)
			of = append(of, p)
		}
	}
	return of
}

// refuse answers with an error and notes it.
func (s *server) refuse(r request, from netip.AddrPort, to netip.Addr, code uint16, why string) {
	s.log.Debug("refused", zap.Stringer("client", from), zap.String("name", r.name), zap.String("why", why))
	t := &transfer{name: r.name, from: time.Now(), over: true,
		fact: targets.Transfer{Name: r.name, Client: from, Size: -1, Failed: why}}
	s.mu.Lock()
	s.record(t)
	s.mu.Unlock()
	conn, err := open(to)
	if err != nil {
		return
	}
	_, _ = conn.WriteToUDPAddrPort(errorPacket(code, why), from)
	_ = conn.Close() // nothing is buffered
}

// add notes a transfer; refusals that repeat are noted once.
func (p *publication) add(t *transfer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.fact.Size < 0 && slices.ContainsFunc(p.sent, func(o *transfer) bool {
		return o.fact.Size < 0 && o.name == t.name && o.fact.Client.Addr() == t.fact.Client.Addr()
	}) {
		return
	}
	if len(p.sent) < mostRecords {
		p.sent = append(p.sent, t)
	}
}

func (p *publication) records() []targets.Transfer {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]targets.Transfer, len(p.sent))
	for i, t := range p.sent {
		out[i] = t.record()
	}
	return out
}

func (p *publication) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// publish adds files; a name that means another file already is an error.
func (s *server) publish(files map[string]string) (*publication, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pubs {
		for name, path := range files {
			if other, ok := p.files[name]; ok && other != path {
				return nil, fmt.Errorf("%s is served at %s already, as %s: two files cannot have one name", name, s.l.addr, other)
			}
		}
	}
	p := &publication{files: files, changed: make(chan struct{}, 1)}
	s.pubs = append(s.pubs, p)
	return p, nil
}

// withdraw takes files away, and ends the transfers of those that nobody else
// serves. It says whether others are left.
func (s *server) withdraw(p *publication) (others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pubs = slices.DeleteFunc(s.pubs, func(o *publication) bool { return o == p })
	for _, t := range s.active {
		if !slices.ContainsFunc(s.pubs, func(o *publication) bool { _, ok := o.files[t.name]; return ok }) {
			t.end(errReleased)
		}
	}
	return len(s.pubs) > 0
}
