package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/live/web"
)

const serveAddress = "127.0.0.1:8420"

// serveFlags of one call.
type serveFlags struct {
	listen              string
	tokenFile           string
	cert, key, clientCA string
	hosts               []string
	plainHTTP           bool
	control             bool
}

func (a *app) serveCmd() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Show live and past runs, targets and consoles as a web page, with metrics and a JSON interface",
		Long: `Show live and past runs, their reports, target states, leases and consoles as a web page; metrics for Prometheus on
/metrics; JSON under /api, described by /api/openapi.json. It reads files on this machine and never speaks to a target.

By default only this machine can reach it. Any other --listen address demands a token, or TLS with client
certificates; both, where both are given. The token is in the file of --token-file, which is made when it does not
exist, or in KERNSWEEP_TOKEN; a browser is asked for it, a program sends "Authorization: Bearer TOKEN". Without TLS a
token can be read on the way: that is refused beyond this machine, unless --plain-http says that the way is trusted.

The page is read-only. With --allow-control whoever may see it may also pause lanes, skip, quarantine and stop.

--listen unix:PATH makes a Unix socket that only this user may use. Behind a proxy, --host says by what name it is
reached; the proxy then decides who may. Ctrl-C ends it.

Exit status: 0 it was ended, 2 usage, 3 the address cannot be used.`,
		Example: `  kernsweep serve
  kernsweep serve --listen :8420 --token-file ~/.config/kernsweep/token --cert lab.pem --key lab.key`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), f) },
	}
	c.Flags().StringVar(&f.listen, "listen", serveAddress, "address and port, or unix:PATH")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the token; it is made when it does not exist")
	c.Flags().StringVar(&f.cert, "cert", "", "certificate of this page (PEM, with its chain): HTTPS")
	c.Flags().StringVar(&f.key, "key", "", "private key of --cert (PEM)")
	c.Flags().StringVar(&f.clientCA, "client-ca", "", "certificates (PEM) that sign those of clients: nobody else gets in")
	c.Flags().StringArrayVar(&f.hosts, "host", nil, "a further name by which the page is reached")
	c.Flags().BoolVar(&f.plainHTTP, "plain-http", false, "a token may go over the network without TLS")
	c.Flags().BoolVar(&f.control, "allow-control", false, "whoever may see the page may also steer runs")
	return c
}

// serve shows the page until ctx ends.
func (a *app) serve(ctx context.Context, f serveFlags) error {
	where, err := parseListen(f.listen)
	if err != nil {
		return usage(err)
	}
	secure, err := f.tls()
	if err != nil {
		return usage(err)
	}
	_, named := a.env(tokenVariable)
	if err := f.permits(where, named || f.tokenFile != ""); err != nil {
		return usage(err)
	}
	token, err := a.serveToken(f.tokenFile)
	if err != nil {
		return usage(err)
	}
	var say sync.Mutex
	opt := web.Options{Token: token, Hosts: where.names(f.hosts), Version: version(), Command: a.kernsweep(), Log: func(line string) {
		say.Lock()
		defer say.Unlock()
		fmt.Fprintln(a.err, "kernsweep: "+live.Safe(strings.TrimRight(line, "\n")))
	}}
	page, err := web.New(a.sources(f.control), opt)
	if err != nil {
		return &statusError{exitInfra, err}
	}
	l, err := where.open(ctx)
	if err != nil {
		return &statusError{exitInfra, cannotListen(where, err)}
	}
	fmt.Fprintln(a.out, where.url(l, secure != nil))
	opt.Log(f.terms(where, token))
	if err := page.Serve(ctx, l, secure); err != nil {
		return &statusError{exitInfra, err}
	}
	return nil
}

// permits refuses what would let anybody in.
func (f serveFlags) permits(where listenAddress, token bool) error {
	if where.local() {
		return nil
	}
	switch {
	case !token && f.clientCA == "":
		return fmt.Errorf("others can reach --listen %s: demand a token (--token-file FILE, which is made when it does not exist, or %s) or TLS client certificates (--cert, --key, --client-ca); without --listen only this machine can reach the page",
			f.listen, tokenVariable)
	case f.cert == "" && !f.plainHTTP:
		return fmt.Errorf("a token on --listen %s could be read on the way: give --cert and --key, or leave out --listen and put a proxy with TLS before it, or accept it with --plain-http",
			f.listen)
	}
	return nil
}

// terms says who gets in, and what they may do.
func (f serveFlags) terms(where listenAddress, token string) string {
	who := "anybody on this machine may look"
	switch {
	case where.unix != "":
		who = "only this user may look"
	case token != "" && f.clientCA != "":
		who = "a client certificate and the token are demanded"
	case token != "":
		who = "the token is demanded"
	case f.clientCA != "":
		who = "a client certificate is demanded"
	}
	if f.control {
		who += "; whoever may look may steer runs"
	} else {
		who += "; read-only"
	}
	return "serving the page: " + who + "; Ctrl-C ends it"
}

func cannotListen(where listenAddress, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use: is a kernsweep serve running already? Choose another with --listen 127.0.0.1:PORT (0: any free one)", where)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s may not be used by this user: choose a port above 1023 with --listen: %w", where, err)
	}
	return fmt.Errorf("%s cannot be listened on: %w", where, err)
}

// listenAddress is where the page is.
type listenAddress struct{ host, port, unix string }

func parseListen(s string) (listenAddress, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return listenAddress{}, errors.New("--listen unix: names no path")
		}
		return listenAddress{unix: path}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return listenAddress{}, fmt.Errorf("--listen %s: write ADDRESS:PORT, as %s, or unix:PATH", s, serveAddress)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return listenAddress{}, fmt.Errorf("--listen %s: %q is no port", s, port)
	}
	return listenAddress{host: host, port: port}, nil
}

// local says that only this machine can reach it.
func (w listenAddress) local() bool {
	ip := net.ParseIP(w.host)
	return w.unix != "" || w.host == "localhost" || ip != nil && ip.IsLoopback()
}

// names are those that requests may be for: on this machine a foreign page could
// make its own name lead here. nil: any.
func (w listenAddress) names(further []string) []string {
	if w.unix != "" || !w.local() {
		return nil
	}
	return append([]string{"localhost", "127.0.0.1", "::1", w.host}, further...)
}

func (w listenAddress) open(ctx context.Context) (net.Listener, error) {
	var c net.ListenConfig
	if w.unix == "" {
		return c.Listen(ctx, "tcp", net.JoinHostPort(w.host, w.port))
	}
	if old, err := (&net.Dialer{}).DialContext(ctx, "unix", w.unix); err == nil {
		_ = old.Close() // nothing was sent
		return nil, syscall.EADDRINUSE
	}
	if info, err := os.Lstat(w.unix); err == nil && info.Mode()&os.ModeSocket != 0 {
		_ = os.Remove(w.unix) // a dead process left it
	}
	mask := syscall.Umask(0o177) // the socket is ours alone from its first moment
	defer syscall.Umask(mask)
	return c.Listen(ctx, "unix", w.unix)
}

func (w listenAddress) String() string {
	if w.unix != "" {
		return w.unix
	}
	return net.JoinHostPort(w.host, w.port)
}

// url is what a person opens.
func (w listenAddress) url(l net.Listener, secure bool) string {
	if w.unix != "" {
		return "unix:" + w.unix
	}
	scheme, host := "http", w.host
	if secure {
		scheme = "https"
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		port = w.port
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}

// tls is nil for plain HTTP.
func (f serveFlags) tls() (*tls.Config, error) {
	switch {
	case f.cert == "" && f.key == "" && f.clientCA == "":
		return nil, nil
	case f.cert == "" || f.key == "":
		return nil, errors.New("TLS takes --cert and --key together; --client-ca takes both")
	}
	return web.TLS(f.cert, f.key, f.clientCA)
}
