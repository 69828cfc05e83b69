package power

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Redfish switches a server through its BMC by Redfish (DMTF DSP0266, the
// ComputerSystem schema). PowerState is read back until it says so.
type Redfish struct {
	Address string `hcl:"address" doc:"name or address of the BMC, with :port where it is not 443"`
	System  string `hcl:"system,optional" doc:"Id, name or last part of the path of the system, where the BMC has several"`
	Login
	Session     bool          `hcl:"session,optional" doc:"true: log in by a session, for a BMC that takes no basic authentication"`
	Fingerprint string        `hcl:"fingerprint,optional" doc:"SHA-256 of the BMC's certificate in hexadecimal; the error without it names it"`
	CA          string        `hcl:"ca,optional,path" doc:"file of the certificates (PEM) that may have signed the BMC's"`
	Insecure    bool          `hcl:"insecure,optional" doc:"true: take any certificate; whoever is in between learns the password"`
	Deadline    time.Duration `hcl:"deadline,optional" doc:"PowerState must say so within this (default 50s)"`
}

const redfishDeadline = 50 * time.Second

// Check refuses what names no BMC or trusts in two ways.
func (d *Redfish) Check() error {
	if _, err := baseURL(d.Address, "https"); err != nil {
		return err
	}
	if err := d.trust().check(); err != nil {
		return err
	}
	if d.User == "" {
		return errors.New("user and password_env are missing: a BMC switches for nobody else")
	}
	if err := d.Login.check(); err != nil {
		return err
	}
	return notNegative(d.Deadline)
}

// Warning tells what insecure means.
func (d *Redfish) Warning() string {
	if !d.Insecure {
		return ""
	}
	return "insecure = true: whoever is between here and the BMC learns its password; fingerprint is as easy (the error without it names what to write)"
}

func (d *Redfish) trust() trust { return trust{d.Fingerprint, d.CA, d.Insecure} }

// Outlet names the BMC and its system.
func (d *Redfish) Outlet() (strip, outlet string) {
	u, err := baseURL(d.Address, "https")
	if err != nil {
		return "", ""
	}
	if d.System == "" {
		return urlStrip(u), onlySystem
	}
	return urlStrip(u), outletName(path.Base(d.System))
}

// onlySystem is the outlet of a BMC with one system, for IPMI and Redfish alike.
const onlySystem = "system"

// Set switches unless the state is right already, and reads it back.
func (d *Redfish) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, orUsual(d.Deadline, redfishDeadline))
	defer stop()
	return failed(ctx, on, "Redfish "+d.Address, d.set(ctx, on))
}

func (d *Redfish) set(ctx context.Context, on bool) error {
	base, err := baseURL(d.Address, "https")
	if err != nil {
		return err
	}
	t, err := d.trust().config()
	if err != nil {
		return err
	}
	w := newWeb(base, t)
	w.auth = d.basic
	if d.Session {
		end, err := d.open(ctx, w)
		if err != nil {
			return err
		}
		defer end()
	}
	var ref string
	if err := again(ctx, func(ctx context.Context) (err error) { ref, err = d.find(ctx, w); return err }); err != nil {
		return err
	}
	read := func(ctx context.Context) (bool, error) {
		s, err := readSystem(ctx, w, ref)
		return s.PowerState == "On" || s.PowerState == "PoweringOff", err
	}
	var s system
	if err := again(ctx, func(ctx context.Context) (err error) { s, err = readSystem(ctx, w, ref); return err }); err != nil {
		return err
	}
	if s.PowerState != map[bool]string{true: "On", false: "Off"}[on] {
		if err := s.reset(ctx, w, on); err != nil {
			return err
		}
	}
	return confirm(ctx, on, read)
}

// link is a reference to another resource.
type link struct {
	ID string `json:"@odata.id"`
}

// find is the path of the system: the only one, or the one that System names.
func (d *Redfish) find(ctx context.Context, w *web) (string, error) {
	var all struct {
		Members []link `json:"Members"`
	}
	if err := w.get(ctx, "/redfish/v1/Systems", &all); err != nil {
		return "", err
	}
	var names []string
	for _, m := range all.Members {
		name := path.Base(m.ID)
		if d.System != "" && strings.EqualFold(name, path.Base(d.System)) || d.System == "" && len(all.Members) == 1 {
			return m.ID, nil
		}
		names = append(names, name)
	}
	for _, m := range all.Members {
		if d.System == "" {
			break
		}
		s, err := readSystem(ctx, w, m.ID)
		if err != nil {
			return "", err
		}
		if s.ID == d.System || s.Name == d.System {
			return m.ID, nil
		}
	}
	if len(names) == 0 {
		return "", errors.New("it lists no system under /redfish/v1/Systems")
	}
	if d.System == "" {
		return "", fmt.Errorf("it has several systems: set system to one of %s", strings.Join(names, ", "))
	}
	return "", fmt.Errorf("it has no system %q; there are %s", d.System, strings.Join(names, ", "))
}

// system is what we read of a ComputerSystem.
type system struct {
	ID         string `json:"Id"`
	Name       string `json:"Name"`
	PowerState string `json:"PowerState"`
	Actions    struct {
		Reset struct {
			Target string   `json:"target"`
			Types  []string `json:"ResetType@Redfish.AllowableValues"`
			Info   string   `json:"@Redfish.ActionInfo"`
		} `json:"#ComputerSystem.Reset"`
	} `json:"Actions"`
}

func readSystem(ctx context.Context, w *web, ref string) (s system, err error) {
	if err := w.get(ctx, ref, &s); err != nil {
		return s, err
	}
	switch s.PowerState {
	case "On", "Off", "PoweringOn", "PoweringOff", "Paused":
		return s, nil
	case "":
		return s, fmt.Errorf("%s tells no PowerState", ref)
	}
	return s, fmt.Errorf("%s tells the PowerState %.40q, which is not known here", ref, s.PowerState)
}

// reset asks for the first way that the system allows. A graceful shutdown is no
// way: whoever switches off has a kernel that may hang.
func (s system) reset(ctx context.Context, w *web, on bool) error {
	ways := []string{"ForceOff", "PushPowerButton"}
	if on {
		ways = []string{"On", "ForceOn", "PushPowerButton"}
	}
	types, err := s.types(ctx, w)
	if err != nil {
		return err
	}
	way := ways[0]
	if len(types) > 0 {
		i := slices.IndexFunc(ways, func(t string) bool { return slices.Contains(types, t) })
		if i < 0 {
			return fmt.Errorf("it cannot switch %s: it allows %s", word(on), strings.Join(types, ", "))
		}
		way = ways[i]
	}
	if s.Actions.Reset.Target == "" {
		return errors.New("its system has no action ComputerSystem.Reset: does the user have the right to it?")
	}
	ask := func(ctx context.Context) error {
		r, err := w.ask(ctx, http.MethodPost, s.Actions.Reset.Target, map[string]string{"ResetType": way})
		// A conflict says that the state is, or is about to be, the wanted one.
		if err == nil && !r.ok() && r.status != http.StatusConflict {
			err = r.redfishError()
		}
		return err
	}
	if way == "PushPowerButton" {
		return ask(ctx) // a second push would undo the first
	}
	return again(ctx, ask)
}

// types are the reset types that are allowed, nil where the BMC does not tell.
func (s system) types(ctx context.Context, w *web) ([]string, error) {
	if s.Actions.Reset.Info == "" || len(s.Actions.Reset.Types) > 0 {
		return s.Actions.Reset.Types, nil
	}
	var info struct {
		Parameters []struct {
			Name   string
			Values []string `json:"AllowableValues"`
		}
	}
	if err := w.get(ctx, s.Actions.Reset.Info, &info); err != nil {
		return nil, err
	}
	for _, p := range info.Parameters {
		if p.Name == "ResetType" {
			return p.Values, nil
		}
	}
	return nil, nil
}

// redfishError takes the sentence out of an error body (DSP0266, "Error responses").
func (r reply) redfishError() error {
	var body struct {
		Error struct {
			Message string
			Info    []struct{ Message string } `json:"@Message.ExtendedInfo"`
		}
	}
	if json.Unmarshal(r.body, &body) != nil || body.Error.Message == "" {
		return r.refused()
	}
	said := body.Error.Message
	for _, i := range body.Error.Info {
		said += " " + i.Message
	}
	return fmt.Errorf("it answered %s: %.300q", r.text, said)
}

// open logs in by a session and returns what ends it.
func (d *Redfish) open(ctx context.Context, w *web) (func(), error) {
	p, err := d.password()
	if err != nil {
		return nil, err
	}
	w.auth = nil
	var r reply
	err = again(ctx, func(ctx context.Context) (err error) {
		r, err = w.ask(ctx, http.MethodPost, "/redfish/v1/SessionService/Sessions", map[string]string{"UserName": d.User, "Password": p})
		return err
	})
	token := r.header.Get("X-Auth-Token")
	switch {
	case err != nil:
		return nil, err
	case !r.ok():
		return nil, r.refused()
	case token == "":
		return nil, errors.New("it opened a session and gave no X-Auth-Token")
	}
	w.auth = func(req *http.Request) error { req.Header.Set("X-Auth-Token", token); return nil }
	at, err := url.Parse(r.header.Get("Location"))
	return func() {
		if err != nil || at.Path == "" {
			return // it ends by itself
		}
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		_, _ = w.ask(ctx, http.MethodDelete, at.Path, nil) // BMCs have few sessions, but theirs end
	}, nil
}
