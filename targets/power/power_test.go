package power

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCommand(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	c := &Command{On: []string{"sh", "-c", "echo on >$0", state}, Off: []string{"sh", "-c", "echo off >$0", state}}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	conform(t, rig{driver: c, address: "", dead: &Command{On: []string{"/nonexistent/strip"}, Off: []string{"true"}}, on: func() bool {
		b, err := os.ReadFile(state)
		return err == nil && strings.TrimSpace(string(b)) == "on"
	}})
	c = &Command{On: []string{"sh", "-c", "echo outlet 9 of 8; exit 2"}, Off: []string{"sleep", "100"}, Deadline: 50 * time.Millisecond}
	if err := c.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "outlet 9 of 8") {
		t.Error(err)
	}
	if err := c.Set(t.Context(), false); err == nil || !strings.Contains(err.Error(), "power off: ") || !strings.Contains(err.Error(), "within 50ms") {
		t.Error(err)
	}
}

func TestHTTP(t *testing.T) {
	var seen []string
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		seen = append(seen, fmt.Sprintf("%s %s %s %s:%s", r.Method, r.URL, b, user, password))
		switch r.URL.Path {
		case "/broken":
			http.Error(w, "relay stuck", http.StatusInternalServerError)
		case "/hang":
			select {
			case <-r.Context().Done():
			case <-hang:
			}
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer s.Close()
	defer close(hang)
	t.Setenv("PLUG_PASSWORD", "s3cret")
	h := &HTTP{On: s.URL + "/relay/0?turn=on", Off: s.URL + "/relay/0", Method: "post", OnBody: `{"on":true}`, OffBody: `{"on":false}`,
		Login: Login{User: "lab", PasswordEnv: "PLUG_PASSWORD"}}
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, false} {
		if err := h.Set(t.Context(), on); err != nil {
			t.Fatal(err)
		}
	}
	want := `POST /relay/0?turn=on {"on":true} lab:s3cret|POST /relay/0 {"on":false} lab:s3cret`
	if got := strings.Join(seen, "|"); got != want {
		t.Errorf("requests %s", got)
	}
	h = &HTTP{On: s.URL + "/broken", Off: s.URL + "/hang", Deadline: 100 * time.Millisecond}
	if err := h.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "500") || !strings.Contains(err.Error(), "relay stuck") {
		t.Error(err)
	}
	if err := h.Set(t.Context(), false); err == nil || !strings.Contains(err.Error(), "no end within 100ms") {
		t.Error(err)
	}
	h = &HTTP{On: s.URL, Off: s.URL, Login: Login{User: "u", PasswordEnv: "NO_SUCH_VARIABLE_HERE"}}
	if err := h.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "NO_SUCH_VARIABLE_HERE") {
		t.Error(err)
	}
}

func TestChecks(t *testing.T) {
	ok := "http://plug1/on"
	for _, d := range []interface{ Check() error }{
		&Command{On: []string{"x"}}, &Command{On: []string{"x"}, Off: []string{""}}, &Command{On: []string{"x"}, Off: []string{"x"}, Deadline: -1},
		&HTTP{On: ok}, &HTTP{On: ok, Off: "plug1/off"}, &HTTP{On: ok, Off: "ftp://plug1"}, &HTTP{On: ok, Off: "http://u:p@plug1/"},
		&HTTP{On: ok, Off: ok, Method: "BREW"}, &HTTP{On: ok, Off: ok, OnBody: "x"}, &HTTP{On: ok, Off: ok, Login: Login{User: "u"}}, &HTTP{On: ok, Off: ok, Deadline: -1},
		&HTTP{On: "http://[::1", Off: ok},
	} {
		if err := d.Check(); err == nil {
			t.Errorf("%+v passes its check", d)
		}
	}
}
