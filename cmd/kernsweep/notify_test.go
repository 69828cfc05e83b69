package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kernsweep/orchestrator/notify"
)

// inbox is a web server that fails its first request, and hangs where told.
type inbox struct {
	*httptest.Server
	mu   sync.Mutex
	hits int
	got  []notify.Event
	hang chan struct{}
}

func newInbox(t *testing.T) *inbox {
	i := &inbox{hang: make(chan struct{})}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-i.hang
			return
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.hits++; i.hits == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		var e notify.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		i.got = append(i.got, e)
	}))
	t.Cleanup(func() { close(i.hang); i.Close() })
	return i
}

func (i *inbox) kinds() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var k []string
	for _, e := range i.got {
		k = append(k, e.Kind)
	}
	return k
}

// blocks puts notify blocks into the sweep of a night.
func (n *night) blocks(t *testing.T, text string) {
	n.change(t, "sweep \"night\" {\n", "sweep \"night\" {\n"+text)
}

// A night with a target that never comes back is told of, by web and by command;
// exit status and results are those of a night without anybody to tell.
func TestRunTells(t *testing.T) {
	n, p, i := newNight(t, build(t), 2, 1, 1), newPlace(t), newInbox(t)
	file := filepath.Join(t.TempDir(), "told")
	n.blocks(t, fmt.Sprintf(`
  notify "webhook" { url = "%s/in" }
  notify "command" "log" {
    argv = ["sh", "-c", "echo \"$KERNSWEEP_EVENT $KERNSWEEP_TARGET $KERNSWEEP_EXIT_STATUS\" >>%s"]
  }
  notify "command" "gone" { argv = ["/nonexistent/pager"] }
`, i.URL, file))
	n.change(t, "  known_good = kernel.good\n", "  known_good = kernel.good\n  quarantine = 1\n")
	n.lab.Machines[1].Gone()
	c := n.start(t, p, "run", "night")
	if status := c.wait(t); status != exitInfra {
		t.Errorf("status %d:\n%s", status, c.err.String())
	}
	if got := i.kinds(); !slices.Equal(got, []string{notify.Quarantine, notify.Finish}) {
		t.Errorf("told by web: %v\n%s", got, c.err.String())
	}
	told, _ := os.ReadFile(file)
	if want := "quarantine sim2 \nfinish  3\n"; string(told) != want {
		t.Errorf("told by command: %q, want %q", told, want)
	}
	for _, want := range []string{`notify "command" "gone" will not be able to send`, "is not sent yet, and tried again"} {
		if strings.Count(c.err.String(), want) != 1 {
			t.Errorf("it does not say once %q:\n%s", want, c.err.String())
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if e := i.got[len(i.got)-1]; e.ExitStatus == nil || *e.ExitStatus != exitInfra || !strings.HasSuffix(e.Report, "report.txt") ||
		!strings.Contains(e.Next, p.run(t).Name()) || !strings.Contains(e.Text, "sim2: withdrawn: ") {
		t.Errorf("%+v", e)
	}
}

// A receiver that hangs does not hold up Ctrl-C.
func TestInterruptedRunTells(t *testing.T) {
	n, p, i := newNight(t, build(t), 1, 1, 1), newPlace(t), newInbox(t)
	i.hits = 1 // nothing fails
	n.longer(t)
	n.blocks(t, fmt.Sprintf("  notify \"webhook\" { url = \"%s/in\" }\n  notify \"webhook\" \"slow\" { url = \"%s/hang\" }\n", i.URL, i.URL))
	c := n.start(t, p, "run", "night")
	c.until(t, "the workload does not begin", func() bool {
		return strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000")
	})
	asked := c.signal(t, syscall.SIGINT)
	if status := c.wait(t); status != exitInterrupted || time.Since(asked) > orderlyLimit {
		t.Errorf("status %d after %s:\n%s", status, time.Since(asked), c.err.String())
	}
	if got := i.kinds(); !slices.Equal(got, []string{notify.Interrupted}) {
		t.Errorf("told: %v", got)
	}
}

func TestNotifyTest(t *testing.T) {
	n, p, i := newNight(t, build(t), 1, 1, 1), newPlace(t), newInbox(t)
	i.hits = 1
	if c := n.start(t, p, "notify", "test", "night"); c.wait(t) != exitUsage {
		t.Errorf("without notify blocks: %s", c.err.String())
	}
	n.blocks(t, fmt.Sprintf("  notify \"webhook\" { url = \"%s/in\" }\n  notify \"command\" \"gone\" { argv = [\"/nonexistent/pager\"] }\n", i.URL))
	c := n.start(t, p, "notify", "test", "night")
	if status := c.wait(t); status != exitFailed || !strings.Contains(c.out.String(), "notify \"webhook\": sent") ||
		!strings.Contains(c.out.String(), "notify \"command\" \"gone\": NOT sent") {
		t.Errorf("status %d: %s%s", status, c.out.String(), c.err.String())
	}
	if got := i.kinds(); !slices.Equal(got, []string{notify.Test}) {
		t.Errorf("told: %v", got)
	}
}
