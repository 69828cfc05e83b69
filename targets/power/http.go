package power

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// HTTP switches a plug or a power strip that listens to HTTP. It uses no proxy.
// Nothing is read back: for Tasmota and Shelly there are drivers that do.
type HTTP struct {
	On          string `hcl:"on" doc:"URL that switches the target on"`
	Off         string `hcl:"off" doc:"URL that switches it off"`
	Method      string `hcl:"method,optional" doc:"GET (default), POST or PUT"`
	OnBody      string `hcl:"on_body,optional" doc:"body of the request that switches on"`
	OffBody     string `hcl:"off_body,optional" doc:"body of the request that switches off"`
	ContentType string `hcl:"content_type,optional" doc:"type of the bodies (default application/json)"`
	Login
	Deadline time.Duration `hcl:"deadline,optional" doc:"a status of 200 to 299 must come within this (default 30s)"`
}

// Check refuses what cannot be a request.
func (h *HTTP) Check() error {
	for _, a := range [][2]string{{"on", h.On}, {"off", h.Off}} {
		u, err := url.Parse(a[1])
		switch {
		case err != nil:
			return fmt.Errorf("%s: not a URL", a[0]) // its text may hold a password
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return fmt.Errorf("%s: not an http or https URL, such as http://strip1/outlet?3=ON", a[0])
		case u.User != nil:
			return fmt.Errorf("%s: the URL holds a user; use user and password_env", a[0])
		}
	}
	switch h.method() {
	case http.MethodGet:
		if h.OnBody+h.OffBody != "" {
			return errors.New("a GET has no body: set method")
		}
	case http.MethodPost, http.MethodPut:
	default:
		return fmt.Errorf("method = %q: want GET, POST or PUT", h.Method)
	}
	if err := h.Login.check(); err != nil {
		return err
	}
	return notNegative(h.Deadline)
}

func (h *HTTP) method() string {
	if h.Method == "" {
		return http.MethodGet
	}
	return strings.ToUpper(h.Method)
}

// Outlet names the device and what is asked of it; the requests of Tasmota and
// Shelly are read as their drivers would spell them.
func (h *HTTP) Outlet() (strip, outlet string) {
	u, err := url.Parse(h.On)
	if err != nil || u.Host == "" {
		return "", ""
	}
	known := regexp.MustCompile(`(?i)^(?:cm\?.*\bcmnd=power([1-8]?)(?:%20|\+| ).*|relay/([0-9])\?.*|rpc/switch\.set\?(?:.*&)?id=([0-9])\b.*)$`)
	where := strings.TrimPrefix(u.RequestURI(), "/")
	if m := known.FindStringSubmatch(where); m != nil {
		if n := m[1] + m[2] + m[3]; n != "" {
			return urlStrip(u), n
		}
		return urlStrip(u), "1"
	}
	return urlStrip(u), where + h.OnBody
}

// Set sends one request and wants a status of 200 to 299.
func (h *HTTP) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, h.Deadline)
	defer stop()
	where, body := h.Off, h.OffBody
	if on {
		where, body = h.On, h.OnBody
	}
	u, err := url.Parse(where)
	if err != nil {
		return fmt.Errorf("power %s: not a URL", word(on))
	}
	return failed(ctx, on, u.Host, again(ctx, func(ctx context.Context) error {
		err := h.send(ctx, u, body)
		var lost *lostError
		if errors.As(err, &lost) && !neverSent(err) {
			err = lost.err // whether it may be asked twice is not known here
		}
		return err
	}))
}

func (h *HTTP) send(ctx context.Context, u *url.URL, body string) error {
	req, err := http.NewRequestWithContext(ctx, h.method(), u.String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		if h.ContentType != "" {
			req.Header.Set("Content-Type", h.ContentType)
		}
	}
	if err := h.basic(req); err != nil {
		return err
	}
	r, err := newWeb(u, nil).do(req)
	if err == nil && !r.ok() {
		err = r.refused()
	}
	return err
}
