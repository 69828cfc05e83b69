package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// maxHeard is how much of a console is searched for a word.
const maxHeard = 64 << 10

// listen opens the target's console, or the ear at one that is open already.
// said waits until a word has come.
func (r *rehearsal) listen(ctx context.Context) (stop func(), said func(ctx context.Context, word string) (line string, err error), err error) {
	if tap, err := r.t.Tap(); err == nil {
		return tap.Close, func(ctx context.Context, word string) (string, error) { return await(ctx, word, tap.Next) }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.t.Timeout.WithDefaults().Exec)
	defer cancel()
	c, err := r.t.Console.Open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("the console does not open: %w", err)
	}
	heard, done := make(chan []byte), make(chan struct{})
	go func() {
		defer close(done)
		defer close(heard)
		for {
			buf := make([]byte, 4096)
			n, err := c.Read(buf)
			if n > 0 {
				if r.o.Console != nil {
					_, _ = r.o.Console.Write(buf[:n]) // for people to look at
				}
				heard <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	stop = func() {
		_ = c.Close() // ends the read
		for range heard {
		}
		<-done
	}
	next := func(ctx context.Context) ([]byte, error) {
		select {
		case b, ok := <-heard:
			if !ok {
				return nil, fmt.Errorf("the console closed: %w", io.EOF)
			}
			return b, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return stop, func(ctx context.Context, word string) (string, error) { return await(ctx, word, next) }, nil
}

// await reads until word was said, and returns its line.
func await(ctx context.Context, word string, next func(context.Context) ([]byte, error)) (string, error) {
	var heard string
	for {
		b, err := next(ctx)
		if err != nil {
			if last := strings.TrimSpace(heard); last != "" {
				return "", fmt.Errorf("%w; heard instead: %.100q", err, last[max(0, len(last)-100):])
			}
			return "", fmt.Errorf("%w; nothing was heard", err)
		}
		heard += string(b)
		if i := strings.Index(heard, word); i >= 0 {
			line, _, _ := strings.Cut(heard[strings.LastIndexAny(heard[:i], "\r\n")+1:], "\n")
			return strings.TrimSpace(line), nil
		}
		heard = heard[max(0, len(heard)-maxHeard):]
	}
}
