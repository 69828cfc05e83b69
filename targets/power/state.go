package power

import (
	"context"
	"fmt"
	"time"

	"github.com/bougou/go-ipmi/pkg/client"

	"kernsweep/targets"
)

// stateTime bounds the question of a driver that has no deadline of its own.
const stateTime = 15 * time.Second

// State asks whether the outlet is on, and switches nothing.
func (d *Tasmota) State(ctx context.Context) (on bool, err error) {
	ctx, stop := limit(ctx, orUsual(d.Deadline, stateTime))
	defer stop()
	err = again(ctx, func(ctx context.Context) (err error) { on, err = d.command(ctx, "Power"+d.number()); return err })
	return on, stateError(fmt.Sprintf("Tasmota %s, outlet %s", d.Address, d.number()), err)
}

// State asks whether the relay is on, and switches nothing.
func (d *Shelly) State(ctx context.Context) (on bool, err error) {
	ctx, stop := limit(ctx, orUsual(d.Deadline, stateTime))
	defer stop()
	base, err := baseURL(d.Address, "http")
	if err == nil {
		err = again(ctx, func(ctx context.Context) (err error) { on, err = d.state(ctx, newWeb(base, nil)); return err })
	}
	return on, stateError(fmt.Sprintf("Shelly %s, outlet %s", d.Address, d.number()), err)
}

func (d *Shelly) state(ctx context.Context, w *web) (bool, error) {
	var about struct {
		Gen int `json:"gen"`
	}
	if err := w.get(ctx, "/shelly", &about); err != nil {
		return false, err
	}
	var now struct {
		Output *bool `json:"output"`
		IsOn   *bool `json:"ison"` // of the first generation
	}
	var err error
	if about.Gen >= 2 {
		err = d.rpc(ctx, w, "/rpc/Switch.GetStatus?id="+d.number(), &now)
	} else {
		w.auth = d.login().basic
		err = w.get(ctx, "/relay/"+d.number(), &now)
	}
	switch {
	case err != nil:
		return false, err
	case now.Output != nil:
		return *now.Output, nil
	case now.IsOn != nil:
		return *now.IsOn, nil
	}
	return false, fmt.Errorf("its answer tells no state: does the device have outlet %s?", d.number())
}

// State asks whether the relay, or the file of a line, is on. A line of gpioset
// cannot be asked: that would make it an input.
func (d *Relay) State(ctx context.Context) (bool, error) {
	ctx, stop := limit(ctx, orUsual(d.Deadline, stateTime))
	defer stop()
	read, ok := map[string]func(context.Context) (bool, error){"usbrelay": d.readUSBRelay, "hidusb-relay-cmd": d.readHID, "sysfs": d.readFile}[d.Tool]
	if !ok {
		return false, targets.ErrNoState
	}
	is, err := read(ctx)
	return is != d.Inverted, stateError(d.Tool+" "+d.Device, err)
}

// State asks the BMC for the power of its system, and switches nothing.
func (d *IPMI) State(ctx context.Context) (on bool, err error) {
	ctx, stop := limit(ctx, orUsual(d.Deadline, ipmiDeadline))
	defer stop()
	password, err := d.password()
	if err == nil {
		err = again(ctx, func(ctx context.Context) error {
			return d.session(ctx, password, func(c *client.Client) (err error) { on, err = status(ctx, c); return err })
		})
	}
	return on, stateError("IPMI "+d.Address, err)
}

// State asks the strip for its outlet, and switches nothing.
func (d *SNMP) State(ctx context.Context) (bool, error) {
	ctx, stop := limit(ctx, orUsual(d.Deadline, stateTime))
	defer stop()
	where := fmt.Sprintf("SNMP %s, outlet %s", d.Address, d.Socket)
	plan, err := d.plan()
	if err != nil {
		return false, stateError(where, err)
	}
	s, err := d.open(ctx)
	if err != nil {
		return false, stateError(where, err)
	}
	defer context.AfterFunc(ctx, func() { _ = s.Conn.Close() })() // ends a read that waits
	defer s.Close()
	on, err := plan.read(s)
	return on, stateError(where, err)
}

// State asks the BMC for the power of its system, and switches nothing.
func (d *Redfish) State(ctx context.Context) (on bool, err error) {
	ctx, stop := limit(ctx, orUsual(d.Deadline, redfishDeadline))
	defer stop()
	on, err = d.state(ctx)
	return on, stateError("Redfish "+d.Address, err)
}

func (d *Redfish) state(ctx context.Context) (bool, error) {
	base, err := baseURL(d.Address, "https")
	if err != nil {
		return false, err
	}
	t, err := d.trust().config()
	if err != nil {
		return false, err
	}
	w := newWeb(base, t)
	w.auth = d.basic
	if d.Session {
		end, err := d.open(ctx, w)
		if err != nil {
			return false, err
		}
		defer end()
	}
	ref, err := d.find(ctx, w)
	if err != nil {
		return false, err
	}
	s, err := readSystem(ctx, w, ref)
	return s.PowerState == "On" || s.PowerState == "PoweringOff", err
}

func stateError(where string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("asking %s for its state: %w", where, err)
}
