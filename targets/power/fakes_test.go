package power

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// plug is what the fakes switch: outlets by name, and a way to misbehave.
type plug struct {
	mu     sync.Mutex
	on     map[string]bool
	asked  []string      // requests that set something
	fault  string        // "" = none; see serve
	late   time.Duration // until a request takes effect
	timers []*time.Timer
}

func newPlug(outlets ...string) *plug {
	p := &plug{on: map[string]bool{}}
	for _, o := range outlets {
		p.on[o] = false
	}
	return p
}

func (p *plug) is(outlet string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on[outlet]
}

func (p *plug) has(outlet string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.on[outlet]
	return ok
}

func (p *plug) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.on)
}

func (p *plug) set(outlet string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, fmt.Sprintf("%s=%t", outlet, on))
	switch {
	case p.fault == "stuck":
	case p.late > 0:
		p.timers = append(p.timers, time.AfterFunc(p.late, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.on[outlet] = on
		}))
	default:
		p.on[outlet] = on
	}
}

// faults are ways to answer that no driver may take for a success.
func faults() []string {
	return []string{"500", "401", "empty", "nothing", "html", "cut", "half", "elsewhere", "circle", "huge", "hang"}
}

// serve puts a fault in front of a fake device.
func (p *plug) serve(good http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		fault := p.fault
		p.mu.Unlock()
		switch fault {
		case "500":
			http.Error(w, "relay driver crashed", 500)
		case "401":
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case "empty":
			fmt.Fprint(w, "{}")
		case "nothing":
		case "html":
			fmt.Fprint(w, "<html><body>Router login</body></html>")
		case "cut":
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				c.Close()
			}
		case "half":
			w.Header().Set("Content-Length", "5000")
			fmt.Fprint(w, `{"POWER1":`)
		case "elsewhere":
			http.Redirect(w, r, "http://127.0.0.99:9"+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		case "circle":
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusTemporaryRedirect)
		case "huge":
			for range 5000 {
				if _, err := fmt.Fprint(w, strings.Repeat("A", 1000)); err != nil {
					return
				}
			}
		case "hang":
			select {
			case <-r.Context().Done():
			case <-time.After(30 * time.Second):
			}
		default:
			good(w, r)
		}
	}
}

func reply1(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// tasmota answers as the firmware does (Tasmota manual, "Commands": Power<x>). A
// relay that is not there is taken for the first one, as some versions do.
func (p *plug) tasmota(password string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/cm" {
			http.NotFound(w, r)
			return
		}
		if password != "" && (q.Get("user") != "admin" || q.Get("password") != password) {
			reply1(w, map[string]string{"WARNING": "Need user=<username>&password=<password>"})
			return
		}
		command, value, _ := strings.Cut(q.Get("cmnd"), " ")
		n := strings.TrimPrefix(strings.ToLower(command), "power")
		if n == "" || !p.has(n) {
			n = "1"
		}
		answer := map[string]string{"ON": "ON", "OFF": "OFF", "": map[bool]string{true: "ON", false: "OFF"}[p.is(n)]}[strings.ToUpper(value)]
		if value != "" {
			p.set(n, strings.EqualFold(value, "on"))
		}
		key := "POWER" + n
		if p.count() == 1 {
			key = "POWER"
		}
		reply1(w, map[string]string{key: answer})
	}
}

// shelly1 answers as the first generation does (Shelly API, gen 1: /shelly, /relay/0).
func (p *plug) shelly1(user, password string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/shelly" {
			reply1(w, map[string]any{"type": "SHSW-25", "mac": "A1B2C3D4E5F6", "auth": password != "", "num_outputs": p.count()})
			return
		}
		if u, pw, _ := r.BasicAuth(); password != "" && (u != user || pw != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="shelly"`)
			http.Error(w, "401 Unauthorized", http.StatusUnauthorized)
			return
		}
		n := strings.TrimPrefix(r.URL.Path, "/relay/")
		if !p.has(n) {
			http.Error(w, "Bad channel", 404)
			return
		}
		if turn := r.URL.Query().Get("turn"); turn != "" {
			p.set(n, turn == "on")
		}
		reply1(w, map[string]any{"ison": p.is(n), "has_timer": false, "overpower": false})
	}
}

// shelly2 answers as the later generations do (Shelly API, gen 2: RPC over HTTP,
// digest authentication with SHA-256, one nonce a challenge).
func (p *plug) shelly2(password string) http.HandlerFunc {
	nonces := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/shelly" {
			reply1(w, map[string]any{"id": "shellyplus1-a8032ab12345", "gen": 2, "auth_en": password != "", "model": "SNSW-001X16EU"})
			return
		}
		if password != "" && !digestOK(r, "admin", password, nonces) {
			nonces++
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Digest qop="auth", realm="shellyplus1-a8032ab12345", nonce="%d", algorithm=SHA-256`, nonces))
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		n := r.URL.Query().Get("id")
		if !p.has(n) {
			w.WriteHeader(500)
			fmt.Fprintf(w, `{"code":-105,"message":"Argument 'id', value %s not found!"}`, n)
			return
		}
		switch r.URL.Path {
		case "/rpc/Switch.Set":
			was := p.is(n)
			p.set(n, r.URL.Query().Get("on") == "true")
			reply1(w, map[string]any{"was_on": was})
		case "/rpc/Switch.GetStatus":
			id, _ := strconv.Atoi(n)
			reply1(w, map[string]any{"id": id, "source": "http", "output": p.is(n)})
		default:
			http.Error(w, `{"code":404,"message":"No handler"}`, 404)
		}
	}
}

// digestOK computes the response anew (RFC 7616, section 3.4.1).
func digestOK(r *http.Request, user, password string, nonce int) bool {
	head, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Digest ")
	if !ok {
		return false
	}
	a := challengeParts(head)
	h := func(s string) string { b := sha256.Sum256([]byte(s)); return hex.EncodeToString(b[:]) }
	want := h(h(user+":shellyplus1-a8032ab12345:"+password) + ":" + strconv.Itoa(nonce) + ":" + a["nc"] + ":" + a["cnonce"] + ":auth:" + h(r.Method+":"+r.URL.RequestURI()))
	return a["username"] == user && a["nonce"] == strconv.Itoa(nonce) && a["uri"] == r.URL.RequestURI() && a["response"] == want
}

// pdudaemon answers as its HTTP listener does.
func (p *plug) pdudaemon(strip string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch path := r.URL.Path; {
		case path != "/power/control/on" && path != "/power/control/off":
			http.NotFound(w, r)
		case q.Get("hostname") != strip || !p.has(q.Get("port")):
			http.Error(w, "Invalid request: no such hostname", 500)
		default:
			p.set(q.Get("port"), strings.HasSuffix(path, "/on"))
			fmt.Fprint(w, "OK - accepted request\n")
		}
	}
}

// listen starts a fake and returns its address.
func listen(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}
