package power

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// rig is a driver and a device that works, for the suite.
type rig struct {
	driver  targets.Power
	address string // must stand in every error
	on      func() bool
	dead    targets.Power       // the same driver where nobody listens; nil: there is no such thing
	fault   func(string)        // makes the device misbehave; nil: it cannot
	late    func(time.Duration) // makes it switch late; nil: nothing is read back
}

// conform is what every power driver must do.
func conform(t *testing.T, r rig) {
	t.Helper()
	if c, ok := r.driver.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, on := range []bool{true, true, false, false, true, false} {
		if err := r.driver.Set(t.Context(), on); err != nil {
			t.Fatalf("%s: %v", word(on), err)
		}
		if r.on() != on {
			t.Fatalf("after %s the device is %s", word(on), word(r.on()))
		}
		if d, ok := r.driver.(stateful); ok {
			if is, err := d.State(t.Context()); !errors.Is(err, targets.ErrNoState) && (err != nil || is != on || r.on() != on) {
				t.Fatalf("after %s its state is %s (%v), the device is %s", word(on), word(is), err, word(r.on()))
			}
		}
	}
	conformErrors(t, r)
	if r.fault == nil {
		return
	}
	for _, f := range faults() {
		r.fault(f)
		checkError(t, r, f, r.driver.Set(t.Context(), true))
	}
	if r.late == nil {
		r.fault("")
		return
	}
	r.fault("stuck")
	err := r.driver.Set(t.Context(), true)
	checkError(t, r, "stuck", err)
	if err != nil && !strings.Contains(err.Error(), "reads back off") {
		t.Errorf("a stuck relay: %v", err)
	}
	r.fault("")
	r.late(400 * time.Millisecond)
	if err := r.driver.Set(t.Context(), true); err != nil || !r.on() {
		t.Errorf("a device that switches late: %v", err)
	}
}

func conformErrors(t *testing.T, r rig) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.driver.Set(ctx, true); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context gives %v", err)
	}
	if r.on() {
		t.Error("a cancelled context switches")
	}
	if r.dead == nil {
		return
	}
	if d, ok := r.dead.(stateful); ok {
		if _, err := d.State(t.Context()); err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the state where nobody listens: %v", err)
		}
	}
	begin := time.Now()
	checkError(t, r, "nobody listens", r.dead.Set(t.Context(), true))
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("that nobody listens is known after %s", took)
	}
}

// checkError: what the person reads holds what was wanted and of whom, in one line.
func checkError(t *testing.T, r rig, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	s := err.Error()
	if !strings.HasPrefix(s, "power on: ") || !strings.Contains(s, r.address) || strings.ContainsAny(s, "\n\x1b") || len(s) > 800 {
		t.Errorf("%s: %q", what, s)
	}
	if strings.Contains(s, "s3cret") {
		t.Errorf("%s: the password stands in %q", what, s)
	}
	t.Logf("%s: %s", what, s)
}

// stateful is a driver that can be asked without switching.
type stateful interface {
	State(ctx context.Context) (bool, error)
}

const short = 1500 * time.Millisecond // deadline of the drivers under test

// nobody is an address at which nothing listens.
func nobody(t *testing.T) string { return fmt.Sprintf("127.0.0.1:%d", targetstest.FreePort(t)) }

// login has its password in a file, so that tests may run beside each other.
func login(t *testing.T, user string) Login {
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("s3cret\r\nnot this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Login{User: user, PasswordFile: path}
}

func (p *plug) rig(driver targets.Power, address, outlet string) rig {
	return rig{
		driver: driver, address: address, on: func() bool { return p.is(outlet) },
		fault: func(f string) { p.mu.Lock(); p.fault = f; p.mu.Unlock() },
		late:  func(d time.Duration) { p.mu.Lock(); p.late = d; p.mu.Unlock() },
	}
}

func TestWebDrivers(t *testing.T) {
	t.Run("tasmota", func(t *testing.T) {
		t.Parallel()
		p := newPlug("1", "2", "3")
		a := listen(t, p.serve(p.tasmota("s3cret")))
		r := p.rig(&Tasmota{Address: a, Socket: "02", Login: login(t, ""), Deadline: short}, a, "2")
		n := nobody(t)
		r.dead = &Tasmota{Address: n}
		r.address = "127.0.0.1:"
		conform(t, r)
		if strings.Contains(fmt.Sprint(p.asked), "1=") {
			t.Errorf("another outlet was switched: %v", p.asked)
		}
	})
	t.Run("shelly1", func(t *testing.T) {
		t.Parallel()
		p := newPlug("0", "1")
		a := listen(t, p.serve(p.shelly1("lab", "s3cret")))
		r := p.rig(&Shelly{Address: a, Socket: "1", Login: login(t, "lab"), Deadline: short}, "127.0.0.1:", "1")
		r.dead = &Shelly{Address: nobody(t)}
		conform(t, r)
	})
	t.Run("shelly2", func(t *testing.T) {
		t.Parallel()
		p := newPlug("0")
		a := listen(t, p.serve(p.shelly2("s3cret")))
		conform(t, p.rig(&Shelly{Address: a, Login: login(t, ""), Deadline: short}, a, "0"))
	})
	t.Run("redfish", func(t *testing.T) {
		t.Parallel()
		f := &redfishFake{plug: newPlug("437XR1138R2"), systems: []string{"437XR1138R2"}, types: []string{"On", "ForceOff", "GracefulShutdown"}, tokens: map[string]bool{}}
		s := httptest.NewTLSServer(f.serve(f.ServeHTTP))
		defer s.Close()
		sum := sha256.Sum256(s.Certificate().Raw)
		a := strings.TrimPrefix(s.URL, "https://")
		r := f.rig(&Redfish{Address: a, Login: login(t, "lab"), Fingerprint: hex.EncodeToString(sum[:]), Deadline: short}, "127.0.0.1:", "437XR1138R2")
		r.dead = &Redfish{Address: nobody(t), Login: login(t, "lab"), Insecure: true}
		conform(t, r)
	})
	t.Run("pdudaemon", func(t *testing.T) {
		t.Parallel()
		p := newPlug("4")
		a := listen(t, p.serve(p.pdudaemon("pdu-1")))
		r := p.rig(&PDUDaemon{Address: a, Strip: "pdu-1", Socket: "4", Delay: time.Millisecond, Deadline: short}, "127.0.0.1:", "4")
		r.dead = &PDUDaemon{Address: nobody(t), Strip: "pdu-1", Socket: "4"}
		r.late = nil
		conform(t, r)
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		p := newPlug("4")
		a := listen(t, p.serve(p.pdudaemon("pdu-1")))
		url := "http://" + a + "/power/control/%s?hostname=pdu-1&port=4"
		r := p.rig(&HTTP{On: fmt.Sprintf(url, "on"), Off: fmt.Sprintf(url, "off"), Deadline: short}, "127.0.0.1:", "4")
		r.dead = &HTTP{On: "http://" + nobody(t), Off: "http://x"}
		r.fault, r.late = nil, nil // any answer of success is one
		conform(t, r)
	})
}

// A request that goes elsewhere must not carry the password there.
func TestRedirect(t *testing.T) {
	var stolen string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen += r.URL.String() + r.Header.Get("Authorization")
	}))
	defer thief.Close()
	a := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/shelly" {
			fmt.Fprint(w, `{"type":"SHPLG-S"}`)
			return
		}
		http.Redirect(w, r, thief.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	for _, d := range []targets.Power{
		&Tasmota{Address: a, Login: login(t, "admin")}, &Shelly{Address: a, Login: login(t, "admin")},
		&HTTP{On: "http://" + a, Off: "http://" + a, Login: login(t, "admin")},
	} {
		err := d.Set(t.Context(), true)
		if err == nil || !strings.Contains(err.Error(), "redirects to another address") || stolen != "" {
			t.Errorf("%T: %v; sent there: %q", d, err, stolen)
		}
	}
	// Within the device it is followed: some answer a request with their status page.
	home := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/status" {
			http.Redirect(w, r, "/status", http.StatusSeeOther)
		}
	}))
	if err := (&HTTP{On: "http://" + home + "/outlet?1=ON", Off: "http://x"}).Set(t.Context(), true); err != nil {
		t.Error(err)
	}
}
