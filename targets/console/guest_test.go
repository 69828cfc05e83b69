package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// A real telnet server, QEMU's, in front of a real kernel: a break is its magic
// SysRq key.
func TestBreakIsSysRq(t *testing.T) {
	t.Parallel() // it waits
	lab, err := filepath.Abs("../../lab/img")
	if err != nil {
		t.Fatal(err)
	}
	kernel := filepath.Join(lab, "vmlinuz-amd64-6.1")
	initrd := filepath.Join(lab, "base-amd64.cpio")
	for _, f := range []string{kernel, initrd} {
		if _, err := os.Stat(f); err != nil {
			t.Fatalf("%v: scripts/lab makes it", err)
		}
	}
	port := targetstest.FreePort(t)
	daemon(t, port, targetstest.Tool(t, "qemu-system-x86_64"), "-accel", "tcg", "-cpu", "max,-cx16", "-m", "320", "-nodefaults", "-no-user-config",
		"-display", "none", "-kernel", kernel, "-append", "console=ttyS0 sysrq_always_enabled=1", "-initrd", initrd,
		"-serial", fmt.Sprintf("telnet:127.0.0.1:%d,server=on,wait=on", port))
	rw := openTelnet(t, &Telnet{Address: fmt.Sprintf("127.0.0.1:%d", port)})
	limit := time.AfterFunc(3*time.Minute, func() { rw.Close() })
	defer limit.Stop()
	awaitText(t, rw, "kernsweep-lab: ready") // init has opened the line
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if err := rw.(targets.Breaker).Break(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := rw.Write([]byte("h")); err != nil {
		t.Fatal(err)
	}
	awaitText(t, rw, "sysrq: HELP")
}

func awaitText(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var said []byte
	for buf := make([]byte, 4096); !bytes.Contains(said, []byte(text)); {
		n, err := r.Read(buf)
		said = append(said, buf[:n]...)
		if err != nil {
			t.Fatalf("waited for %q: %v; got\n%s", text, err, said)
		}
	}
}
