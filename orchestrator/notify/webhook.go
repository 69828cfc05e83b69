package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	webhookTime = 20 * time.Second
	laterMost   = 10 * time.Minute // of a Retry-After
)

// Webhook posts the event to a web server.
type Webhook struct {
	URL         string            `hcl:"url,optional" doc:"where to POST; one that is a secret, as those of chat services are, belongs into url_env or url_file"`
	URLEnv      string            `hcl:"url_env,optional" doc:"name of the environment variable that holds the URL"`
	URLFile     string            `hcl:"url_file,optional,path" doc:"file whose first line is the URL"`
	Template    string            `hcl:"template,optional" doc:"form of the message: \"json\" (default: the whole event), \"slack\", \"mattermost\", \"rocketchat\", \"googlechat\", \"teams\", \"discord\", \"ntfy\" or \"gotify\""`
	Body        string            `hcl:"body,optional" doc:"own form instead: a Go text/template of the event; {{json .Text}} is a JSON string; .Kind, .Subject, .Text, .Sweep, .Run, .Dir, .Controller, .Target, .Kernel, .Cause, .Outcomes, .LeftOut, .ExitStatus, .Report, .Next, .At, .ID"`
	ContentType string            `hcl:"content_type,optional" doc:"of an own body (default \"application/json\", and then the body must be JSON)"`
	Headers     map[string]string `hcl:"headers,optional" doc:"further headers"`
	HeadersEnv  map[string]string `hcl:"headers_env,optional" doc:"further headers whose values are in the environment: header = variable"`
	BearerEnv   string            `hcl:"bearer_env,optional" doc:"name of the environment variable that holds the token for Authorization: Bearer"`
	BearerFile  string            `hcl:"bearer_file,optional,path" doc:"file whose first line is that token"`
	CAFile      string            `hcl:"ca_file,optional,path" doc:"PEM file of the authorities that may have signed the server's certificate (default: the system's)"`
	Timeout     time.Duration     `hcl:"timeout,optional" doc:"of one try (default 20s)"`
}

// Check looks at the attributes.
func (w *Webhook) Check() error {
	var errs []error
	if w.URL == "" && w.URLEnv == "" && w.URLFile == "" {
		errs = append(errs, errors.New("url, url_env or url_file is missing"))
	}
	errs = append(errs, oneOf("url, url_env and url_file", w.URL, w.URLEnv, w.URLFile), oneOf("bearer_env and bearer_file", w.BearerEnv, w.BearerFile))
	if w.URL != "" {
		u, err := address(w.URL)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("url: %w", err))
		case publicChat(u.Hostname()):
			errs = append(errs, fmt.Errorf("url is a secret at %s, and the configuration is copied into every run: use url_env or url_file", u.Hostname()))
		}
	}
	if w.Template != "" && w.Body != "" {
		errs = append(errs, errors.New("body and template: give one of them"))
	}
	if w.Body == "" && w.ContentType != "" {
		errs = append(errs, errors.New("content_type is for an own body"))
	}
	if w.Timeout < 0 {
		errs = append(errs, errors.New("timeout is negative"))
	}
	for name := range w.HeadersEnv {
		if w.Headers[name] != "" {
			errs = append(errs, fmt.Errorf("headers_env: %s stands in headers too", name))
		}
	}
	for name, v := range w.Headers {
		if strings.ContainsAny(name+v, "\r\n\x00") || strings.ContainsAny(name, " :") || name == "" {
			errs = append(errs, fmt.Errorf("headers: %q is no header", name))
		}
		if strings.EqualFold(name, "Authorization") {
			errs = append(errs, errors.New("headers: Authorization is a secret: use bearer_env or headers_env"))
		}
	}
	if _, err := w.message(sample()); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Warning is for whoever writes a secret address into the file.
func (w *Webhook) Warning() string {
	if w.URL != "" && w.Body == "" && w.Template != "" && w.Template != "json" && w.Template != "ntfy" {
		return "the url of an incoming webhook is a secret, and the configuration is copied into every run: use url_env or url_file"
	}
	return ""
}

// address parses a URL; the error does not hold it.
func address(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("write http://… or https://…")
	}
	return u, nil
}

// publicChat says that whoever knows an address there may write.
func publicChat(host string) bool {
	for _, d := range []string{"slack.com", "discord.com", "discordapp.com", "office.com", "logic.azure.com", "powerplatform.com", "chat.googleapis.com"} {
		if host == d || strings.HasSuffix(host, "."+d) {
			return true
		}
	}
	return false
}

// Ready looks for the address, the secrets and the certificates.
func (w *Webhook) Ready() error {
	_, err := w.request(context.Background(), sample())
	if err == nil {
		_, err = authorities(w.CAFile)
	}
	return err
}

// request is what is sent for an event.
func (w *Webhook) request(ctx context.Context, e Event) (*http.Request, error) {
	where, err := secretFrom("url", w.URLEnv, w.URLFile)
	if err != nil {
		return nil, err
	}
	if where == "" {
		where = w.URL
	}
	u, err := address(where)
	if err != nil {
		return nil, permanent("url: %w", err)
	}
	m, err := w.message(e)
	if err != nil {
		return nil, &PermanentError{Err: err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(m.body))
	if err != nil {
		return nil, permanent("url: not usable")
	}
	for k, v := range m.headers {
		r.Header.Set(k, v)
	}
	r.Header.Set("User-Agent", "kernsweep")
	r.Header.Set("Idempotency-Key", e.ID)
	for k, v := range w.Headers {
		r.Header.Set(k, v)
	}
	for k, name := range w.HeadersEnv {
		v, err := secretFrom("headers", name, "")
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(v, "\r\n\x00") {
			return nil, permanent("headers_env: %s holds a line end", name)
		}
		r.Header.Set(k, v)
	}
	token, err := secretFrom("bearer", w.BearerEnv, w.BearerFile)
	if err != nil {
		return nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r, nil
}

// Send posts the event once.
func (w *Webhook) Send(ctx context.Context, e Event) error {
	limit := orElse(w.Timeout, webhookTime)
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer stop()
	r, err := w.request(ctx, e)
	if err != nil {
		return err
	}
	roots, err := authorities(w.CAFile)
	if err != nil {
		return err
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer t.CloseIdleConnections()
	c := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := c.Do(r)
	if err != nil {
		return unsent(ctx, r.URL, err)
	}
	defer a.Body.Close()
	said, err := io.ReadAll(io.LimitReader(a.Body, 4096))
	if err != nil && a.StatusCode/100 != 2 {
		return unsent(ctx, r.URL, err)
	}
	return answered(a, r.URL, string(said))
}

// unsent is an error of the transport, without the address, which may be secret.
func unsent(ctx context.Context, u *url.URL, err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		err = with.Err
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	if errors.As(err, &unknown) || errors.As(err, &other) {
		return permanent("%s: its certificate is not trusted (see ca_file): %w", u.Host, err)
	}
	return fmt.Errorf("%s: %w", u.Host, err)
}

// answered judges a server's answer.
func answered(a *http.Response, u *url.URL, said string) error {
	switch a.StatusCode / 100 {
	case 2:
		return nil
	case 3:
		to, err := a.Location()
		if err != nil {
			return permanent("%s answers %s", u.Host, a.Status)
		}
		return permanent("%s answers %s and points to %s://%s: write the address it has now", u.Host, a.Status, to.Scheme, to.Host)
	}
	err := fmt.Errorf("%s answers %s", u.Host, a.Status)
	if s := clean(said, saidMost); s != "" {
		err = fmt.Errorf("%w: %s", err, s)
	}
	switch {
	case a.StatusCode == http.StatusTooManyRequests || a.StatusCode == http.StatusServiceUnavailable:
		return &LaterError{Err: err, After: retryAfter(a.Header.Get("Retry-After"), time.Now())}
	case a.StatusCode/100 == 4 && a.StatusCode != http.StatusRequestTimeout && a.StatusCode != http.StatusTooEarly:
		return &PermanentError{Err: err}
	}
	return err
}

// retryAfter is the header of that name: seconds, or a date.
func retryAfter(s string, now time.Time) time.Duration {
	d := time.Duration(0)
	if f, err := strconv.ParseFloat(s, 64); err == nil && f > 0 {
		d = time.Duration(min(f, laterMost.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(s); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), laterMost)
}

// authorities reads a CA file; nil stands for the system's.
func authorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, permanent("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, permanent("ca_file: %s holds no certificate", path)
	}
	return pool, nil
}
