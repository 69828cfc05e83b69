package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// maxTap bounds what a Tap holds unread; the oldest half goes first. It is in
// the recording all the same.
const maxTap = 1 << 20

// typeWait is how long a console may take for what is typed.
const typeWait = 10 * time.Second

// Tap is a target's console in the hands of a boot method: it reads what the
// machine says and types. While it is open nothing on the console is judged,
// for what a boot loader prints is not the kernel's word. One goroutine uses it.
type Tap struct {
	w *watch

	mu   sync.Mutex
	buf  []byte
	news chan struct{} // has one element when buf changed or the console ended
}

// Tap hands the console, which Boot has opened, to a boot method. The method
// ends it with Go or Close before it returns.
func (t *Target) Tap() (*Tap, error) {
	if t.watch == nil {
		return nil, fmt.Errorf("target %s has no console block, and this needs one", t.Name)
	}
	w := t.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tap != nil {
		return nil, errors.New("the console is in use already")
	}
	if w.ended != nil {
		return nil, fmt.Errorf("the console closed: %w", w.ended)
	}
	w.tap = &Tap{w: w, news: make(chan struct{}, 1)}
	return w.tap, nil
}

// put takes the bytes that came; none says that the console has ended.
func (p *Tap) put(b []byte) {
	p.mu.Lock()
	p.buf = append(p.buf, b...)
	if len(p.buf) > maxTap {
		p.buf = append(p.buf[:0], p.buf[len(p.buf)-maxTap/2:]...)
	}
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// Next returns the bytes that came since the last call, as soon as there are
// any. Its error is ctx's cause, or says that the console has closed.
func (p *Tap) Next(ctx context.Context) ([]byte, error) {
	for {
		p.mu.Lock()
		b := p.buf
		p.buf = nil
		p.mu.Unlock()
		if len(b) > 0 {
			return b, nil
		}
		if end := p.w.state().Ended; end != nil {
			return nil, fmt.Errorf("the console closed: %w", end)
		}
		select {
		case <-p.news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Write types bytes. A console that does not take them within 10 s gives an error.
func (p *Tap) Write(b []byte) (int, error) { return p.w.write(b) }

// Break sends a serial break, where the console can.
func (p *Tap) Break(ctx context.Context) error {
	b, ok := p.w.rwc.(Breaker)
	if !ok {
		return errors.New("this console cannot send a break")
	}
	return b.Break(ctx)
}

// Go types the last bytes, those that start the kernel, and ends the tap: what
// the console says from then on is judged, and what it said before is not.
func (p *Tap) Go(b []byte) error {
	p.Close()
	_, err := p.w.write(b)
	return err
}

// write types on the console. One that knows no deadlines and takes nothing is
// closed, for nothing else ends the write.
func (w *watch) write(b []byte) (int, error) {
	stuck := fmt.Errorf("the console took no input for %s", typeWait)
	if d, ok := w.rwc.(interface{ SetWriteDeadline(time.Time) error }); ok && d.SetWriteDeadline(time.Now().Add(typeWait)) == nil {
		n, err := w.rwc.Write(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = stuck
		}
		return n, err
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	own := bytes.Clone(b) // the caller has b again after an error
	go func() {
		n, err := w.rwc.Write(own)
		done <- result{n, err}
	}()
	t := time.NewTimer(typeWait)
	defer t.Stop()
	select {
	case r := <-done:
		return r.n, r.err
	case <-t.C:
		_ = w.rwc.Close() // the write's error is the one that matters
		return 0, stuck
	}
}

// Close ends the tap. What comes from now on is judged as a start of its own.
// It may be called again.
func (p *Tap) Close() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.w.tap != p {
		return
	}
	p.w.tap, p.w.isReady = nil, false
	p.w.anew(inLoader)
}
