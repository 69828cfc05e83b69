package power

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Shelly switches a relay of a Shelly device by its local HTTP interface: the
// first generation's /relay/N, or the later ones' RPC (Shelly's API pages,
// "Switch.Set" and "Authentication"). The device says itself which it is, and
// its state is read back.
type Shelly struct {
	Address string `hcl:"address" doc:"name or address of the plug, with :port where it is not 80"`
	Socket  string `hcl:"outlet,optional" doc:"number of the relay as the device counts, from \"0\" (default \"0\")"`
	Login
	Deadline time.Duration `hcl:"deadline,optional" doc:"the outlet must be switched within this (default 30s)"`
}

// Check refuses what names no outlet.
func (d *Shelly) Check() error {
	if _, err := baseURL(d.Address, "http"); err != nil {
		return err
	}
	if n := d.number(); len(n) != 1 {
		return fmt.Errorf("outlet = %q: want \"0\" to \"9\"", d.Socket)
	}
	if err := d.login().check(); err != nil {
		return err
	}
	return notNegative(d.Deadline)
}

func (d *Shelly) number() string {
	if d.Socket == "" {
		return "0"
	}
	return number(d.Socket)
}

// login is admin's unless it says otherwise; later generations know no other user.
func (d *Shelly) login() Login { return d.Login.named("admin") }

// Outlet names the device and its relay.
func (d *Shelly) Outlet() (strip, outlet string) {
	u, err := baseURL(d.Address, "http")
	if err != nil {
		return "", ""
	}
	return urlStrip(u), d.number()
}

// Set switches and reads back.
func (d *Shelly) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, d.Deadline)
	defer stop()
	base, err := baseURL(d.Address, "http")
	if err == nil {
		err = d.set(ctx, newWeb(base, nil), on)
	}
	return failed(ctx, on, fmt.Sprintf("Shelly %s, outlet %s", d.Address, d.number()), err)
}

func (d *Shelly) set(ctx context.Context, w *web, on bool) error {
	var about struct {
		Gen  int    `json:"gen"`
		Type string `json:"type"` // first generation only
		MAC  string `json:"mac"`
	}
	if err := again(ctx, func(ctx context.Context) error { return w.get(ctx, "/shelly", &about) }); err != nil {
		return err
	}
	switch {
	case about.Gen >= 2:
		return d.setRPC(ctx, w, on)
	case about.Type != "":
		w.auth = d.login().basic
		return d.setRelay(ctx, w, on)
	}
	return fmt.Errorf("its page /shelly names neither type nor generation: is it a Shelly?")
}

// setRelay drives the first generation.
func (d *Shelly) setRelay(ctx context.Context, w *web, on bool) error {
	read := func(ref string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			var relay struct {
				On *bool `json:"ison"`
			}
			if err := w.get(ctx, ref, &relay); err != nil {
				return false, err
			}
			if relay.On == nil {
				return false, fmt.Errorf("its answer does not tell the state (ison) of outlet %s", d.number())
			}
			return *relay.On, nil
		}
	}
	ref := "/relay/" + d.number()
	if err := again(ctx, func(ctx context.Context) error { _, err := read(ref + "?turn=" + word(on))(ctx); return err }); err != nil {
		return err
	}
	return confirm(ctx, on, read(ref))
}

// setRPC drives the later generations.
func (d *Shelly) setRPC(ctx context.Context, w *web, on bool) error {
	set := fmt.Sprintf("/rpc/Switch.Set?id=%s&on=%t", d.number(), on)
	var was struct {
		On *bool `json:"was_on"`
	}
	if err := again(ctx, func(ctx context.Context) error { return d.rpc(ctx, w, set, &was) }); err != nil {
		return err
	}
	if was.On == nil {
		return fmt.Errorf("its answer to Switch.Set tells no state (was_on): does the device have outlet %s?", d.number())
	}
	return confirm(ctx, on, func(ctx context.Context) (bool, error) {
		var now struct {
			Output *bool `json:"output"`
		}
		if err := d.rpc(ctx, w, "/rpc/Switch.GetStatus?id="+d.number(), &now); err != nil {
			return false, err
		}
		if now.Output == nil {
			return false, fmt.Errorf("its answer to Switch.GetStatus tells no state (output)")
		}
		return *now.Output, nil
	})
}

// rpc asks, and once more with a login where the device wants one.
func (d *Shelly) rpc(ctx context.Context, w *web, ref string, v any) error {
	open := &web{base: w.base, client: w.client}
	r, err := open.ask(ctx, http.MethodGet, ref, nil)
	if err == nil && r.status == http.StatusUnauthorized {
		if open.auth, err = d.login().answer(r, http.MethodGet, ref); err == nil {
			r, err = open.ask(ctx, http.MethodGet, ref, nil)
		}
	}
	switch {
	case err != nil:
		return err
	case !r.ok():
		return r.refused()
	}
	return r.decode(v)
}
