package orchestrator

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets/console"
	"kernsweep/workloads"
)

// talker is a console that says which opening this is.
type talker struct {
	mu    sync.Mutex
	opens int
}

func (c *talker) Open(context.Context) (io.ReadWriteCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opens++
	r, w := io.Pipe()
	said := fmt.Sprintf("opening %d\r\n", c.opens)
	go func() { _, _ = io.WriteString(w, said) }() // ends with the reader
	return pipeLine{r}, nil
}

type pipeLine struct{ *io.PipeReader }

func (pipeLine) Write(p []byte) (int, error) { return len(p), nil }

// The console of a running sweep can be watched, and is recorded boot by boot.
func TestConsoleOfARunIsShared(t *testing.T) {
	var runs string
	var who, said []string
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(context.Context, *workloads.Env) error {
		name, c, err := console.Watch(runs, "box")
		if err != nil {
			return err
		}
		defer c.Close()
		line := make([]byte, len("opening 1\r\n"))
		if _, err := io.ReadFull(c, line); err != nil {
			return err
		}
		who, said = append(who, name), append(said, string(line))
		return nil
	}}})
	f.lab.Targets[0].Console = &talker{}
	p := planOf(t, f)
	runs = t.TempDir()
	run, err := results.Create(runs, p.Sweep, results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.executeIn(t, t.Context(), run, p, nil); err != nil {
		t.Fatal(err)
	}
	if len(who) != 4 {
		t.Fatalf("watched %d times: %q", len(who), said)
	}
	for i := range who {
		if want := fmt.Sprintf("run %s, boot %d of kernel ", filepath.Base(run.Dir()), i+1); !strings.HasPrefix(who[i], want) || !strings.Contains(who[i], "since ") {
			t.Errorf("who: %q", who[i])
		}
		if want := fmt.Sprintf("opening %d\r\n", i+1); said[i] != want {
			t.Errorf("boot %d said %q", i+1, said[i])
		}
		for name, want := range map[string]string{"console.log": said[i], "console.timing": "", "console.start": "20"} {
			b, err := os.ReadFile(filepath.Join(run.BootDir("box", i+1), name))
			if err != nil || !strings.HasPrefix(string(b), want) {
				t.Errorf("%s of boot %d: %q %v", name, i+1, b, err)
			}
		}
	}
	if _, _, err := console.Watch(runs, "box"); err == nil {
		t.Error("it is shared after the run")
	}
}
