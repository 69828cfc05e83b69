package web

import (
	"net/http"
	"time"

	"kernsweep/orchestrator/live"
)

// following is one client of a run's stream.
type following struct {
	*stream
	f     *followed
	lane  string // "": all
	cells bool   // for the page's script: texts by ID instead of the view
	seq   int    // of the last event it has
}

// streamRun sends the events of a run and how it stands, until it ends: "event"
// (live.Event, its seq as the id), "view" (live.View without events), at last
// "end", or "gone" with the reason. With ?as=cells "cells" and lines for the
// page's own script.
func (s *Server) streamRun(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	lane := r.PathValue("lane")
	if lane != "" {
		if _, m := s.view(run); m.err == nil {
			if _, ok := laneOf(m.view, lane); !ok {
				s.noLane(w, r, m.view, lane)
				return
			}
		}
	}
	st, done, ok := s.openStream(w, r)
	if !ok {
		return
	}
	defer done()
	f, release := s.hub.attach(run)
	defer release()
	c := &following{stream: st, f: f, lane: lane, cells: r.URL.Query().Get("as") == "cells", seq: lastID(r)}
	// Two clocks: views that differ in times only, and the signs of life.
	tick := time.NewTicker(min(timesChange, s.limits.beat))
	defer tick.Stop()
	f.look(lookAgain)
	for {
		m := f.moment()
		if over, err := c.tell(m); over || err != nil {
			return // the client has gone, or knows that nothing more comes
		}
		select {
		case <-m.news:
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// tell sends what the client does not know yet.
func (c *following) tell(m moment) (over bool, err error) {
	if m.err != nil {
		return true, c.send(0, "gone", live.SafeText(m.err.Error()))
	}
	for _, e := range c.f.after(c.seq, c.lane, keptEvents) {
		var v any = e
		if c.cells {
			v = lineOf(e, c.s.now())
		}
		if err := c.sendJSON(e.Seq, "event", v); err != nil {
			return false, err
		}
		c.seq = e.Seq
	}
	if err := c.stand(m); err != nil {
		return false, err
	}
	if m.over() {
		return true, c.send(0, "end", string(m.view.State))
	}
	return false, c.beat()
}

// stand sends how the run stands.
func (c *following) stand(m moment) error {
	v := m.view
	if c.lane != "" {
		v = only(v, c.lane)
	}
	if c.cells {
		return c.sendJSON(0, "cells", flat(v))
	}
	return c.sendJSON(0, "view", v)
}
