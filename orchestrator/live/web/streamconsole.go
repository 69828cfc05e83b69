package web

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"kernsweep/orchestrator/live"
)

// piece is what a console said, or that its recording ended.
type piece struct {
	data []byte
	err  error
}

// streamConsole sends what the console of a lane's target says while a run or a
// command records it: "who" (one line), "out" (text, inert), and "idle" while
// nobody records. Nothing can be typed. It ends with the client, or with the run.
func (s *Server) streamConsole(w http.ResponseWriter, r *http.Request) {
	run, ok := s.findRun(w, r)
	if !ok {
		return
	}
	f, m := s.view(run)
	lane := r.PathValue("lane")
	if _, ok := laneOf(m.view, lane); !ok || !consoleName(lane) {
		s.noLane(w, r, m.view, lane)
		return
	}
	st, done, ok := s.openStream(w, r)
	if !ok {
		return
	}
	defer done()
	tick := time.NewTicker(s.limits.retry)
	defer tick.Stop()
	for idle := false; ; {
		if f.look(lookAgain); f.moment().over() { // what is recorded now is another run's
			_ = st.send(0, "end", "The run is over.") // the last word
			return
		}
		who, c, err := s.src.Console(lane)
		if err == nil {
			idle = false
			err = st.showConsole(r.Context(), who, c)
		} else if !idle {
			idle, err = true, st.send(0, "idle", "Nobody records this console now. It is recorded while the target boots and runs trials, where it has a console.")
		} else {
			err = st.beat()
		}
		if err != nil {
			return // the client has gone
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// consoleName refuses names that would lead out of the folder of the consoles. No
// target of a configuration has one.
func consoleName(lane string) bool {
	return !strings.ContainsAny(lane, "/\x00") && !strings.HasPrefix(lane, ".")
}

// showConsole sends one recording until it ends. The error is the client's.
func (st *stream) showConsole(ctx context.Context, who string, c io.ReadCloser) error {
	ctx, stop := context.WithCancel(ctx)
	pieces := make(chan piece)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		readPieces(ctx, c, pieces)
	}()
	defer func() {
		stop()
		_ = c.Close() // ends a read that waits; nothing was sent
		<-ended
	}()
	if err := st.send(0, "who", live.Safe(who)); err != nil {
		return err
	}
	beat := time.NewTicker(st.s.limits.beat)
	defer beat.Stop()
	var text consoleText
	for {
		select {
		case p := <-pieces:
			if out := text.add(p.data); out != "" {
				if err := st.send(0, "out", out); err != nil {
					return err
				}
			}
			if p.err != nil {
				return nil // the recording ended, or we were too slow for it
			}
		case <-beat.C:
			if err := st.beat(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readPieces reads until the end. It reads nothing ahead: who offers the console
// drops whoever is too slow.
func readPieces(ctx context.Context, c io.Reader, to chan<- piece) {
	for {
		b := make([]byte, 8<<10)
		n, err := c.Read(b)
		select {
		case to <- piece{b[:n], err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}
