package power

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// HTTP switches a plug or a power strip that listens to HTTP. It uses no proxy.
type HTTP struct {
	On          string        `hcl:"on" doc:"URL that switches the target on"`
	Off         string        `hcl:"off" doc:"URL that switches it off"`
	Method      string        `hcl:"method,optional" doc:"GET (default), POST or PUT"`
	OnBody      string        `hcl:"on_body,optional" doc:"body of the request that switches on"`
	OffBody     string        `hcl:"off_body,optional" doc:"body of the request that switches off"`
	ContentType string        `hcl:"content_type,optional" doc:"type of the bodies (default application/json)"`
	User        string        `hcl:"user,optional" doc:"user name for basic authentication"`
	PasswordEnv string        `hcl:"password_env,optional" doc:"name of the environment variable that holds the password"`
	Deadline    time.Duration `hcl:"deadline,optional" doc:"a status of 200 to 299 must come within this (default 30s)"`
}

// Check refuses what cannot be a request.
func (h *HTTP) Check() error {
	for _, a := range [][2]string{{"on", h.On}, {"off", h.Off}} {
		u, err := url.Parse(a[1])
		switch {
		case err != nil:
			return fmt.Errorf("%s: not a URL", a[0]) // its text may hold a password
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return fmt.Errorf("%s: not an http or https URL", a[0])
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
	if (h.User == "") != (h.PasswordEnv == "") {
		return errors.New("user and password_env belong together")
	}
	return notNegative(h.Deadline)
}

func (h *HTTP) method() string {
	if h.Method == "" {
		return http.MethodGet
	}
	return strings.ToUpper(h.Method)
}

// Set sends one request and wants a status of 200 to 299.
func (h *HTTP) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, h.Deadline)
	defer stop()
	err := h.send(ctx, on)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("power %s: %w", word(on), err)
	}
	return nil
}

func (h *HTTP) send(ctx context.Context, on bool) error {
	where, body := h.Off, h.OffBody
	if on {
		where, body = h.On, h.OnBody
	}
	req, err := http.NewRequestWithContext(ctx, h.method(), where, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		if h.ContentType != "" {
			req.Header.Set("Content-Type", h.ContentType)
		}
	}
	if h.User != "" {
		password, ok := os.LookupEnv(h.PasswordEnv)
		if !ok {
			return fmt.Errorf("the environment variable %s (password_env) is not set", h.PasswordEnv)
		}
		req.SetBasicAuth(h.User, password)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 300))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("%s answered %s: %.200q", req.URL.Host, resp.Status, said)
	}
	return err
}
