package power

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Tasmota switches an outlet of a device with the Tasmota firmware, by the
// commands of its web server (Tasmota manual, "Commands with web requests"). The
// state is read back.
type Tasmota struct {
	Address string `hcl:"address" doc:"name or address of the plug, with :port where it is not 80"`
	Socket  string `hcl:"outlet,optional" doc:"number of the relay, \"1\" to \"8\" (default \"1\")"`
	Login
	Deadline time.Duration `hcl:"deadline,optional" doc:"the outlet must be switched within this (default 30s)"`
}

// Check refuses what names no outlet.
func (d *Tasmota) Check() error {
	if _, err := baseURL(d.Address, "http"); err != nil {
		return err
	}
	if n := d.number(); len(n) != 1 || n < "1" || n > "8" {
		return fmt.Errorf("outlet = %q: want \"1\" to \"8\"", d.Socket)
	}
	if err := d.login().check(); err != nil {
		return err
	}
	return notNegative(d.Deadline)
}

func (d *Tasmota) number() string {
	if d.Socket == "" {
		return "1"
	}
	return number(d.Socket)
}

// login is admin's unless it says otherwise: the firmware's only user.
func (d *Tasmota) login() Login { return d.Login.named("admin") }

// Outlet names the plug and its relay.
func (d *Tasmota) Outlet() (strip, outlet string) {
	u, err := baseURL(d.Address, "http")
	if err != nil {
		return "", ""
	}
	return urlStrip(u), d.number()
}

// Set switches and reads back. It asks for the state first: a relay that is not
// there must not be switched, because some versions take the first one then.
func (d *Tasmota) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, d.Deadline)
	defer stop()
	where := fmt.Sprintf("Tasmota %s, outlet %s", d.Address, d.number())
	read := func(ctx context.Context) (bool, error) { return d.command(ctx, "Power"+d.number()) }
	err := again(ctx, func(ctx context.Context) error { _, err := read(ctx); return err })
	if err == nil {
		err = again(ctx, func(ctx context.Context) error {
			_, err := d.command(ctx, "Power"+d.number()+" "+word(on))
			return err
		})
	}
	if err == nil {
		err = confirm(ctx, on, read)
	}
	return failed(ctx, on, where, err)
}

// command sends one and returns the state of the outlet that it answers with.
func (d *Tasmota) command(ctx context.Context, cmnd string) (on bool, err error) {
	base, err := baseURL(d.Address, "http")
	if err != nil {
		return false, err
	}
	q := url.Values{"cmnd": {cmnd}}
	if l := d.login(); l.User != "" {
		p, err := l.password()
		if err != nil {
			return false, err
		}
		q.Set("user", l.User)
		q.Set("password", p)
	}
	// The firmware knows no '+' for a space.
	r, err := newWeb(base, nil).ask(ctx, http.MethodGet, "/cm?"+strings.ReplaceAll(q.Encode(), "+", "%20"), nil)
	if err != nil {
		return false, err
	}
	var said map[string]json.RawMessage
	if r.ok() || strings.Contains(string(r.body), `"WARNING"`) {
		if err := r.decode(&said); err != nil {
			return false, err
		}
	}
	if w, ok := said["WARNING"]; ok {
		return false, fmt.Errorf("it wants a password, or another one: set user and password_env; it said %.200s", w)
	}
	if !r.ok() {
		return false, r.refused()
	}
	return d.state(said, r.body)
}

// state finds the outlet's own key: POWER2, or POWER on a device with one relay.
func (d *Tasmota) state(said map[string]json.RawMessage, body []byte) (bool, error) {
	v, ok := said["POWER"+d.number()]
	if !ok && d.number() == "1" {
		v, ok = said["POWER"]
	}
	switch s := strings.Trim(string(v), `"`); {
	case ok && s == "ON":
		return true, nil
	case ok && s == "OFF":
		return false, nil
	}
	return false, fmt.Errorf("it does not speak of outlet %s: %.200q; does the device have that relay?", d.number(), body)
}
