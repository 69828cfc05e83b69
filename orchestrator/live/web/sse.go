package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// stream is an answer of server-sent events. A client that takes nothing for as
// long as a write may last is dropped.
type stream struct {
	s    *Server
	w    http.ResponseWriter
	rc   *http.ResponseController
	sent time.Time
}

// openStream begins one, unless there are too many.
func (s *Server) openStream(w http.ResponseWriter, r *http.Request) (st *stream, done func(), ok bool) {
	if s.streams.Add(1) > s.limits.streams {
		s.streams.Add(-1)
		w.Header().Set("Retry-After", "30")
		s.problem(w, r, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are being followed already: close some", s.limits.streams))
		return nil, nil, false
	}
	st = &stream{s: s, w: w, rc: http.NewResponseController(w)}
	if err := st.rc.SetReadDeadline(time.Time{}); err != nil { // the request was read; its deadline would end the stream
		s.streams.Add(-1)
		s.problem(w, r, http.StatusInternalServerError, "this connection cannot be followed: "+err.Error())
		return nil, nil, false
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy that collects would show nothing
	w.WriteHeader(http.StatusOK)
	return st, func() { s.streams.Add(-1) }, true
}

// send writes one event; id 0: without one.
func (st *stream) send(id int, event, data string) error {
	var b bytes.Buffer
	if id > 0 {
		fmt.Fprintf(&b, "id: %d\n", id)
	}
	fmt.Fprintf(&b, "event: %s\n", event)
	for line := range strings.SplitSeq(strings.ReplaceAll(data, "\r", ""), "\n") {
		fmt.Fprintf(&b, "data: %s\n", line)
	}
	b.WriteByte('\n')
	return st.write(b.Bytes())
}

func (st *stream) sendJSON(id int, event string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return st.send(id, event, string(b))
}

// beat shows that the stream lives, when nothing else did for a while.
func (st *stream) beat() error {
	if time.Since(st.sent) < st.s.limits.beat {
		return nil
	}
	return st.write([]byte(": still here\n\n"))
}

func (st *stream) write(b []byte) error {
	st.sent = time.Now()
	if err := st.rc.SetWriteDeadline(st.sent.Add(st.s.limits.write)); err != nil {
		return err
	}
	if _, err := io.Copy(st.w, bytes.NewReader(b)); err != nil {
		return err
	}
	return st.rc.Flush()
}

// lastID is what a client has seen already: it says so when it comes again.
func lastID(r *http.Request) int {
	for _, text := range []string{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")} {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			return n
		}
	}
	return 0
}
