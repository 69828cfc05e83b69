package tftp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"kernsweep/targets"
)

// Times of a transfer. Loaders that write to flash while they load answer late.
const (
	firstRetry = time.Second
	lastRetry  = 4 * time.Second
	giveUp     = 20 * time.Second // without an answer; three times a timeout that the client set, if that is longer
	mostStray  = 16               // answers to packets of strangers
)

var (
	errReleased   = errors.New("no longer served")
	errSuperseded = errors.New("the client asked anew")
)

// transfer is one file on its way to one client.
type transfer struct {
	name   string
	client netip.AddrPort
	conn   *net.UDPConn
	src    *source
	terms  terms
	retry  time.Duration // the first wait
	end    context.CancelCauseFunc

	mu   sync.Mutex
	fact targets.Transfer
	from time.Time
	last time.Time // when the client was heard last
	over bool
}

// record is the transfer as it stands.
func (t *transfer) record() targets.Transfer {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.fact
	if !t.over {
		f.Took = time.Since(t.from)
	}
	return f
}

// stalled says that the client of a transfer that had begun has fallen silent.
func (t *transfer) stalled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fact.Sent > 0 && time.Since(t.last) >= t.retry
}

// run sends the file and says how that ended in the record.
func (t *transfer) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = t.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err := t.send(ctx)
	var remote *clientError
	if err != nil && !errors.As(err, &remote) && !errors.Is(err, errSuperseded) {
		_, _ = t.conn.WriteToUDPAddrPort(errorPacket(errOther, err.Error()), t.client) // a courtesy
	}
	_ = t.conn.Close() // nothing is buffered
	_ = t.src.close()  // only read from
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over, t.fact.Took, t.fact.Done = true, time.Since(t.from), err == nil
	switch {
	case remote != nil && t.fact.Sent == 0 && t.terms.oack != nil:
		t.fact.Asked = true
	case err != nil:
		t.fact.Failed = err.Error()
	}
}

// clientError is what a client said when it ended a transfer.
type clientError struct{ text string }

func (e *clientError) Error() string { return "the client says: " + e.text }

// send is the protocol. Blocks are numbered from 1 without end; on the wire
// their lowest 16 bits stand, so that 65535 is followed by 0. The answer to the
// options counts as block 0.
func (t *transfer) send(ctx context.Context) error {
	last := t.src.size/int64(t.terms.block) + 1
	acked, next := int64(-1), int64(0)
	if t.terms.oack == nil {
		acked, next = 0, 1
	}
	sent := next - 1 // the highest that was sent at all
	patience := max(giveUp, 3*t.terms.timeout)
	wait := t.retry
	silent := time.Now()
	buf := make([]byte, 4+max(t.terms.block, plainBlock)) // also for what clients say
	for {
		until := min(last, acked+int64(t.terms.window))
		if acked < 0 {
			until = 0
		}
		for ; next <= until; next++ {
			if next <= sent {
				t.resent()
			}
			if err := t.put(buf, next); err != nil {
				return err
			}
			sent = max(sent, next)
		}
		now, err := t.await(ctx, buf, acked, sent, wait)
		// The client may be gone once it has the last block, and its word on that
		// may be lost (RFC 1350 section 6).
		whole := acked == last-1 && sent == last
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if whole && time.Since(silent) >= patience {
				t.progress(last)
				return nil
			}
			if time.Since(silent) >= patience {
				return fmt.Errorf("no answer for %s", time.Since(silent).Round(time.Second))
			}
			if t.terms.timeout == 0 {
				wait = min(2*wait, max(lastRetry, t.retry))
			}
			next = acked + 1
			continue
		case whole && errors.Is(err, errSuperseded):
			t.progress(last)
			return nil
		case err != nil:
			return err
		}
		acked, next, wait, silent = now, now+1, t.retry, time.Now()
		t.progress(acked)
		if acked == last {
			return nil
		}
	}
}

// put sends block n; 0 is the answer to the options.
func (t *transfer) put(buf []byte, n int64) error {
	b := t.terms.oack
	if n > 0 {
		off := (n - 1) * int64(t.terms.block)
		b = buf[:4+min(t.src.size-off, int64(t.terms.block))]
		binary.BigEndian.PutUint16(b, opData)
		binary.BigEndian.PutUint16(b[2:], uint16(n))
		if err := t.src.read(b[4:], off); err != nil {
			return err
		}
	}
	_, err := t.conn.WriteToUDPAddrPort(b, t.client)
	return err
}

// await waits for an acknowledgement of a block in (acked, sent] and returns its
// number. An older one is a duplicate, and answering those would double every
// packet to the end of the file (RFC 1123 section 4.2.3.1); it is ignored.
func (t *transfer) await(ctx context.Context, buf []byte, acked, sent int64, wait time.Duration) (int64, error) {
	if err := t.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	for stray := 0; ; {
		if ctx.Err() != nil { // its end may have come before the deadline was set
			return 0, context.Cause(ctx)
		}
		n, from, err := t.conn.ReadFromUDPAddrPort(buf)
		switch {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case err != nil:
			return 0, err
		}
		if !sameClient(from, t.client) {
			if stray++; stray <= mostStray && n >= 2 && buf[1] != opError {
				_, _ = t.conn.WriteToUDPAddrPort(errorPacket(errUnknown, "unknown transfer ID"), from)
			}
			continue
		}
		if n < 4 {
			continue
		}
		switch binary.BigEndian.Uint16(buf) {
		case opError:
			code, text := readError(buf[:n])
			if code == errOptions {
				text = "options refused: " + text
			}
			return 0, &clientError{text}
		case opAck:
			ahead := binary.BigEndian.Uint16(buf[2:]) - uint16(acked)
			if ahead > 0 && int64(ahead) <= sent-acked {
				return acked + int64(ahead), nil
			}
		}
	}
}

func sameClient(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && a.Addr().Unmap() == b.Addr().Unmap()
}

func (t *transfer) resent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fact.Resent++
}

func (t *transfer) progress(acked int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	t.fact.Sent = min(t.fact.Size, acked*int64(t.terms.block))
}
