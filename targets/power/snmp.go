package power

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"
)

// SNMP switches an outlet of a strip by SNMP: SET, then GET until the state is
// read back.
type SNMP struct {
	Address      string        `hcl:"address" doc:"name or address of the strip, with :port where it is not 161"`
	Model        string        `hcl:"model,optional" doc:"apc-masterswitch, apc-rpdu, apc-rpdu2, cyberpower, eaton, gude-epc822x, netio, poe, raritan-px1, raritan-px2 or sentry; for another strip give oid, on and off"`
	Socket       string        `hcl:"outlet" doc:"number of the outlet; for a model with several units UNIT.OUTLET"`
	OID          string        `hcl:"oid,optional" doc:"without model: what is set; %s stands for the outlet, else the outlet is appended"`
	On           string        `hcl:"on,optional" doc:"without model: the integer that switches on"`
	Off          string        `hcl:"off,optional" doc:"without model: the integer that switches off"`
	StateOID     string        `hcl:"state_oid,optional" doc:"what is read back, if not oid"`
	StateOn      string        `hcl:"state_on,optional" doc:"the integer that is read back for on, if not on"`
	StateOff     string        `hcl:"state_off,optional" doc:"the integer that is read back for off, if not off"`
	Version      string        `hcl:"version,optional" doc:"\"1\", \"2c\" (default) or \"3\""`
	CommunityEnv string        `hcl:"community_env,optional" doc:"versions 1 and 2c: name of the environment variable that holds the community (without it \"private\")"`
	User         string        `hcl:"user,optional" doc:"version 3: user name"`
	AuthProtocol string        `hcl:"auth,optional" doc:"version 3: \"sha\" (default), \"sha256\", \"sha512\" or \"md5\""`
	AuthEnv      string        `hcl:"auth_env,optional" doc:"version 3: name of the environment variable that holds the authentication passphrase"`
	PrivProtocol string        `hcl:"privacy,optional" doc:"version 3: \"aes\" (default), \"aes256\" or \"des\""`
	PrivEnv      string        `hcl:"privacy_env,optional" doc:"version 3: name of the environment variable that holds the privacy passphrase"`
	Deadline     time.Duration `hcl:"deadline,optional" doc:"the state must be read back within this (default 30s)"`
}

// Check refuses what names no outlet or no way to it.
func (d *SNMP) Check() error {
	if _, _, err := splitAddress(d.Address, "161"); err != nil {
		return err
	}
	if d.suffix() == "" {
		return fmt.Errorf("outlet = %q: want a number, or numbers joined by dots", d.Socket)
	}
	if _, err := d.plan(); err != nil {
		return err
	}
	if err := d.checkVersion(); err != nil {
		return err
	}
	return notNegative(d.Deadline)
}

func (d *SNMP) checkVersion() error {
	v3 := d.User + d.AuthProtocol + d.AuthEnv + d.PrivProtocol + d.PrivEnv
	switch d.Version {
	case "", "1", "2c":
		if v3 != "" {
			return errors.New("user, auth and privacy are for version = \"3\"")
		}
		return nil
	case "3":
	default:
		return fmt.Errorf("version = %q: want \"1\", \"2c\" or \"3\"", d.Version)
	}
	_, okAuth := authProtocols()[d.AuthProtocol]
	_, okPriv := privProtocols()[d.PrivProtocol]
	switch {
	case d.CommunityEnv != "":
		return errors.New("community_env is for versions 1 and 2c")
	case d.User == "":
		return errors.New("version 3 needs user")
	case d.AuthEnv == "" && d.PrivEnv+d.AuthProtocol+d.PrivProtocol != "":
		return errors.New("auth and privacy need auth_env")
	case d.PrivEnv == "" && d.PrivProtocol != "":
		return errors.New("privacy needs privacy_env")
	case !okAuth:
		return fmt.Errorf("auth = %q: want \"sha\", \"sha256\", \"sha512\" or \"md5\"", d.AuthProtocol)
	case !okPriv:
		return fmt.Errorf("privacy = %q: want \"aes\", \"aes256\" or \"des\"", d.PrivProtocol)
	}
	return nil
}

// suffix is the outlet as it ends an OID: "4", "1.4".
func (d *SNMP) suffix() string {
	parts := strings.Split(strings.TrimSpace(d.Socket), ".")
	for i, p := range parts {
		if parts[i] = number(p); parts[i] == "" {
			return ""
		}
	}
	return strings.Join(parts, ".")
}

// Outlet names the strip and its outlet.
func (d *SNMP) Outlet() (strip, outlet string) {
	host, port, err := splitAddress(d.Address, "161")
	if err != nil {
		return "", ""
	}
	return stripName(host, port, "161"), d.suffix()
}

// Set switches, and reads back.
func (d *SNMP) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, d.Deadline)
	defer stop()
	return failed(ctx, on, fmt.Sprintf("SNMP %s, outlet %s", d.Address, d.Socket), d.set(ctx, on))
}

func (d *SNMP) set(ctx context.Context, on bool) error {
	plan, err := d.plan()
	if err != nil {
		return err
	}
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = s.Conn.Close() })() // ends a read that waits
	defer s.Close()
	oid, value := plan.off, plan.offValue
	if on {
		oid, value = plan.on, plan.onValue
	}
	answer, err := s.Set([]gosnmp.SnmpPDU{{Name: oid, Type: gosnmp.Integer, Value: value}})
	if err := snmpError(answer, err, "SET", oid); err != nil {
		return err
	}
	return confirm(ctx, on, func(context.Context) (bool, error) { return plan.read(s) })
}

// read asks for the state.
func (p outletPlan) read(s *gosnmp.GoSNMP) (bool, error) {
	answer, err := s.Get([]string{p.state})
	if err := snmpError(answer, err, "GET", p.state); err != nil {
		return false, err
	}
	v := answer.Variables[0]
	switch v.Type {
	case gosnmp.Integer, gosnmp.Gauge32, gosnmp.Uinteger32:
	default:
		return false, fmt.Errorf("GET %s: there is no such outlet, or it tells no integer (%s)", p.state, v.Type)
	}
	switch n := gosnmp.ToBigInt(v.Value).Int64(); {
	case n == int64(p.stateOn):
		return true, nil
	case n == int64(p.stateOff):
		return false, nil
	default: // on its way
		return false, &lostError{fmt.Errorf("GET %s: the state %d is neither on (%d) nor off (%d)", p.state, n, p.stateOn, p.stateOff)}
	}
}

// snmpError is what an answer complains of.
func snmpError(answer *gosnmp.SnmpPacket, err error, what, oid string) error {
	const alike = "a wrong address and a wrong community look the same"
	switch {
	case errors.Is(err, gosnmp.ErrUnknownUsername), errors.Is(err, gosnmp.ErrWrongDigest), errors.Is(err, gosnmp.ErrUnknownSecurityLevel),
		errors.Is(err, gosnmp.ErrDecryption), err != nil && strings.Contains(err.Error(), "not authentic"):
		return fmt.Errorf("%s %s: it refuses user or passphrase: %w", what, oid, err)
	case err != nil && isContext(err):
		return &lostError{fmt.Errorf("%s %s: no answer; %s", what, oid, alike)}
	case err != nil:
		return &lostError{fmt.Errorf("%s %s: no answer: %w; %s", what, oid, err, alike)}
	case answer == nil || answer.Error == gosnmp.NoError && len(answer.Variables) == 0:
		return fmt.Errorf("%s %s: an answer without a value", what, oid)
	case answer.Error == gosnmp.NoSuchName:
		return fmt.Errorf("%s %s: noSuchName: it has no such outlet, or the community may not write: look at model, outlet and the strip's access list", what, oid)
	case answer.Error != gosnmp.NoError:
		return fmt.Errorf("%s %s: it refuses: %s; look at model, outlet and whether this community or user may write", what, oid, answer.Error)
	}
	return nil
}

func authProtocols() map[string]gosnmp.SnmpV3AuthProtocol {
	return map[string]gosnmp.SnmpV3AuthProtocol{"": gosnmp.SHA, "sha": gosnmp.SHA, "sha256": gosnmp.SHA256, "sha512": gosnmp.SHA512, "md5": gosnmp.MD5}
}

func privProtocols() map[string]gosnmp.SnmpV3PrivProtocol {
	return map[string]gosnmp.SnmpV3PrivProtocol{"": gosnmp.AES, "aes": gosnmp.AES, "aes256": gosnmp.AES256, "des": gosnmp.DES}
}

// open makes a session of the configured version.
func (d *SNMP) open(ctx context.Context) (*gosnmp.GoSNMP, error) {
	host, port, err := splitAddress(d.Address, "161")
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %s: %w", port, err)
	}
	s := &gosnmp.GoSNMP{
		Target: host, Port: uint16(n), Transport: "udp", Context: ctx, Timeout: 2 * time.Second, Retries: 3, MaxOids: gosnmp.MaxOids,
		Version: map[string]gosnmp.SnmpVersion{"": gosnmp.Version2c, "1": gosnmp.Version1, "2c": gosnmp.Version2c, "3": gosnmp.Version3}[d.Version],
	}
	if d.Version == "3" {
		err = d.usm(s)
	} else {
		s.Community = "private"
		if d.CommunityEnv != "" {
			s.Community, err = secret("community_env", d.CommunityEnv)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := s.Connect(); err != nil {
		return nil, err
	}
	return s, nil
}

// usm fills in the user of version 3 (RFC 3414).
func (d *SNMP) usm(s *gosnmp.GoSNMP) error {
	p := &gosnmp.UsmSecurityParameters{UserName: d.User, AuthenticationProtocol: gosnmp.NoAuth, PrivacyProtocol: gosnmp.NoPriv}
	s.SecurityModel, s.MsgFlags, s.SecurityParameters = gosnmp.UserSecurityModel, gosnmp.NoAuthNoPriv, p
	var err error
	if d.AuthEnv != "" {
		s.MsgFlags, p.AuthenticationProtocol = gosnmp.AuthNoPriv, authProtocols()[d.AuthProtocol]
		if p.AuthenticationPassphrase, err = secret("auth_env", d.AuthEnv); err != nil {
			return err
		}
	}
	if d.PrivEnv != "" {
		s.MsgFlags, p.PrivacyProtocol = gosnmp.AuthPriv, privProtocols()[d.PrivProtocol]
		p.PrivacyPassphrase, err = secret("privacy_env", d.PrivEnv)
	}
	return err
}
