package power

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// PDUDaemon switches through a pdudaemon of the lab, by its HTTP listener
// (pdudaemon's README). It answers as soon as the request stands in its queue,
// and has no way to tell the state: whether the target fell silent is the proof.
type PDUDaemon struct {
	Address  string        `hcl:"address" doc:"name or address of pdudaemon, with :port where it is not 16421"`
	Strip    string        `hcl:"strip" doc:"the strip as pdudaemon's configuration calls it (its hostname)"`
	Socket   string        `hcl:"outlet" doc:"the outlet as the strip counts"`
	Delay    time.Duration `hcl:"delay,optional" doc:"what the queue and the strip may take once the request was accepted; waited for (default 2s)"`
	Deadline time.Duration `hcl:"deadline,optional" doc:"the request must be accepted within this (default 30s)"`
}

// Check refuses what names no outlet.
func (d *PDUDaemon) Check() error {
	if _, err := d.base(); err != nil {
		return err
	}
	if d.Strip == "" || d.Socket == "" {
		return errors.New("strip and outlet must not be empty")
	}
	return notNegative(d.Deadline)
}

func (d *PDUDaemon) base() (*url.URL, error) {
	u, err := baseURL(d.Address, "http")
	if err == nil && u.Port() == "" {
		u.Host += ":16421"
	}
	return u, err
}

// Outlet names the strip behind pdudaemon, as a driver that reaches the strip
// itself would.
func (d *PDUDaemon) Outlet() (strip, outlet string) {
	if d.Strip == "" {
		return "", ""
	}
	return stripName(d.Strip, "", ""), outletName(d.Socket)
}

// Set asks, and waits for what the queue may take.
func (d *PDUDaemon) Set(ctx context.Context, on bool) error {
	delay := orUsual(d.Delay, 2*time.Second)
	ctx, stop := limit(ctx, orUsual(d.Deadline, defaultDeadline)+delay)
	defer stop()
	err := again(ctx, func(ctx context.Context) error { return d.ask(ctx, on) })
	if err == nil && !pause(ctx, delay) {
		err = ctx.Err()
	}
	return failed(ctx, on, fmt.Sprintf("pdudaemon %s, strip %s, outlet %s", d.Address, d.Strip, d.Socket), err)
}

func (d *PDUDaemon) ask(ctx context.Context, on bool) error {
	base, err := d.base()
	if err != nil {
		return err
	}
	q := url.Values{"hostname": {d.Strip}, "port": {d.Socket}}
	r, err := newWeb(base, nil).ask(ctx, http.MethodGet, "/power/control/"+word(on)+"?"+q.Encode(), nil)
	switch {
	case err != nil:
		return err
	case !r.ok():
		return fmt.Errorf("%w; does its configuration hold that strip?", r.refused())
	case !strings.HasPrefix(string(r.body), "OK"):
		return fmt.Errorf("it answered %.200q and not that it accepted the request: is that a pdudaemon?", r.body)
	}
	return nil
}
