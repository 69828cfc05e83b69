package targets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunProgram(t *testing.T) {
	if err := RunProgram(t.Context(), []string{"sh", "-c", `test "$KERNSWEEP_X" = 7`}, []string{"KERNSWEEP_X=7"}); err != nil {
		t.Error(err)
	}
	err := RunProgram(t.Context(), []string{"sh", "-c", "seq 1 9999; echo plug is dead >&2; exit 3"}, nil)
	if err == nil || !strings.HasSuffix(err.Error(), "plug is dead") || !strings.Contains(err.Error(), "exit status 3") || len(err.Error()) > 1200 {
		t.Error(err)
	}
	if err := RunProgram(t.Context(), nil, nil); err == nil {
		t.Error("no program was run")
	}
	if err := RunProgram(t.Context(), []string{"/nonexistent/prog"}, nil); err == nil {
		t.Error("a missing program was run")
	}
}

// A deadline ends the program's whole group, also a child that ignores TERM.
func TestRunProgramDeadline(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f, err := os.Open(fifo) // until the child has opened it
		if err == nil {
			defer f.Close()
			_, _ = f.Read(make([]byte, 1)) // EOF when the child is gone
		}
	}()
	err := RunProgram(ctx, []string{"sh", "-c", `(trap "" TERM; exec sleep 100 >"$1") & wait`, "sh", fifo}, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a child outlives the deadline")
	}
}
