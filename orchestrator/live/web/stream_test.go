package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

// message is one server-sent event.
type message struct{ id, event, data string }

// listener reads a stream.
type listener struct {
	t  testing.TB
	r  *http.Response
	in *bufio.Scanner
}

func listen(t testing.TB, address, after string) *listener {
	t.Helper()
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	c := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close(); c.CloseIdleConnections() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s %s", address, resp.Status, resp.Header.Get("Content-Type"))
	}
	return &listener{t, resp, bufio.NewScanner(resp.Body)}
}

// next is the next event that is one of those; ok is false at the end.
func (l *listener) next(names ...string) (m message, ok bool) {
	for l.in.Scan() {
		switch name, value, _ := strings.Cut(l.in.Text(), ": "); name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data += value
		case "":
			if len(names) == 0 || strings.Contains(" "+strings.Join(names, " ")+" ", " "+m.event+" ") && m.event != "" {
				return m, true
			}
			m = message{}
		}
	}
	return message{}, false
}

// One follower serves all; events come in order, each once, also to whoever comes
// again; after the last viewer nobody reads.
func TestStream(t *testing.T) {
	l := newLab(t)
	n := l.newNight("tonight", 3, "box", "router")
	s := l.page(Options{})
	base := serve(t, s)
	at := base + "/runs/" + n.run.Name() + "/events"
	var all []*listener
	for range 20 {
		all = append(all, listen(t, at, ""))
	}
	s.hub.mu.Lock()
	if len(s.hub.runs) != 1 {
		t.Errorf("%d followers", len(s.hub.runs))
	}
	s.hub.mu.Unlock()
	n.boots("box", "cfs", 1, results.OK)
	n.judged("box", "cfs", 1, 1, results.OK, "")
	n.judged("box", "cfs", 1, 2, results.Failed, "\x1b[2J\u202e<b>")
	n.boots("router", "cfs", 1, results.BootFailed)
	n.end("box", "router")
	var last string
	for i, in := range all {
		seq, ended := 0, false
		var view live.View
		for {
			m, ok := in.next()
			if !ok {
				break
			}
			switch m.event {
			case "event":
				e := decoded[live.Event](t, []byte(m.data))
				if e.Seq <= seq || strconv.Itoa(e.Seq) != m.id {
					t.Errorf("viewer %d: event %s after %d: %s", i, m.id, seq, m.data)
				}
				seq = e.Seq
				if strings.ContainsAny(e.Text, "\x1b\u202e") {
					t.Errorf("%q", e.Text)
				}
			case "view":
				view = decoded[live.View](t, []byte(m.data))
			case "end":
				ended = m.data == "ended"
			}
		}
		if !ended || view.Done != 2 || view.Outcomes[results.OK] != 1 || seq == 0 {
			t.Errorf("viewer %d: ended %v, seq %d, view %+v", i, ended, seq, view)
		}
		last = strconv.Itoa(seq)
	}
	again := listen(t, at, last)
	if m, ok := again.next("event"); ok {
		t.Errorf("who comes again gets %v", m)
	}
	first := listen(t, at, "2")
	if m, ok := first.next("event"); !ok || m.id != "3" {
		t.Errorf("after 2 comes %v", m)
	}
	lane := listen(t, base+"/runs/"+n.run.Name()+"/lanes/router/events?as=cells", "")
	for {
		m, ok := lane.next("event")
		if !ok {
			break
		}
		if e := decoded[line](t, []byte(m.data)); e.Lane != "router" {
			t.Errorf("the lane's stream has %v", e)
		}
	}
}

// A run that is removed while it is watched ends the stream with the reason.
func TestRemovedRun(t *testing.T) {
	l := newLab(t)
	n := l.newNight("tonight", 3, "box")
	s := l.page(Options{})
	base := serve(t, s)
	in := listen(t, base+"/runs/"+n.run.Name()+"/events", "")
	if _, ok := in.next("view"); !ok {
		t.Fatal("no view")
	}
	if err := os.Rename(n.run.Dir(), filepath.Join(t.TempDir(), "gone")); err != nil { // in one step
		t.Fatal(err)
	}
	m, ok := in.next("gone", "end")
	if !ok || m.event != "gone" || !strings.Contains(m.data, "cannot be read") {
		t.Errorf("%v", m)
	}
	if w := get(s, "/runs/"+n.run.Name(), browser); w.Code != http.StatusNotFound {
		t.Errorf("its page: %d", w.Code)
	}
}

// Nobody looks: nobody reads. A client that takes nothing is dropped, and too many
// are refused.
func TestStreamsAreBounded(t *testing.T) {
	l := newLab(t)
	n := l.newNight("tonight", 3, "box")
	s := l.page(Options{})
	s.limits.streams, s.limits.write = 2, 300*time.Millisecond
	base := serve(t, s)
	path := "/runs/" + n.run.Name() + "/lanes/box/console/stream"
	w := l.console("box")
	defer w.Close()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	flood := make(chan int)
	go func() { // until the page hangs up
		sent := 0
		for {
			k, err := w.Write([]byte(strings.Repeat("x", 8<<10) + "\n"))
			if sent += k; err != nil {
				flood <- sent
				return
			}
		}
	}()
	select {
	case sent := <-flood:
		t.Logf("dropped after %d KiB", sent>>10)
	case <-time.After(30 * time.Second):
		t.Fatal("a client that takes nothing is never dropped")
	}
	one, two := listen(t, base+"/runs/"+n.run.Name()+"/events", ""), listen(t, base+path, "")
	if _, ok := two.next("idle"); !ok {
		t.Error("nobody records, and it is not said")
	}
	r, err := http.Get(base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("the third: %s", r.Status)
	}
	if _, ok := one.next("view"); !ok {
		t.Error("no view")
	}
	one.r.Body.Close()
	two.r.Body.Close()
	deadline := time.Now().Add(20 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); s.streams.Load() > 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d streams stay", s.streams.Load())
		}
	}
	s.hub.mu.Lock()
	for _, f := range s.hub.runs {
		if f.viewers != 0 {
			t.Errorf("%d viewers stay", f.viewers)
		}
	}
	s.hub.mu.Unlock()
}

func TestConsoleText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\r\nlines\n":                  "plain\nlines\n",
		"\x1b[1;31mred\x1b[0m":              "red",
		"\x1b]0;title\x07after":             "after",
		"\x1b]8;;http://evil\x1b\\x":        "x",
		"a\x00b\x07c":                       "abc",
		"\u202eright\u2066 \u200fx":         "·right· ·x",
		"\xff\xfe":                          "·",
		"\u05d0 gr\u00fc\u00df":             "\u05d0 gr\u00fc\u00df",
		"<script>alert(1)</script>&amp;":    "<script>alert(1)</script>&amp;",
		"\x1b[38;5;" + "1mx":                "x",
		strings.Repeat("\x1b[", 3) + "31mx": "x",
	} {
		var whole consoleText
		got := whole.add([]byte(in))
		var bytewise consoleText
		parts := ""
		for i := range len(in) {
			parts += bytewise.add([]byte{in[i]})
		}
		norm := func(s string) string { return strings.ReplaceAll(s, "··", "·") }
		if !strings.Contains(in, "\x00") && norm(got) != norm(want) {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
		if live.SafeText(parts) != parts || live.SafeText(got) != got {
			t.Errorf("%q gives %q and %q", in, got, parts)
		}
		if len(in) < 250 && norm(parts) != norm(got) {
			t.Errorf("%q byte by byte is %q, at once %q", in, parts, got)
		}
	}
	var stuck consoleText
	for range 100 {
		stuck.add([]byte("\x1b]" + strings.Repeat("x", 100)))
		if len(stuck.held) > 2*longestEscape {
			t.Fatalf("%d bytes are held", len(stuck.held))
		}
	}
}

// What is recorded now is not the console of a run that is over.
func TestConsoleOfARunThatIsOver(t *testing.T) {
	l := newLab(t)
	l.past(1)
	names, err := results.List(l.runs)
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	w := l.console("box") // of another run
	defer w.Close()
	in := listen(t, serve(t, l.page(Options{}))+"/runs/"+names[0]+"/lanes/box/console/stream", "")
	if m, ok := in.next("who", "out", "idle", "end"); !ok || m.event != "end" {
		t.Errorf("%v", m)
	}
}
