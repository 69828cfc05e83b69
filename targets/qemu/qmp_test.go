package qemu

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

const greeting = `{"QMP":{"version":{},"capabilities":[]}}` + "\n"

// serve runs a fake QEMU: it sends the first answer at once and one more after
// each command, then holds the line open, or closes it after "EOF".
func serve(t *testing.T, answers ...string) *qmp {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		in := bufio.NewReader(theirs)
		for i, a := range answers {
			if i > 0 {
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
			}
			if a == "EOF" {
				return
			}
			if _, err := io.WriteString(theirs, a); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, in)
	}()
	t.Cleanup(func() {
		ours.Close()
		<-done
	})
	return newQMP(ours)
}

func TestQMP(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		want    string // in the error; "" for success
	}{
		"plain":             {[]string{greeting, `{"return":{},"id":1}` + "\n", `{"return":"ok","id":2}` + "\n"}, ""},
		"events first":      {[]string{greeting, `{"return":{},"id":1}` + "\n", `{"event":"RESUME","timestamp":{}}` + "\n" + `{"event":"X"}` + "\n" + `{"return":"ok","id":2}` + "\n"}, ""},
		"late old reply":    {[]string{greeting, `{"return":{},"id":1}` + "\n", `{"return":"old","id":1}` + "\n" + `{"return":"ok","id":2}` + "\n"}, ""},
		"refused":           {[]string{greeting, `{"return":{},"id":1}` + "\n", `{"error":{"class":"GenericError","desc":"no such thing"},"id":2}` + "\n"}, "no such thing"},
		"refused, no id":    {[]string{greeting, `{"error":{"class":"GenericError","desc":"bad JSON"}}` + "\n"}, "bad JSON"},
		"silent":            {[]string{""}, "no answer in time"},
		"silent later":      {[]string{greeting, ""}, "no answer in time"},
		"only events":       {[]string{greeting, `{"return":{},"id":1}` + "\n", strings.Repeat(`{"event":"X"}`+"\n", 1000)}, "no answer in time"},
		"another server":    {[]string{"SSH-2.0-dropbear\r\n"}, "not JSON"},
		"JSON but no QMP":   {[]string{"{}\n"}, "not a QMP server"},
		"wrong type":        {[]string{greeting, `{"return":{},"id":1}` + "\n", `{"return":{"a":1},"id":2}` + "\n"}, "cannot unmarshal"},
		"endless line":      {[]string{greeting, strings.Repeat("x", maxReply+1)}, "more than 1048576 bytes"},
		"closes":            {[]string{"EOF"}, "EOF"},
		"closes later":      {[]string{greeting, "EOF"}, "EOF"},
		"closes mid-answer": {[]string{greeting, `{"return":{},"id":1}` + "\n", `{"retu`, "EOF"}, "no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := serve(t, c.answers...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			var out string
			err := q.hello(ctx)
			if err == nil {
				err = q.execute(ctx, "ask", nil, &out)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			switch {
			case c.want == "" && (err != nil || out != "ok"):
				t.Errorf("got %q, %v", out, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v lacks %q", err, c.want)
			}
		})
	}
}

// TestQMPCancel: the caller's reason is the error, at once.
func TestQMPCancel(t *testing.T) {
	q := serve(t, "")
	why := errors.New("the operator gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := q.hello(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// TestForward: a number taken for UDP is given up for TCP too.
func TestForward(t *testing.T) {
	table := func(port, id string) string {
		return `{"return":"Hub -1 (net0):\r\n  Protocol[State] FD Source Address Port Dest. Address Port RecvQ SendQ\r\n` +
			`  TCP[HOST_FORWARD] 12 127.0.0.1 ` + port + ` 10.0.2.15 5001 0 0\r\n","id":` + id + "}\n"
	}
	q := serve(t, greeting, `{"return":{},"id":1}`+"\n",
		`{"return":"Could not set up host forwarding rule 'tcp:127.0.0.1:40000-:5001'\r\n","id":2}`+"\n",
		`{"return":"","id":3}`+"\n", table("41000", "4"),
		`{"return":"Could not set up host forwarding rule 'udp:127.0.0.1:41000-:5001'\r\n","id":5}`+"\n",
		`{"return":"host forwarding rule for tcp:127.0.0.1:41000 removed\r\n","id":6}`+"\n",
		`{"return":"","id":7}`+"\n", table("42000", "8"), `{"return":"","id":9}`+"\n")
	if err := q.hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := forward(t.Context(), q, []int{5001}, map[int]int{5001: 40000})
	if err != nil || got[5001] != 42000 {
		t.Errorf("got %v, %v", got, err)
	}
}
