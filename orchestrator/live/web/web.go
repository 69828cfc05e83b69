// Package web is the page of kernsweep serve: live and past runs, the report,
// targets and leases, consoles, metrics and a JSON interface. It reads files of
// the runs' folder and asks the functions of Sources for the rest; it never
// speaks to a target. Whoever asks is checked in guard.go, before anything else;
// routes.go is the one table of what there is.
package web

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

// Sources are where the page gets what is not in the folder of the runs.
type Sources struct {
	Runs    string                                                       // folder of the run directories
	Status  func(run *results.Run) (Status, error)                       // as `kernsweep status` tells it
	Targets func() ([]Target, error)                                     // of the configuration, in its order
	Leases  func() ([]Lease, error)                                      // of this machine
	Console func(target string) (who string, c io.ReadCloser, err error) // what a run records; an error: nobody does now
	// Ask steers a run. nil: the page is read-only.
	Ask func(ctx context.Context, run *results.Run, r control.Request) (said string, err error)
}

// Options of a Server.
type Options struct {
	Token   string       // whoever asks must know it; "": nobody is asked
	Hosts   []string     // names that requests may be for; nil: any
	Version string       // of kernsweep
	Command string       // begins the commands that the report proposes
	Log     func(string) // one line for whoever runs the server
}

// limits bound what one client, and all of them, can take.
type limits struct {
	header, read, idle time.Duration // of a request; between requests
	write              time.Duration // for one answer, or one piece of a stream
	beat               time.Duration // between signs of life of a stream
	tick               time.Duration // between looks at a journal that somebody watches
	retry              time.Duration // between looks for a console that nobody records
	shutdown           time.Duration // for answers that are being written at the end
	connections        int
	streams            int32
}

func usualLimits() limits {
	return limits{header: 5 * time.Second, read: 20 * time.Second, idle: time.Minute, write: 30 * time.Second, beat: 15 * time.Second,
		tick: 500 * time.Millisecond, retry: 2 * time.Second, shutdown: 1500 * time.Millisecond, connections: 256, streams: 64}
}

const (
	maxHeader = 16 << 10 // bytes of a request's head
	maxBody   = 64 << 10 // bytes of its body
)

// Server is the page.
type Server struct {
	src     Sources
	opt     Options
	limits  limits
	key     []byte // signs sessions and forms; another one in every process
	static  map[string]asset
	pages   *template.Template
	mux     *http.ServeMux
	cross   *http.CrossOriginProtection
	tries   *tries
	hub     *hub
	book    *book
	reports *reports
	metrics *metrics
	now     func() time.Time
	streams atomic.Int32

	opened, streaming map[string]bool // patterns that everybody may ask for; that are streams
}

// New makes the page; nothing is read before somebody asks.
func New(src Sources, opt Options) (*Server, error) {
	s := &Server{src: src, opt: opt, limits: usualLimits(), key: make([]byte, 32), cross: http.NewCrossOriginProtection(),
		tries: newTries(), reports: &reports{command: opt.Command}, now: time.Now}
	rand.Read(s.key) // never fails (Go 1.24 and later)
	if s.opt.Log == nil {
		s.opt.Log = func(string) {}
	}
	var err error
	if s.static, err = assets(); err != nil {
		return nil, err
	}
	if s.pages, err = s.templates(); err != nil {
		return nil, err
	}
	s.hub = newHub(s.limits.tick, s.time)
	s.book = &book{status: src.Status, pages: map[string]bookmark{}}
	s.metrics = newMetrics(s)
	s.mux = s.routing()
	return s, nil
}

// time is now, for tests.
func (s *Server) time() time.Time { return s.now() }

// Serve answers on l until ctx ends, and ends streams and connections then. t is
// nil for plain HTTP. The error is the listener's.
func (s *Server) Serve(ctx context.Context, l net.Listener, t *tls.Config) error {
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	srv := &http.Server{Handler: s, TLSConfig: t, ReadHeaderTimeout: s.limits.header, ReadTimeout: s.limits.read, IdleTimeout: s.limits.idle,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: log.New(lineWriter{s.opt.Log}, "", 0)}
	done := make(chan error, 1)
	go func() {
		bounded := netutil.LimitListener(l, s.limits.connections)
		if t != nil {
			done <- srv.ServeTLS(bounded, "", "")
		} else {
			done <- srv.Serve(bounded)
		}
	}()
	select {
	case err := <-done:
		return fmt.Errorf("the page cannot be served any more: %w", err)
	case <-ctx.Done():
	}
	stop() // ends the streams
	last, cancel := context.WithTimeout(context.Background(), s.limits.shutdown)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		_ = srv.Close() // who is still reading has had the time
	}
	s.hub.close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// lineWriter gives the lines of net/http to whoever runs the server.
type lineWriter struct{ log func(string) }

func (w lineWriter) Write(b []byte) (int, error) {
	w.log(live.SafeText(string(b)))
	return len(b), nil
}
