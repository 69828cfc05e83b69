package power

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
)

// A relay that is not there must not switch another one, as some versions of the
// firmware do.
func TestTasmotaRelayMissing(t *testing.T) {
	p := newPlug("1", "2")
	d := &Tasmota{Address: listen(t, p.tasmota("")), Socket: "5", Deadline: short}
	err := d.Set(t.Context(), true)
	if err == nil || !strings.Contains(err.Error(), "does not speak of outlet 5") || len(p.asked) > 0 {
		t.Errorf("%v; switched %v", err, p.asked)
	}
	single := newPlug("1")
	d = &Tasmota{Address: "http://" + listen(t, single.tasmota("")) + "/", Deadline: short}
	if err := d.Set(t.Context(), true); err != nil || !single.is("1") {
		t.Error(err)
	}
}

func TestPasswords(t *testing.T) {
	p := newPlug("0", "1")
	for _, a := range []struct {
		d    targets.Power
		want string
	}{
		{&Tasmota{Address: listen(t, p.tasmota("s3cret"))}, "set user and password_env"},
		{&Tasmota{Address: listen(t, p.tasmota("other")), Login: login(t, "")}, "it wants a password, or another one"},
		{&Shelly{Address: listen(t, p.shelly2("s3cret"))}, "set password_env"},
		{&Shelly{Address: listen(t, p.shelly2("other")), Login: login(t, "")}, "check user and password"},
		{&Shelly{Address: listen(t, p.shelly1("admin", "other")), Login: login(t, "")}, "check user and password"},
		{&Shelly{Address: listen(t, p.shelly2("")), Socket: "7"}, "not found"},
		{&Shelly{Address: listen(t, p.shelly1("", "")), Socket: "7"}, "Bad channel"},
		{&Tasmota{Address: "127.0.0.1:9", Login: Login{User: "x", PasswordFile: "/nonexistent/password"}}, "password_file"},
		{&Tasmota{Address: "127.0.0.1:9", Login: Login{User: "x", PasswordEnv: "NO_SUCH_VARIABLE_HERE"}}, "NO_SUCH_VARIABLE_HERE"},
	} {
		err := a.d.Set(t.Context(), true)
		if err == nil || !strings.Contains(err.Error(), a.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("want %q: %v", a.want, err)
		}
	}
	if len(p.asked) > 0 {
		t.Errorf("switched without the right password: %v", p.asked)
	}
}

// The challenges of RFC 7616, section 3.9.1, computed with its values.
func TestDigest(t *testing.T) {
	for _, c := range []struct{ challenge, want string }{
		{`Digest realm="x", qop="auth, auth-int", algorithm=SHA-256, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe"`, `algorithm=SHA-256, opaque="FQhe"`},
		{`Digest qop="auth",realm="x",nonce="1"`, `username="admin", realm="x", nonce="1", uri="/rpc"`},
	} {
		got, err := digest(c.challenge, "GET", "/rpc", "admin", "p")
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s %v", c.challenge, got, err)
		}
	}
	for _, bad := range []string{"", "Basic realm=x", `Digest realm="x", nonce="1"`, `Digest qop="auth", algorithm=SHA-1`, `Digest qop="auth-int", nonce="1"`, `Digest qop`} {
		if got, err := digest(bad, "GET", "/", "u", "p"); err == nil {
			t.Errorf("%q gives %s", bad, got)
		}
	}
}

func newBMC(t *testing.T, systems ...string) (*redfishFake, *httptest.Server) {
	f := &redfishFake{plug: newPlug(systems...), systems: systems, tokens: map[string]bool{}}
	s := httptest.NewUnstartedServer(f)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are to fail
	s.StartTLS()
	t.Cleanup(s.Close)
	return f, s
}

func TestRedfishCertificate(t *testing.T) {
	f, s := newBMC(t, "1")
	f.types = []string{"On", "ForceOff"}
	sum := sha256.Sum256(s.Certificate().Raw)
	print := hex.EncodeToString(sum[:])
	ca := file(t, filepath.Join(t.TempDir(), "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})), 0o600)
	ask := func(d Redfish) error {
		d.Address, d.Login, d.Deadline = s.URL, login(t, "lab"), 5*time.Second
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
		return d.Set(t.Context(), true)
	}
	for _, d := range []Redfish{{Insecure: true}, {CA: ca}, {Fingerprint: "sha256:" + strings.ToUpper(print)}, {Fingerprint: print[:2] + ":" + print[2:]}} {
		if err := ask(d); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if err := ask(Redfish{}); err == nil || !strings.Contains(err.Error(), `write fingerprint = "`+print+`"`) {
		t.Errorf("an unknown certificate: %v", err)
	}
	if err := ask(Redfish{Fingerprint: strings.Repeat("ab", 32)}); err == nil || !strings.Contains(err.Error(), "not the pinned one") || !strings.Contains(err.Error(), print) {
		t.Errorf("another certificate: %v", err)
	}
	plain := listen(t, f)
	err := (&Redfish{Address: plain, Login: login(t, "lab"), Insecure: true, Deadline: 5 * time.Second}).Set(t.Context(), true)
	if err == nil || !strings.Contains(err.Error(), "HTTP response to HTTPS") {
		t.Errorf("plain HTTP: %v", err)
	}
}

func TestRedfishSystems(t *testing.T) {
	f, s := newBMC(t, "Blade1", "Blade2")
	d := &Redfish{Address: s.URL, Login: login(t, "lab"), Insecure: true, Deadline: 5 * time.Second}
	if err := d.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "set system to one of Blade1, Blade2") {
		t.Errorf("several systems: %v", err)
	}
	for _, name := range []string{"blade2", "Server Blade2", "/redfish/v1/Systems/Blade2"} {
		d.System = name
		if err := d.Set(t.Context(), true); err != nil || !f.is("Blade2") || f.is("Blade1") {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Set(t.Context(), false); err != nil || f.is("Blade2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.System = "Blade9"
	if err := d.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "there are Blade1, Blade2") {
		t.Errorf("a system that is not there: %v", err)
	}
	d.System = "Blade1"
	f.sessions = true
	if err := d.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("sessions only: %v", err)
	}
	d.Session = true
	if err := d.Set(t.Context(), true); err != nil || !f.is("Blade1") || len(f.tokens) > 0 {
		t.Errorf("by a session: %v; sessions left %v", err, f.tokens)
	}
	f.types = []string{"GracefulShutdown", "GracefulRestart"}
	if err := d.Set(t.Context(), false); err == nil || !strings.Contains(err.Error(), "it allows GracefulShutdown") || !f.is("Blade1") {
		t.Errorf("no forced off: %v", err)
	}
	f.types = []string{"PushPowerButton"}
	if err := d.Set(t.Context(), false); err != nil || f.is("Blade1") {
		t.Errorf("by its button: %v", err)
	}
	f.types, f.refuse = []string{"On"}, "The chassis cover is open."
	if err := d.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "cover is open") {
		t.Errorf("a refusal: %v", err)
	}
	f.absolute = "https://192.0.2.7"
	if err := d.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "not its own") {
		t.Errorf("a link elsewhere: %v", err)
	}
}

// A request that may have arrived is not sent twice by http: it may be a toggle. One
// that found nobody is.
func TestHTTPOnce(t *testing.T) {
	n := 0
	a := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.Close()
		}
	}))
	err := (&HTTP{On: "http://" + a + "/toggle", Off: "http://x", Method: "POST"}).Set(t.Context(), true)
	if err == nil || n != 1 {
		t.Errorf("asked %d times: %v", n, err)
	}
	begin := time.Now()
	if err := (&HTTP{On: "http://" + nobody(t), Off: "http://x"}).Set(t.Context(), true); err == nil || time.Since(begin) < retry {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
}

// One outlet has one spelling, whatever driver and whatever hand.
func TestOutletSpellings(t *testing.T) {
	same := [][]targets.Outlet{
		{&Tasmota{Address: "Plug1"}, &Tasmota{Address: "plug1:80", Socket: "01"}, &Tasmota{Address: "http://plug1./", Socket: "1"},
			&HTTP{On: "http://PLUG1/cm?cmnd=Power%20On"}, &HTTP{On: "http://plug1:80/cm?user=a&password=b&cmnd=Power1+on"}},
		{&Shelly{Address: "10.0.0.9"}, &Shelly{Address: "10.0.0.9", Socket: "00"}, &HTTP{On: "http://10.0.0.9/relay/0?turn=on"},
			&HTTP{On: "http://10.0.0.9/rpc/Switch.Set?id=0&on=true"}, &HTTP{On: "http://10.0.0.9/rpc/Switch.Set?on=true&id=0"}},
		{&SNMP{Address: "pdu-1", Socket: "4"}, &SNMP{Address: "PDU-1:161", Socket: "04"}, &PDUDaemon{Address: "labpi", Strip: "pdu-1", Socket: "4"}},
		{&SNMP{Address: "[fe80::0001]:161", Socket: "1.04"}, &SNMP{Address: "fe80:0::1", Socket: "1.4"}},
		{&IPMI{Address: "bmc1"}, &IPMI{Address: "BMC1:623"}, &Redfish{Address: "https://bmc1/"}, &Redfish{Address: "bmc1:443"}},
		{&Redfish{Address: "bmc1", System: "Blade2"}, &Redfish{Address: "bmc1", System: "/redfish/v1/Systems/blade2"}},
		{&Relay{Tool: "gpioset", Device: "gpiochip0", Socket: "017"}, &Relay{Tool: "gpioset", Device: "/dev/gpiochip0", Socket: "17"}, &Relay{Tool: "gpioset", Device: "0", Socket: "17"}},
		{&Relay{Tool: "usbrelay", Device: "HURTM", Socket: "2"}, &Relay{Tool: "hidusb-relay-cmd", Device: "HURTM", Socket: "02"}},
		{&HTTP{On: "http://plug1:8080/on?4"}, &HTTP{On: "http://Plug1:8080/on?4"}},
	}
	seen := map[string]int{}
	for i, list := range same {
		for _, o := range list {
			strip, outlet := o.Outlet()
			if strip == "" || outlet == "" {
				t.Errorf("%+v names no outlet", o)
			}
			key := strip + "\x00" + outlet
			if first, ok := seen[key]; ok && first != i {
				t.Errorf("%+v is spelt like another outlet: %q", o, key)
			} else if !ok && o != list[0] {
				t.Errorf("%+v is spelt %q, unlike %+v", o, key, list[0])
			}
			seen[key] = i
		}
	}
	for _, d := range All() {
		if o, ok := d().(targets.Outlet); ok {
			if strip, outlet := o.Outlet(); strip != "" {
				t.Errorf("an empty %T names %q %q", o, strip, outlet)
			}
		}
	}
}

// Every model's plan is whole: on, off and what is read are OIDs with the outlet.
func TestModels(t *testing.T) {
	f, _ := reflect.TypeFor[SNMP]().FieldByName("Model")
	listed := regexp.MustCompile("[,;]? (?:or )?").Split(f.Tag.Get("doc"), -1)
	for name := range models() {
		if !slices.Contains(listed, name) {
			t.Errorf("the attribute's description leaves out %s", name)
		}
		for _, outlet := range []string{"7", units()[name] + "7"} {
			d := &SNMP{Address: "pdu", Model: name, Socket: outlet}
			if err := d.Check(); err != nil {
				t.Error(name, err)
			}
			p, err := d.plan()
			if err != nil || !isOID(p.on) || !isOID(p.off) || !isOID(p.state) || !strings.HasSuffix(p.on, ".7") || p.stateOn == p.stateOff {
				t.Errorf("%s: %+v %v", name, p, err)
			}
		}
	}
	p, err := (&SNMP{Model: "sentry", Socket: "1.2.3"}).plan()
	if err != nil || p.on != ".1.3.6.1.4.1.1718.3.2.3.1.11.1.2.3" {
		t.Error(p, err)
	}
}

func TestMoreChecks(t *testing.T) {
	user := Login{User: "u", PasswordEnv: "E"}
	for _, d := range []interface{ Check() error }{
		&Tasmota{}, &Tasmota{Address: "plug1/cm"}, &Tasmota{Address: "p", Socket: "9"}, &Tasmota{Address: "p", Socket: "x"}, &Tasmota{Address: "ftp://p"},
		&Tasmota{Address: "http://u:p@plug"}, &Tasmota{Address: "p", Login: Login{User: "u"}}, &Tasmota{Address: "p", Deadline: -1},
		&Shelly{Address: "p", Socket: "10"}, &Shelly{Address: "p", Login: Login{User: "u", PasswordEnv: "a", PasswordFile: "b"}},
		&PDUDaemon{Address: "p"}, &PDUDaemon{Strip: "a", Socket: "1"},
		&IPMI{Address: "b"}, &IPMI{Address: "b:x", Login: user}, &IPMI{Address: "b", Login: user, Cipher: 0x1ff}, &IPMI{Address: "b", Login: user, Cipher: 1}, &IPMI{Address: "b", Login: Login{User: "a-name-of-17-bytes", PasswordEnv: "E"}}, &IPMI{Address: "b", Login: user, Privilege: "user"},
		&Redfish{Address: "b"}, &Redfish{Address: "b", Login: user, Insecure: true, CA: "x"}, &Redfish{Address: "b", Login: user, Fingerprint: "abc"},
		&SNMP{Address: "p", Socket: "4"}, &SNMP{Address: "p", Socket: "A1", Model: "poe"}, &SNMP{Address: "p", Socket: "4", Model: "apc"}, &SNMP{Address: "p", Socket: "1.2.3.4", Model: "sentry"},
		&SNMP{Address: "p", Socket: "4", Model: "poe", OID: "1.2.3"}, &SNMP{Address: "p", Socket: "4", OID: "1.2.x", On: "1", Off: "0"}, &SNMP{Address: "p", Socket: "4", OID: "1.2.3", On: "1", Off: "1"},
		&SNMP{Address: "p", Socket: "4", OID: "1.2.3", On: "one", Off: "0"}, &SNMP{Address: "p", Socket: "4", Model: "poe", Version: "2"}, &SNMP{Address: "p", Socket: "4", Model: "poe", Version: "3"},
		&SNMP{Address: "p", Socket: "4", Model: "poe", User: "u"}, &SNMP{Address: "p", Socket: "4", Model: "poe", Version: "3", User: "u", PrivEnv: "E"}, &SNMP{Address: "p", Socket: "4", Model: "poe", Version: "3", User: "u", AuthEnv: "E", AuthProtocol: "sha3"},
		&SNMP{Address: "p", Socket: "4", Model: "poe", Version: "3", User: "u", AuthEnv: "E", PrivProtocol: "aes"}, &SNMP{Address: "p", Socket: "4", Model: "poe", Version: "3", User: "u", CommunityEnv: "E"},
		&Relay{Tool: "x"}, &Relay{Tool: "usbrelay", Device: "A"}, &Relay{Tool: "usbrelay", Device: "-x", Socket: "1"}, &Relay{Tool: "sysfs", Device: "value"}, &Relay{Tool: "sysfs", Device: "/v", Socket: "1"},
		&WOL{}, &WOL{MAC: "01:00:5e:00:00:01"}, &WOL{MAC: "00:00:00:00:00:00"}, &WOL{MAC: "00:1b:21:0a:0b:0c:0d:0e"}, &WOL{MAC: "00:1b:21:0a:0b:0c", Address: "target1"}, &WOL{MAC: "00:1b:21:0a:0b:0c", Off: []string{""}},
	} {
		if err := d.Check(); err == nil {
			t.Errorf("%+v passes its check", d)
		}
	}
}

// A device that fails once, as Wi-Fi plugs do, is asked again.
func TestAgain(t *testing.T) {
	p, n := newPlug("1"), 0
	good := p.tasmota("")
	a := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n%2 == 1 {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				c.Close()
			}
			return
		}
		good(w, r)
	}))
	if err := (&Tasmota{Address: a, Deadline: 10 * time.Second}).Set(t.Context(), true); err != nil || !p.is("1") {
		t.Error(fmt.Sprint(n), err)
	}
}
