package web

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// policy is what a page may load and do: its own style and script, and streams.
// Text can become markup nowhere.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP lets a request through to the routes when it may be answered.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	c := &counted{ResponseWriter: w}
	defer func() { s.metrics.answered(r, c.status(), time.Since(began)) }()
	h := c.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "private, no-store")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	// An error would say that this connection takes no deadline: then the server's stand.
	_ = http.NewResponseController(w).SetWriteDeadline(began.Add(s.limits.write))
	r.Body = http.MaxBytesReader(c, r.Body, maxBody)
	switch {
	case !s.forUs(r.Host):
		s.problem(c, r, http.StatusMisdirectedRequest, "this page does not answer for "+quoted(r.Host)+": use the address that kernsweep serve printed, or start it with --host NAME")
	case s.cross.Check(r) != nil || otherSite(r):
		s.problem(c, r, http.StatusForbidden, "another web page asked for this: open the page itself")
	default:
		s.authorised(c, r)
	}
}

// forUs refuses names that somebody else's DNS may point here.
func (s *Server) forUs(host string) bool {
	if s.opt.Hosts == nil {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return slices.ContainsFunc(s.opt.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// otherSite tells what a page of another origin embeds or fetches here. Following
// a link to here is fine: that can change nothing.
func otherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// authorised answers who knows the token. Where there is none, TLS has asked for a
// certificate, or only this machine can ask.
func (s *Server) authorised(w http.ResponseWriter, r *http.Request) {
	if s.opt.Token == "" || s.open(r) || s.session(r) {
		s.mux.ServeHTTP(w, r)
		return
	}
	token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if given {
		wait := s.tries.wait(client(r), s.now())
		if wait > 0 {
			s.tooMany(w, r, wait)
			return
		}
		if s.known(token) {
			s.mux.ServeHTTP(w, r)
			return
		}
		s.tries.failed(client(r), s.now())
	}
	if !given && wantsPage(r) {
		http.Redirect(w, r, "/login?next="+escapeQuery(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="kernsweep"`)
	s.problem(w, r, http.StatusUnauthorized, "send the token of kernsweep serve: Authorization: Bearer TOKEN")
}

// open are the addresses that everybody may ask for.
func (s *Server) open(r *http.Request) bool {
	_, pattern := s.mux.Handler(r)
	return s.opened[pattern]
}

func wantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// client is who asks, as far as the connection tells.
func client(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return "this machine" // a Unix socket has no addresses
}

// counted remembers the status of an answer.
type counted struct {
	http.ResponseWriter
	code int
}

func (c *counted) WriteHeader(code int) {
	if c.code == 0 && code >= 200 {
		c.code = code
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *counted) Write(b []byte) (int, error) {
	if c.code == 0 {
		c.code = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *counted) status() int {
	if c.code == 0 {
		return http.StatusOK
	}
	return c.code
}
