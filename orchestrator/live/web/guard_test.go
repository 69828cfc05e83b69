package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
	}
}

// Whatever is asked for, the answer is one of ours, and nothing outside the run is
// in it.
func TestHostileRequests(t *testing.T) {
	l := newLab(t)
	n := l.newNight("tonight", 1, "box")
	n.boots("box", "cfs", 1, results.OK)
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.runs), "secret"), []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := n.run.Dir()
	for name, to := range map[string]string{"out": "../../secret", "abs": "/etc/passwd", "up": "..", "in": "run.json"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "evil.html"), []byte("<script>alert(1)</script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := l.page(Options{Hosts: []string{"127.0.0.1", "lab.example"}})
	r := "/runs/" + n.run.Name()
	for _, c := range []struct {
		method, path string
		want         int
		change       func(*http.Request)
	}{
		{"GET", r + "/raw/run.json", 200, nil},
		{"GET", r + "/raw/in", 200, nil},
		{"GET", r + "/raw/..%2f..%2fsecret", 404, nil},
		{"GET", r + "/raw/%2e%2e/%2e%2e/secret", 404, nil},
		{"GET", r + "/raw/box/..%2f..%2f..%2fsecret", 404, nil},
		{"GET", r + "/raw/out", 404, nil},
		{"GET", r + "/files/out", 404, nil},
		{"GET", r + "/raw/abs", 404, nil},
		{"GET", r + "/files/up/", 404, nil},
		{"GET", r + "/raw/fifo", 404, nil},
		{"GET", r + "/files/fifo", 404, nil},
		{"GET", r + "/raw/%00", 404, nil},
		{"GET", r + "/raw/box%5c..", 404, nil},
		{"GET", "/runs/..%2f/raw/secret", 404, nil},
		{"GET", "/runs/%2e%2e/", 404, nil},
		{"GET", "/runs/../runs", 307, nil},
		{"GET", r + "/lanes/..%2f..", 404, nil},
		{"GET", r + "/lanes/" + strings.Repeat("x", 5000), 404, nil},
		{"GET", r + "/lanes/nosuch/console/stream", 404, nil},
		{"GET", r + "/report?format=exe", 404, nil},
		{"GET", r + "/nosuch", 404, nil},
		{"GET", "/api/runs?limit=-1", 400, nil},
		{"GET", "/api/runs?limit=1e9", 400, nil},
		{"GET", "/static/..%2fhtml%2fruns.tmpl", 404, nil},
		{"PUT", r, 405, nil},
		{"DELETE", r, 405, nil},
		{"OPTIONS", r, 405, nil},
		{"POST", r, 405, nil},
		{"HEAD", r, 200, nil},
		{"GET", "/logout", 405, nil},
		{"POST", r + "/control", 403, nil},
		{"GET", r + "/control?action=stop", 403, nil},
		{"POST", "/api" + r + "/control", 403, nil},
		{"GET", "/", 421, header("Host", "evil.example")},
		{"GET", "/", 421, header("Host", "127.0.0.1.evil.example:80")},
		{"GET", "/", 421, header("Host", "")},
		{"GET", "/", 200, header("Host", "LAB.example:1234")},
		{"GET", "/", 403, header("Sec-Fetch-Site", "cross-site")},
		{"GET", r + "/events", 403, header("Sec-Fetch-Site", "same-site")},
		{"POST", "/login", 403, header("Origin", "null")},
		{"POST", "/login", 403, header("Origin", "http://evil.example")},
		{"POST", "/login", 403, header("Sec-Fetch-Site", "cross-site")},
		{"GET", "/", 200, func(r *http.Request) {
			for k, v := range map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"} {
				r.Header.Set(k, v)
			}
		}},
		{"GET", "/", 403, func(r *http.Request) { // inside a frame of somebody else
			for k, v := range map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"} {
				r.Header.Set(k, v)
			}
		}},
	} {
		change := c.change
		if change == nil {
			change = func(*http.Request) {}
		}
		for _, accept := range []string{"text/html", "*/*"} {
			w := do(s, c.method, c.path, "", header("Accept", accept), change)
			if w.Code != c.want {
				t.Errorf("%s %.80s (%s): %d, want %d", c.method, c.path, accept, w.Code, c.want)
			}
			if strings.Contains(w.Body.String(), "SECRET") || strings.Contains(w.Body.String(), "root:x") {
				t.Errorf("%s %s gives a secret", c.method, c.path)
			}
			if h := w.Header(); h.Get("Content-Security-Policy") == "" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s %s: headers %v", c.method, c.path, h)
			}
		}
	}
	w := get(s, r+"/raw/evil.html")
	if h := w.Header(); h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a page among the files would be shown: %v", h)
	}
	if w := get(s, r+"/files/evil.html", browser); !strings.Contains(w.Body.String(), "&lt;script&gt;") || strings.Contains(w.Body.String(), "<script>alert") {
		t.Errorf("as text: %s", w.Body)
	}
	if w := get(s, "/api"+r+"/nosuch"); w.Header().Get("Content-Type") != "application/problem+json" || decoded[Problem](t, w.Body.Bytes()).Status != 404 {
		t.Errorf("a program gets %v %s", w.Header(), w.Body)
	}
	if w := do(s, "PUT", r, ""); w.Header().Get("Allow") != "GET" {
		t.Errorf("Allow: %q", w.Header().Get("Allow"))
	}
}

// A token lets in: as a header, or by the form; ten wrong ones a minute.
func TestToken(t *testing.T) {
	l := newLab(t)
	n := l.newNight("tonight", 1, "box")
	s := l.page(Options{Token: "a-very-long-token"})
	for _, path := range []string{"/", "/runs/" + n.run.Name(), "/runs/" + n.run.Name() + "/events", "/metrics", "/api/runs", "/nosuch", "/runs/" + n.run.Name() + "/raw/run.json"} {
		if w := get(s, path); w.Code != http.StatusUnauthorized || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") || strings.Contains(w.Body.String(), "tonight") {
			t.Errorf("%s without a token: %d %s", path, w.Code, w.Body)
		}
		if w := get(s, path, browser); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/login?next="+url.QueryEscape(path) {
			t.Errorf("%s in a browser: %d %s", path, w.Code, w.Header().Get("Location"))
		}
	}
	for _, path := range []string{"/login", s.static["style.css"].address} {
		if w := get(s, path, browser); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := get(s, "/", header("Authorization", "Bearer a-very-long-token")); w.Code != http.StatusOK {
		t.Errorf("with the token: %d", w.Code)
	}
	for _, next := range []string{"/targets", "//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "", "/\t/evil.example"} {
		w := do(s, "POST", "/login", url.Values{"token": {" a-very-long-token\n"}, "next": {next}}.Encode(), header("Content-Type", "application/x-www-form-urlencoded"))
		want := "/"
		if next == "/targets" {
			want = next
		}
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("a login that leads to %q: %d %q", next, w.Code, w.Header().Get("Location"))
		}
		c := w.Result().Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
			t.Errorf("cookie %v", c)
		}
		with := func(r *http.Request) { r.AddCookie(c) }
		if w := get(s, "/", with); w.Code != http.StatusOK {
			t.Errorf("with the cookie: %d", w.Code)
		}
		c.Value = c.Value[:len(c.Value)-1] + "x"
		if w := get(s, "/", with); w.Code != http.StatusUnauthorized {
			t.Errorf("with a changed cookie: %d", w.Code)
		}
	}
	// A cookie ends.
	w := do(s, "POST", "/login", "token=a-very-long-token", header("Content-Type", "application/x-www-form-urlencoded"))
	c := w.Result().Cookies()[0]
	now := time.Now()
	s.now = func() time.Time { return now.Add(13 * time.Hour) }
	if w := get(s, "/", func(r *http.Request) { r.AddCookie(c) }); w.Code != http.StatusUnauthorized {
		t.Errorf("with an old cookie: %d", w.Code)
	}
	s.now = func() time.Time { return now }
	for i := range 12 {
		w := do(s, "POST", "/login", "token=wrong", header("Content-Type", "application/x-www-form-urlencoded"))
		if want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusTooManyRequests}[i < triesMost]; w.Code != want {
			t.Errorf("wrong token %d: %d, want %d", i+1, w.Code, want)
		}
	}
	if w := get(s, "/", header("Authorization", "Bearer a-very-long-token")); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("after ten wrong ones: %d", w.Code)
	}
	now = now.Add(2 * time.Minute)
	if w := get(s, "/", header("Authorization", "Bearer a-very-long-token")); w.Code != http.StatusOK {
		t.Errorf("two minutes later: %d", w.Code)
	}
}

// Steering takes the button, a form that this browser was shown, and a lane that
// there is.
func TestControl(t *testing.T) {
	l := newLab(t)
	l.steer()
	n := l.newNight("tonight", 1, "box")
	base := serve(t, l.page(Options{}))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	defer c.CloseIdleConnections()
	at := base + "/runs/" + n.run.Name() + "/control"
	body := func(r *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(b)
	}
	post := func(v url.Values) (int, string) { t.Helper(); return body(c.PostForm(at, v)) }
	form := url.Values{"action": {"pause"}, "lane": {"box"}, "why": {"look\x1b[2J \u202eat it"}}
	if code, text := post(form); code != http.StatusForbidden || !strings.Contains(text, "not from this page") {
		t.Errorf("without a form: %d %s", code, text)
	}
	code, page := body(c.Get(at + "?action=pause&lane=box"))
	_, key, _ := strings.Cut(page, `name="key" value="`)
	key, _, _ = strings.Cut(key, `"`)
	if code != http.StatusOK || key == "" {
		t.Fatalf("the form: %d\n%s", code, page)
	}
	if len(l.requests()) != 0 {
		t.Fatal("reading the form steered")
	}
	form.Set("key", key+"x")
	if code, _ := post(form); code != http.StatusForbidden {
		t.Errorf("with another key: %d", code)
	}
	form.Set("key", key)
	if code, text := post(form); code != http.StatusOK || !strings.Contains(text, "lane box pauses") {
		t.Errorf("%d %s", code, text)
	}
	if r := l.requests(); len(r) != 1 || r[0].Why != "look·[2J ·at it" {
		t.Errorf("asked: %+v", r)
	}
	for _, v := range []url.Values{{"action": {"stop-now"}}, {"action": {"rm"}}, {"action": {"pause"}}, {"action": {"pause"}, "lane": {"nosuch"}}, {"action": {"pause"}, "lane": {"box"}, "kernel": {"k"}}} {
		v.Set("key", key)
		if code, _ := post(v); code != http.StatusBadRequest {
			t.Errorf("%v: %d", v, code)
		}
	}
	l.mu.Lock()
	l.refuse = errors.New("lane box has ended")
	l.mu.Unlock()
	if code, text := post(form); code != http.StatusConflict || !strings.Contains(text, "lane box has ended") {
		t.Errorf("%d %s", code, text)
	}
	send := func(media, text string) int {
		t.Helper()
		r, err := c.Post(base+"/api/runs/"+n.run.Name()+"/control", media, strings.NewReader(text))
		code, _ := body(r, err)
		return code
	}
	for _, x := range []struct {
		media, text string
		want        int
	}{
		{"text/plain", `{"action":"stop"}`, 415}, {"application/x-www-form-urlencoded", `{"action":"stop"}`, 415}, {"application/json", `{"action":"stop"}`, 409},
		{"application/json", `{"action":"stop","x":1}`, 400}, {"application/json", `{`, 400}, {"application/json", `{"why":"` + strings.Repeat("x", maxBody) + `"}`, 400},
	} {
		if code := send(x.media, x.text); code != x.want {
			t.Errorf("%s %.40s: %d, want %d", x.media, x.text, code, x.want)
		}
	}
}

// A client that sends slowly, or too much, is ended; others are answered meanwhile.
func TestSlowClients(t *testing.T) {
	l := newLab(t)
	n := l.newNight("tonight", 1, "box")
	s := l.page(Options{})
	s.limits.header, s.limits.read, s.limits.idle = 200*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	base := serve(t, s)
	addr := strings.TrimPrefix(base, "http://")
	for name, text := range map[string]string{
		"head that does not end": "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: b\r\n",
		"body that does not end": "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\na=",
		"too long a head":        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + strings.Repeat("x", 100<<10) + "\r\n\r\n",
		"too long an address":    "GET /" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"no HTTP":                "\x16\x03\x01\x00\x00",
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // of an open socket: cannot fail
		b, err := io.ReadAll(c)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v after %q", name, err, b)
		}
		if strings.Contains(string(b), " 200 ") {
			t.Errorf("%s: %.100s", name, b)
		}
	}
	// A stream outlives the deadline of requests.
	r, err := http.Get(base + "/runs/" + n.run.Name() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	began, in := time.Now(), bufio.NewScanner(r.Body)
	for time.Since(began) < 3*s.limits.read && in.Scan() {
	}
	if time.Since(began) < 3*s.limits.read {
		t.Errorf("the stream ended after %s: %v", time.Since(began), in.Err())
	}
}

// When the server ends, so do streams and their goroutines, at once.
func TestShutdown(t *testing.T) {
	l := newLab(t)
	n := l.newNight("tonight", 1, "box")
	w := l.console("box")
	defer w.Close()
	s := l.page(Options{})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, lis, nil) }()
	var open []*bufio.Reader
	for _, path := range []string{"/events", "/events?as=cells", "/lanes/box/console/stream", "/lanes/box/events"} {
		r, err := http.Get("http://" + lis.Addr().String() + "/runs/" + n.run.Name() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		in := bufio.NewReader(r.Body)
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		open = append(open, in)
	}
	began := time.Now()
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Second):
		t.Error("it does not end within 2 s")
		<-done
	}
	t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
	for _, in := range open {
		if _, err := io.Copy(io.Discard, in); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if k := s.streams.Load(); k != 0 {
		t.Errorf("%d streams are counted", k)
	}
}
