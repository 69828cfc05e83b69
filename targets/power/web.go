package power

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

const (
	maxAnswer    = 256 << 10 // bytes of an answer that are read
	maxRedirects = 5
)

// web speaks HTTP with one device.
type web struct {
	base   *url.URL
	client *http.Client
	auth   func(*http.Request) error // adds what proves who asks; nil: nothing
}

// baseURL makes the URL of a device of "name", "name:port" or "http://name:port".
func baseURL(address, scheme string) (*url.URL, error) {
	bad := fmt.Errorf("address = %q: want a name or address, or http(s)://name:port, without a path", address)
	if a, err := netip.ParseAddr(address); err == nil && a.Is6() {
		address = "[" + address + "]"
	}
	if !strings.Contains(address, "://") {
		address = scheme + "://" + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || !isHost(u.Hostname()) || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.Port() != "" && !isPort(u.Port()):
		return nil, bad
	case u.User != nil:
		return nil, errors.New("address holds a user; use user and password_env")
	}
	u.Path = ""
	return u, nil
}

// urlStrip is the name of the device behind a URL.
func urlStrip(u *url.URL) string {
	return stripName(u.Hostname(), u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// newWeb makes a client that uses no proxy, keeps no connection, and follows a
// redirect within the device only: another would get the password.
func newWeb(base *url.URL, t *tls.Config) *web {
	return &web{base: base, client: &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: t, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case r.URL.Host != via[0].URL.Host:
				return fmt.Errorf("it redirects to another address, %s: if that is right, write that address in the configuration", r.URL.Host)
			case len(via) > maxRedirects:
				return errors.New("it redirects in a circle")
			}
			return nil
		},
	}}
}

// reply is a device's answer.
type reply struct {
	status int
	text   string // "401 Unauthorized"
	header http.Header
	body   []byte
}

// ok says that the status is one of success.
func (r reply) ok() bool { return r.status >= 200 && r.status <= 299 }

// refused is the answer as an error.
func (r reply) refused() error {
	what := ""
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		what = " (check user and password)"
	}
	return fmt.Errorf("it answered %s%s: %.200q", r.text, what, r.body)
}

// ask sends a request and reads the whole answer. Errors of the way are lost ones.
// No URL stands in an error: it may hold a password.
func (w *web) ask(ctx context.Context, method, ref string, body any) (reply, error) {
	u, err := w.base.Parse(ref)
	if err != nil || u.Host != w.base.Host || u.Scheme != w.base.Scheme {
		return reply{}, fmt.Errorf("it names an address that is not its own: %.100q", ref)
	}
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		send = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), send)
	if err != nil {
		return reply{}, errors.New("no URL can be made of the address")
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if w.auth != nil {
		if err := w.auth(req); err != nil {
			return reply{}, err
		}
	}
	return w.do(req)
}

// do sends one request.
func (w *web) do(req *http.Request) (reply, error) {
	resp, err := w.client.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return reply{}, wayError(err)
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, text: resp.Status, header: resp.Header}
	r.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return r, &lostError{fmt.Errorf("its answer (%s) broke off: %w", resp.Status, err)}
	}
	if len(r.body) > maxAnswer {
		return r, fmt.Errorf("it answered with more than %d KiB: is that the right device?", maxAnswer>>10)
	}
	return r, nil
}

// neverSent says that no connection came about.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// wayError tells what another try can help from what it cannot.
func wayError(err error) error {
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	if errors.As(err, &cert) || errors.As(err, &record) || strings.Contains(err.Error(), "redirects") || strings.Contains(err.Error(), "HTTP response to HTTPS") {
		return err
	}
	switch {
	case strings.Contains(err.Error(), "protocol version"):
		return fmt.Errorf("its TLS is older than 1.2: update its firmware, or use another driver (%w)", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		err = fmt.Errorf("nothing listens there: is the address right, and the device up? (%w)", err)
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("it closed the connection without an answer (%w)", err)
	}
	return &lostError{err}
}

// get asks for a JSON object and decodes it into v.
func (w *web) get(ctx context.Context, ref string, v any) error {
	r, err := w.ask(ctx, http.MethodGet, ref, nil)
	if err != nil {
		return err
	}
	if !r.ok() {
		return r.refused()
	}
	return r.decode(v)
}

// decode reads the body, one JSON value.
func (r reply) decode(v any) error {
	if err := json.Unmarshal(r.body, v); err != nil {
		return fmt.Errorf("it answered no JSON that makes sense (%w): %.200q", err, r.body)
	}
	return nil
}

// basic adds a login by basic authentication (RFC 7617).
func (l Login) basic(req *http.Request) error {
	if l.User == "" {
		return nil
	}
	p, err := l.password()
	if err != nil {
		return err
	}
	req.SetBasicAuth(l.User, p)
	return nil
}
