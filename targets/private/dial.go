package private

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const dialRetry = 10 * time.Millisecond

// Dial connects to a Unix socket by its path. One whose server has not yet
// accepted those before is tried again until ctx ends: the kernel answers EAGAIN
// for a full queue (connect(2)), where TCP would wait.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "unix", path)
		if !errors.Is(err, unix.EAGAIN) {
			return c, err
		}
		t := time.NewTimer(dialRetry)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, err
		}
	}
}
