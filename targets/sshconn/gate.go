package sshconn

import (
	"errors"
	"io"
	"time"
)

var errShut = errors.New("the command is over")

// gate passes writes on until it is shut, so that a late packet cannot touch a
// writer whose owner has gone on.
type gate struct {
	w      io.Writer
	turn   chan struct{} // holds one token: the right to write
	closed bool
	failed error
}

func newGate(w io.Writer) *gate {
	if w == nil {
		w = io.Discard
	}
	g := &gate{w: w, turn: make(chan struct{}, 1)}
	g.turn <- struct{}{}
	return g
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.turn
	defer func() { g.turn <- struct{}{} }()
	if g.closed {
		return 0, errShut
	}
	n, err := g.w.Write(p)
	if err != nil {
		g.failed = err
	}
	return n, err
}

// err is the error of the writer behind the gate, nil if it has none.
func (g *gate) err() error {
	<-g.turn
	defer func() { g.turn <- struct{}{} }()
	return g.failed
}

// shut ends writing. A writer that blocks is waited for a moment, then left.
func (g *gate) shut() {
	select {
	case <-g.turn:
		g.closed = true
		g.turn <- struct{}{}
	case <-time.After(endTime):
	}
}
