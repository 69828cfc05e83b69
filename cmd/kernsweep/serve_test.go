package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/live/web"
)

// served is kernsweep serve at work for a night.
type served struct {
	t    *testing.T
	url  string
	cmd  *exec.Cmd
	http *http.Client
}

func (n *night) serve(t *testing.T, p place, args ...string) *served {
	t.Helper()
	s := &served{t: t, http: &http.Client{Timeout: nightLimit, Transport: &http.Transport{}}}
	s.cmd = exec.Command(n.program, append([]string{"-f", n.file, "--runs", p.runs, "serve", "--listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Env = append(os.Environ(), "KERNSWEEP_LEASES="+p.leases)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait() // killed
		}
	})
	if s.url, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.url = strings.TrimSpace(s.url)
	return s
}

// end ends it as a service manager does, with streams open, and says how long it took.
func (s *served) end() time.Duration {
	s.t.Helper()
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("serve ends with %v", err)
	}
	return time.Since(began)
}

func (s *served) get(path string) (int, string) {
	s.t.Helper()
	r, err := s.http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// asJSON is what an address of the interface answers.
func asJSON[T any](s *served, path string) T {
	s.t.Helper()
	code, text := s.get(path)
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil || code != http.StatusOK {
		s.t.Fatalf("%s: %d %v\n%s", path, code, err, text)
	}
	return v
}

// stream gives the data of a stream's events of one name, until it ends.
func (s *served) stream(path, name string, each func(data string) (more bool)) {
	s.t.Helper()
	r, err := s.http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	event := ""
	for in := bufio.NewScanner(r.Body); in.Scan(); {
		switch key, value, _ := strings.Cut(in.Text(), ": "); {
		case key == "event":
			event = value
		case key == "data" && event == name:
			if !each(value) {
				return
			}
		}
	}
}

// TestServeANight follows a real run from its beginning to its end on the page:
// events, a console, a pause that is asked for there, and the report.
func TestServeANight(t *testing.T) {
	program := build(t)
	n := newNight(t, program, 2, 3, 1)
	b, err := os.ReadFile(n.file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), `  boot "command" {`, `  console "command" {
    command = ["sh", "-c", "while echo 'tick <b> \\033[31mred'; do sleep 0.05; done"]
  }
  boot "command" {`, 1) // of sim1
	if err := os.WriteFile(n.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	s := n.serve(t, p, "--allow-control")
	for _, target := range asJSON[web.Targets](s, "api/targets").Targets {
		if target.State != "free" || !target.Known {
			t.Errorf("before the run: %+v", target)
		}
	}
	c := n.start(t, p, "run", "night")
	name := ""
	if left := untilNone(t.Context(), nightLimit, func() []string {
		runs := asJSON[web.Runs](s, "api/runs").Runs
		if len(runs) == 1 && runs[0].State == "running" {
			name = runs[0].Run
			return nil
		}
		select {
		case <-c.done:
			t.Fatalf("there is no run to look at:\n%s", c.err.String())
		default:
		}
		return []string{"no run is live"}
	}); left != nil {
		t.Fatalf("%v\n%s", left, c.err.String())
	}
	run := "runs/" + name
	s.stream(run+"/lanes/sim1/console/stream", "out", func(data string) bool {
		if !strings.Contains("tick <b> red", strings.TrimSpace(data)) && !strings.HasPrefix(data, "tick <b> red") {
			t.Errorf("the console says %q", data)
		}
		return false
	})
	if code, said := s.steer(name, "pause"); code != http.StatusOK {
		t.Errorf("pause: %d %s", code, said)
	}
	s.stream(run+"/events", "view", func(data string) bool {
		var v live.View
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			t.Fatal(err)
		}
		for _, l := range v.Lanes {
			if l.Name == "sim2" && l.State == live.Paused {
				return false
			}
		}
		return true
	})
	if code, said := s.steer(name, "go-on"); code != http.StatusOK {
		t.Errorf("go on: %d %s", code, said)
	}
	if _, metrics := s.get("metrics"); !strings.Contains(metrics, `kernsweep_leases{state="held"}`) || !strings.Contains(metrics, `kernsweep_lane_state{state="running",sweep="night",target="sim1"}`) {
		t.Errorf("metrics of a live run:\n%s", metrics)
	}
	ended := ""
	s.stream(run+"/events", "end", func(data string) bool { ended = data; return false })
	if status := c.wait(t); status != 0 || ended != "ended" {
		t.Errorf("the run ends with %d, the stream with %q:\n%s", status, ended, c.err.String())
	}
	doc := asJSON[web.RunDocument](s, "api/"+run)
	if doc.View.Done != doc.View.Trials || doc.View.Outcomes["ok"] != doc.View.Trials || doc.Status.Exit == nil || *doc.Status.Exit != 0 || !strings.Contains(doc.Status.Next, "report") {
		t.Errorf("at the end: %+v", doc)
	}
	journal, err := os.ReadFile(filepath.Join(p.runs, name, "journal.jsonl"))
	if err != nil || !strings.Contains(string(journal), "kernsweep serve") {
		t.Errorf("who paused is not in the journal: %v", err)
	}
	if code, page := s.get(run + "/report"); code != http.StatusOK || !strings.Contains(page, "sweep night") {
		t.Errorf("the report: %d", code)
	}
	if took := s.end(); took > 2*time.Second {
		t.Errorf("it took %s to end", took)
	}
}

// steer asks something of the lane sim2.
func (s *served) steer(run, action string) (code int, said string) {
	s.t.Helper()
	r, err := s.http.Post(s.url+"api/runs/"+run+"/control", "application/json", strings.NewReader(`{"action":"`+action+`","lane":"sim2"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}
