package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"kernsweep/targets/files"
)

const meterEvery = 200 * time.Millisecond

// meter shows on a terminal how far a transfer is, in a line that other words
// push down. Elsewhere it only counts.
type meter struct {
	bytes atomic.Int64
	total int64 // 0: not known

	mu    sync.Mutex
	w     io.Writer
	width func() int // nil: no terminal
	shown bool
}

func (a *app) newMeter(total int64) *meter {
	m := &meter{w: rawOutput(a.err), total: total}
	if width, ok := a.terminal(); ok {
		m.width = width
	}
	return m
}

// add counts bytes.
func (m *meter) add(n int64) { m.bytes.Add(n) }

// Write puts words above the line.
func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	return said{m.w}.Write(p)
}

func (m *meter) clear() {
	if m.shown {
		fmt.Fprint(m.w, "\r\x1b[K")
		m.shown = false
	}
}

func (m *meter) draw() {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := files.Size(m.bytes.Load())
	if m.total > 0 {
		text += " of at most " + files.Size(m.total)
	}
	m.clear()
	fmt.Fprint(m.w, text[:min(len(text), max(m.width()-1, 0))])
	m.shown = true
}

// show draws until stop.
func (m *meter) show() (stop func()) {
	if m.width == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(meterEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				m.draw()
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		m.mu.Lock()
		defer m.mu.Unlock()
		m.clear()
	}
}
