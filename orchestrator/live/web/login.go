package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	sessionCookie = "kernsweep_session"
	formCookie    = "kernsweep_form"
	sessionTime   = 12 * time.Hour

	triesMost = 10 // wrong tokens from one client
	triesTime = time.Minute
	triesKept = 1024 // clients
)

// known compares a token in the same time whatever it is.
func (s *Server) known(token string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.opt.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// sign is what only this process can make for a text.
func (s *Server) sign(purpose, text string) string {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(purpose + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (s *Server) signed(purpose, text, sum string) bool {
	return hmac.Equal([]byte(s.sign(purpose, text)), []byte(sum))
}

// session says whether the request has the cookie of a login.
func (s *Server) session(r *http.Request) bool {
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return false
	}
	text, sum, _ := strings.Cut(c.Value, ".")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(raw) == 24 && s.signed("session", text, sum) && s.now().Unix() < int64(binary.BigEndian.Uint64(raw[16:]))
}

func (s *Server) begin(w http.ResponseWriter, r *http.Request) {
	raw := make([]byte, 24)
	rand.Read(raw[:16]) // never fails (Go 1.24 and later)
	binary.BigEndian.PutUint64(raw[16:], uint64(s.now().Add(sessionTime).Unix()))
	text := base64.RawURLEncoding.EncodeToString(raw)
	s.setCookie(w, r, sessionCookie, text+"."+s.sign("session", text), int(sessionTime.Seconds()))
}

func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, name, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
}

// loginPage asks for the token.
type loginPage struct {
	head
	Next, Wrong string
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request) {
	if s.opt.Token == "" || s.session(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	s.page(w, r, http.StatusOK, "login.tmpl", loginPage{head: s.head(r, "Log in"), Next: r.URL.Query().Get("next")})
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.problem(w, r, http.StatusBadRequest, "the form could not be read: "+err.Error())
		return
	}
	now := s.now()
	if wait := s.tries.wait(client(r), now); wait > 0 {
		s.tooMany(w, r, wait)
		return
	}
	next := r.PostForm.Get("next")
	if s.opt.Token == "" || !s.known(strings.TrimSpace(r.PostForm.Get("token"))) {
		s.tries.failed(client(r), now)
		s.page(w, r, http.StatusUnauthorized, "login.tmpl", loginPage{head: s.head(r, "Log in"), Next: next, Wrong: "This is not the token."})
		return
	}
	s.begin(w, r)
	http.Redirect(w, r, ownAddress(next), http.StatusSeeOther)
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	s.setCookie(w, r, sessionCookie, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// ownAddress keeps a redirection on this page.
func ownAddress(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return u.RequestURI()
}

func escapeQuery(s string) string { return url.QueryEscape(s) }

// formKey is what a form must bring back; it belongs to the browser it was shown
// in. Reading a form sets a cookie, and changes nothing else.
func (s *Server) formKey(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(formCookie)
	if err != nil || len(c.Value) < 20 {
		raw := make([]byte, 16)
		rand.Read(raw) // never fails (Go 1.24 and later)
		c = &http.Cookie{Value: base64.RawURLEncoding.EncodeToString(raw)}
		s.setCookie(w, r, formCookie, c.Value, 0)
	}
	return s.sign("form", c.Value)
}

func (s *Server) formIsOurs(r *http.Request) bool {
	c, err := r.Cookie(formCookie)
	return err == nil && s.signed("form", c.Value, r.PostForm.Get("key"))
}

// tries bounds how often a client may be wrong.
type tries struct {
	mu    sync.Mutex
	wrong map[string][]time.Time
}

func newTries() *tries { return &tries{wrong: map[string][]time.Time{}} }

// wait is how long a client has to wait before it may try again.
func (t *tries) wait(who string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.wrong[who]
	if len(list) < triesMost {
		return 0
	}
	return max(0, triesTime-now.Sub(list[len(list)-triesMost]))
}

func (t *tries) failed(who string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.wrong[who]; !there && len(t.wrong) >= triesKept {
		for other, list := range t.wrong {
			if now.Sub(list[len(list)-1]) > triesTime {
				delete(t.wrong, other)
			}
		}
		if len(t.wrong) >= triesKept {
			clear(t.wrong) // a swarm: the length of a token is what keeps it out
		}
	}
	list := append(t.wrong[who], now)
	t.wrong[who] = list[max(0, len(list)-triesMost):]
}

func (s *Server) tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
	s.problem(w, r, http.StatusTooManyRequests, "too many wrong tokens came from your address: try again in "+(wait.Round(time.Second)+time.Second).String())
}
