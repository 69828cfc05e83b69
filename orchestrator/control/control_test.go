package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kernsweep/orchestrator/results"
	"kernsweep/targets/private"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked is a controller that remembers what it was asked.
type asked struct {
	mu   sync.Mutex
	all  []Request
	wait func(ctx context.Context) // before the answer; nil: at once
}

func (a *asked) Steer(ctx context.Context, r Request) (string, error) {
	if a.wait != nil {
		a.wait(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all = append(a.all, r); r.Lane == "none" {
		return "", errors.New("there is no such lane")
	}
	return "done: " + string(r.Action), nil
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all)
}

// held is a run that this process executes.
func held(t testing.TB, runs string) *results.Run {
	t.Helper()
	run, err := results.Create(runs, "s", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return run
}

func serve(t testing.TB, run *results.Run, to Steered) *Server {
	t.Helper()
	s, err := Serve(context.Background(), run, to)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAsk(t *testing.T) {
	runs := filepath.Join(t.TempDir(), strings.Repeat("a long way down/", 12)) // longer than a socket's path
	run, a := held(t, runs), &asked{}
	s := serve(t, run, a)
	said, err := Ask(t.Context(), run, Request{Action: SkipKernel, Lane: "box", Kernel: "bfs", By: "ada", Why: "it hangs"})
	if err != nil || said != "done: skip-kernel" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := Ask(t.Context(), run, Request{Action: Pause, Lane: "none", By: "ada"}); err == nil || err.Error() != "there is no such lane" {
		t.Error(err)
	}
	if a.all[0].Why != "it hangs" || a.count() != 2 {
		t.Errorf("%+v", a.all)
	}
	for _, r := range []Request{{Action: Pause, By: "ada"}, {Action: "dance", Lane: "b", By: "ada"}, {Action: Pause, Lane: "b"},
		{Action: Pause, Lane: "b", Kernel: "k", By: "a"}, {Action: Pause, Lane: "b", By: "a\x1b[2J"}, {Action: Pause, Lane: "b", By: "a", Why: strings.Repeat("x", maxText+1)}} {
		if _, err := Ask(t.Context(), run, r); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
	// Another run of the same folder has a socket of its own.
	other := held(t, runs)
	if _, err := Ask(t.Context(), other, Request{Action: Stop, By: "ada"}); err == nil || !strings.Contains(err.Error(), "takes no requests") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(runs, folder)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if names, err := results.List(runs); err != nil || len(names) != 2 {
		t.Errorf("runs: %v, %v", names, err)
	}
}

// Whoever asks too early, too late or a run that nobody executes is told so.
func TestAskNobody(t *testing.T) {
	run, err := results.Create(t.TempDir(), "s", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(t.Context(), run, Request{Action: Stop, By: "ada"}); err == nil || !strings.Contains(err.Error(), "nothing to steer") {
		t.Error(err)
	}
	run = held(t, t.TempDir())
	// A dead controller left its socket; a new one takes its place.
	s := serve(t, run, &asked{})
	s.listen.SetUnlinkOnClose(false)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Ask(t.Context(), run, Request{Action: Stop, By: "ada"}); err == nil || !strings.Contains(err.Error(), "takes no requests") {
		t.Error(err)
	}
	s = serve(t, run, &asked{})
	if _, err := Ask(t.Context(), run, Request{Action: Stop, By: "ada"}); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A controller that quits at once gives no answer, which is one.
func TestAskWhoQuits(t *testing.T) {
	run := held(t, t.TempDir())
	at, err := place(run)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := private.Folder(at)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	l, err := net.Listen("unix", private.Socket(dir, socket(run)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, a := range []Action{StopNow, Stop} {
		wg.Go(func() {
			if c, err := l.Accept(); err == nil {
				_, _ = bufio.NewReader(c).ReadString('\n')
				_ = c.Close() // the process is gone
			}
		})
		said, err := Ask(t.Context(), run, Request{Action: a, By: "ada"})
		if (err == nil) != (a == StopNow) || a == StopNow && !strings.Contains(said, "has quit") {
			t.Errorf("%s: %q, %v", a, said, err)
		}
	}
}

// Garbage, too much, too slow and gone: each is answered or dropped, and the next
// request is served.
func TestHostileClients(t *testing.T) {
	run, a := held(t, t.TempDir()), &asked{}
	s := serve(t, run, a)
	dialed := func() net.Conn {
		c, err := dial(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for name, c := range map[string]struct{ send, want string }{
		"garbage":         {"\x00\xff\x1b[2J\n", "invalid character"},
		"an empty line":   {"\n", "unexpected end"},
		"another type":    {"[1,2]\n", "cannot unmarshal"},
		"nothing of it":   {"{}\n", "action"},
		"no such action":  {`{"action":"rm","lane":"x","by":"y"}` + "\n", "action"},
		"controls":        {`{"action":"pause","lane":"x","by":"y\u001b[2J"}` + "\n", "control characters"},
		"1 MB":            {strings.Repeat("x", 1<<20), "at most"},
		"1 MB in a field": {`{"action":"pause","lane":"` + strings.Repeat("x", 1<<20) + `"}` + "\n", "at most"},
		"deep":            {strings.Repeat("[", 60000) + "\n", "exceeded max depth"},
	} {
		conn := dialed()
		_, _ = io.WriteString(conn, c.send) // it may be dropped in the middle
		line, err := bufio.NewReader(conn).ReadString('\n')
		if !strings.Contains(line, `{"error":`) || !strings.Contains(line, c.want) {
			if name != "1 MB" && name != "1 MB in a field" || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: %q, %v", name, line, err)
			}
		}
	}
	for range 2 * maxAtOnce { // who says nothing, or goes away, holds nobody up
		c := dialed()
		_, _ = io.WriteString(c, `{"action":`)
		_ = c.Close()
	}
	slow := dialed()
	_, _ = io.WriteString(slow, `{"act`)
	if _, err := Ask(t.Context(), run, Request{Action: Stop, By: "ada"}); err != nil || a.count() != 1 {
		t.Errorf("%v; %d requests", err, a.count())
	}
	begin := time.Now()
	if err := s.Close(); err != nil || time.Since(begin) > askTime/2 {
		t.Errorf("closed with a slow client after %s: %v", time.Since(begin), err)
	}
}

// Nobody but the user gets at the socket.
func TestAnotherUser(t *testing.T) {
	runs := t.TempDir()
	if err := os.Chmod(runs, 0o777); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(runs, folder)
	if err := os.Mkdir(at, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at, 0o777); err != nil {
		t.Fatal(err)
	}
	run := held(t, runs)
	s := serve(t, run, &asked{})
	defer s.Close()
	if st, err := os.Stat(at); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if os.Geteuid() == 0 { // else there is nobody to become
		for _, dir := range []string{filepath.Dir(runs), filepath.Dir(filepath.Dir(runs))} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command("sh", "-c", "echo can; cat "+filepath.Join(at, socket(run)))
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := c.CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "can") || !strings.Contains(string(out), "Permission denied") {
			t.Errorf("another user: %s, %v", out, err)
		}
	}
	// A folder that somebody put in its place is not used.
	for name, prepare := range map[string]func(at string) error{
		"a link": func(at string) error { return os.Symlink(t.TempDir(), at) },
		"a file": func(at string) error { return os.WriteFile(at, nil, 0o600) },
		"another user's": func(at string) error {
			if os.Geteuid() != 0 {
				return os.Symlink(t.TempDir(), at)
			}
			return errors.Join(os.Mkdir(at, 0o777), os.Chown(at, 65534, 65534))
		},
	} {
		runs := t.TempDir()
		if err := prepare(filepath.Join(runs, folder)); err != nil {
			t.Fatal(err)
		}
		if s, err := Serve(t.Context(), held(t, runs), &asked{}); err == nil {
			s.Close()
			t.Errorf("%s is used", name)
		} else if !strings.Contains(err.Error(), "cannot be steered by other processes") {
			t.Error(err)
		}
	}
}

// Many at once all get their answer.
func TestCrowd(t *testing.T) {
	run, a := held(t, t.TempDir()), &asked{}
	s := serve(t, run, a)
	defer s.Close()
	var wg sync.WaitGroup
	for i := range 3 * maxAtOnce {
		wg.Go(func() {
			if _, err := Ask(t.Context(), run, Request{Action: Pause, Lane: fmt.Sprint("l", i), By: "ada"}); err != nil {
				t.Error(err)
			}
		})
	}
	if wg.Wait(); a.count() != 3*maxAtOnce {
		t.Errorf("%d requests", a.count())
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"action":"pause","lane":"box","by":"ada"}`))
	f.Add([]byte("\x00\n"))
	a := &asked{}
	s := &Server{to: a}
	f.Fuzz(func(t *testing.T, line []byte) {
		here, there := net.Pipe()
		defer here.Close()
		done := make(chan struct{})
		go func() { defer close(done); defer there.Close(); s.answer(t.Context(), there) }()
		go func() { _, _ = here.Write(append(line, '\n')) }() // ends with the pipe
		_, _ = io.Copy(io.Discard, here)
		<-done
		for _, r := range a.all {
			if err := r.Check(); err != nil {
				t.Errorf("%+v was passed on: %v", r, err)
			}
		}
		a.all = nil
	})
}
