package notify

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Commands as people write them.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		script string
		want   string
		most   time.Duration
	}{
		"reads its input":    {script: "cat >" + dir + "/json; printf %s \"$KERNSWEEP_CAUSE\" >" + dir + "/cause"},
		"reads nothing":      {script: "exit 0"},
		"fails":              {script: "echo no route >&2; exit 1", want: "exit status 1; it said: no route"},
		"hangs":              {script: "sleep 1000", want: "not over within 300ms", most: 5 * time.Second},
		"ignores TERM":       {script: "trap '' TERM HUP INT; echo $$ >" + dir + "/pid; while :; do sleep 1000; done", want: "not over within 300ms", most: 8 * time.Second},
		"writes without end": {script: "yes", want: "not over within 300ms", most: 8 * time.Second},
		"leaves a daemon":    {script: "sleep 3 & exit 0", most: 8 * time.Second},
		"is killed":          {script: "kill -9 $$", want: "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := Command{Argv: []string{"sh", "-c", c.script}, Timeout: 10 * time.Second}
			if strings.Contains(c.want, "300ms") {
				cmd.Timeout = 300 * time.Millisecond
			}
			e := sample()
			e.Text = strings.Repeat("x", 100<<10) // more than a pipe holds
			begin := time.Now()
			err := cmd.Send(t.Context(), e)
			if took := time.Since(begin); c.most > 0 && took > c.most {
				t.Errorf("it took %s", took)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	var got Event
	b, err := os.ReadFile(filepath.Join(dir, "json"))
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if cause, _ := os.ReadFile(filepath.Join(dir, "cause")); err != nil || got.Target != sample().Target || string(cause) != sample().Cause {
		t.Errorf("it got %+v, cause %q: %v", got.Target, cause, err)
	}
	var pid int
	if b, err := os.ReadFile(filepath.Join(dir, "pid")); err != nil {
		t.Error(err)
	} else if _, err := fmt.Sscan(string(b), &pid); err != nil || syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d is still there (%v)", pid, err)
	}
	if err := (&Command{Argv: []string{"no-such-program"}}).Ready(); err == nil {
		t.Error("a program that is missing is not noticed")
	}
}
