package boot

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// observed keeps what a method returned; targets.Boot goes on from there.
type observed struct {
	targets.Booter
	err error
}

func (o *observed) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	o.err = o.Booter.Boot(ctx, t, k)
	return o.err
}

func (o *observed) Traits() targets.BootTraits { return targets.TraitsOf(o.Booter) }

// scripted boots k by a method on a scripted loader, in a bubble of its own time.
// It returns the method's error and Boot's.
func scripted(t *testing.T, b *targetstest.BootLoader, method targets.Booter, k targets.Kernel) (said, judged error) {
	return scriptedWith(t, b, b, method, k)
}

// scriptedWith is scripted with a supply of its own.
func scriptedWith(t *testing.T, b *targetstest.BootLoader, power targets.Power, method targets.Booter, k targets.Kernel) (said, judged error) {
	synctest.Test(t, func(t *testing.T) {
		o := &observed{Booter: method}
		tg := &targets.Target{Name: "wl500", Console: b, Power: power, Boot: o, Timeout: targets.Timeouts{Silence: 20 * time.Second}}
		tg.Dial = func(context.Context, targets.SSH, targets.DialOptions) (targets.Conn, error) {
			return nil, &targets.LinkError{Phase: "connect", Err: errors.New("nobody there")}
		}
		tg.Serve = serveNothing
		_, rec, err := targets.Boot(t.Context(), tg, k, targets.BootLog{})
		said, judged = o.err, err
		t.Logf("method: %v\nboot: %v\nnotes: %q\ntyped: %q", said, judged, rec.Notes, b.Typed())
		tg.StopConsole()
		b.Close()
		if c, ok := method.(targets.Closer); ok {
			c.Close()
		}
	})
	return said, judged
}

// serveNothing is a TFTP server that nobody asks.
func serveNothing(context.Context, string, map[string]string) (*targets.Serving, error) {
	return &targets.Serving{Addr: netip.MustParseAddrPort("127.0.0.1:69"), Release: func() {},
		Transfers: func() []targets.Transfer { return nil }}, nil
}

// image is a kernel file that begins with magic at an offset.
func image(t *testing.T, offset int, magic string, size int) targets.Kernel {
	t.Helper()
	b := bytes.Repeat([]byte{0x11}, size)
	copy(b[offset:], magic)
	path := filepath.Join(t.TempDir(), "kernel")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return targets.Kernel{Name: "bfs", Release: "2.6.30.5*", Image: targets.Image{Kernel: path, Cmdline: "console=ttyS0,115200"}}
}

const (
	flashKernel = "[    0.000000] Linux version 2.4.20 (flash@lab) #1\r\n"
	panics      = "[    0.000000] Linux version 2.6.30.5 (lab) #7\r\n[    1.234567] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(31,2)\r\n"
)

func stageOf(t *testing.T, err error) string {
	t.Helper()
	var be *targets.BootError
	if errors.As(err, &be) {
		return be.Stage
	}
	return ""
}

func has(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("%q is not in: %v", p, err)
		}
	}
}
