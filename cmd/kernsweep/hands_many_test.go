package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kernsweep/targets/targetstest"
)

// labAt writes a configuration whose targets t00, t01, … have the given ssh blocks.
func labAt(t testing.TB, blocks ...string) string {
	t.Helper()
	var b strings.Builder
	for i, s := range blocks {
		fmt.Fprintf(&b, "target \"t%02d\" {\n  arch = \"amd64\"\n  %s\n  boot \"none\" {}\n}\n", i, s)
	}
	b.WriteString("kernel \"k\" {}\n")
	file := filepath.Join(t.TempDir(), "lab.hcl")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// syncBuffer is a buffer that is read while it is written to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	on func(all string) // called after each write
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.b.Write(p)
	if s.on != nil {
		s.on(s.b.String())
	}
	return n, err
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// typed runs one command line as a person would.
func typed(t testing.TB, ctx context.Context, file string, in io.Reader, args ...string) (status int, out, errs string) {
	t.Helper()
	env := func(name string) (string, bool) {
		if name == "KERNSWEEP_LEASES" {
			return filepath.Join(filepath.Dir(file), "leases"), true
		}
		return os.LookupEnv(name)
	}
	var o, e syncBuffer
	status = execute(ctx, append([]string{"-f", file, "--runs", filepath.Join(filepath.Dir(file), "runs")}, args...), in, &o, &e, env)
	return status, o.String(), e.String()
}

// Sixty targets answer; one is dead, one hangs, one shows a wrong host key, one
// accepts connections and says nothing. Each is told apart, and none keeps the
// others waiting.
func TestExecOnManyTargets(t *testing.T) {
	sshd := targetstest.SSHD(t, "MaxStartups 200")
	other := targetstest.SSHD(t)
	var blocks []string
	for _, p := range doors(t, sshd, 61) {
		blocks = append(blocks, sshBlock(t, sshd, p))
	}
	silent := targetstest.NewFake(t, targetstest.FakeOptions{Fault: targetstest.SilentAccept})
	blocks = append(blocks, sshBlock(t, sshd, 1), sshBlock(t, sshd, other.SSH.Port), sshBlock(t, sshd, silent.SSH.Port))
	file := labAt(t, blocks...)
	leak := goleak.IgnoreCurrent()
	began := time.Now()
	status, out, errs := typed(t, t.Context(), file, strings.NewReader(""), "exec", "all", "--timeout", "8s", "--",
		"sh", "-c", `case $SSH_CONNECTION in *) mkdir "$0" 2>/dev/null && exec sleep 600; echo ok; esac`, filepath.Join(t.TempDir(), "first"))
	if took := time.Since(began); took > 60*time.Second {
		t.Errorf("it took %s", took)
	}
	if status != exitInfra {
		t.Errorf("status %d", status)
	}
	if n := strings.Count(out, "(exit 0, "); n != 60 || strings.Count(out, "\nok\n") != 60 {
		t.Errorf("%d answered:\n%s", n, out)
	}
	for _, want := range []string{"target t61: connect: ", "refused", "target t62: handshake: ", "host_keys pins", "64 targets: 60 exit 0, 3 not reached (t61, t62, t63), 1 ended by --timeout (t"} {
		if !strings.Contains(errs, want) {
			t.Errorf("standard error lacks %q:\n%s", want, errs)
		}
	}
	if err := goleak.Find(leak, goleak.IgnoreAnyFunction("kernsweep/targets/targetstest.(*Fake).serve")); err != nil {
		t.Error(err)
	}
}

// A flood is not kept in memory, is cut with a word about it, and comes whole by
// --stream and for a single target.
func TestExecFloods(t *testing.T) {
	sshd := targetstest.SSHD(t)
	ports := doors(t, sshd, 2)
	file := labAt(t, sshBlock(t, sshd, ports[0]), sshBlock(t, sshd, ports[1]))
	const size = 64 << 20
	flood := []string{"sh", "-c", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' 'x'; head -c 100000 /dev/zero | tr '\\0' 'e' >&2", size)}
	peak, stop := memoryPeak()
	status, out, errs := typed(t, t.Context(), file, nil, append([]string{"exec", "all", "--"}, flood...)...)
	if stop(); status != 0 || !strings.Contains(out, fmt.Sprintf("%d bytes were not kept", size-spoolMost)) {
		t.Errorf("status %d, %d bytes of output, end %q, %q", status, len(out), out[max(0, len(out)-200):], errs[:min(200, len(errs))])
	}
	if len(errs) < 200_000 {
		t.Errorf("%d bytes of standard error", len(errs))
	}
	if got := peak(); got > 300<<20 { // twice the output that is kept, in this test's buffers, and what grows them
		t.Errorf("%d MB in memory", got>>20)
	}
	for _, args := range [][]string{{"exec", "t00", "--"}, {"exec", "--stream", "t00", "--"}} {
		var n counting
		env := func(string) (string, bool) { return "", false }
		status := execute(t.Context(), append(append([]string{"-f", file}, args...), flood...), nil, &n, io.Discard, env)
		if status != 0 || n.x != size {
			t.Errorf("%s: status %d, %d bytes", args, status, n.x)
		}
	}
}

// counting counts the x that are written.
type counting struct{ x int }

func (c *counting) Write(p []byte) (int, error) {
	c.x += bytes.Count(p, []byte("x"))
	return len(p), nil
}

// memoryPeak watches the heap until stop.
func memoryPeak() (peak func() uint64, stop func()) {
	var most uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() uint64 { return most }, func() { close(done); <-ended }
}

// What targets say cannot drive a terminal, nor pass for another target's words.
func TestLabelledIsInert(t *testing.T) {
	var b bytes.Buffer
	l := &labelled{name: "r1", to: &b, inert: true}
	for _, piece := range []string{"a\x1b[2J\tb", "\r\nr2: I am", " r2\u202e\n", "\xff\x00 end"} {
		if n, err := l.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "r1: a·[2J\tb\nr1: r2: I am r2·\nr1: \ufffd· end\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	s := &show{out: &b, inert: true}
	o := newSpool()
	fmt.Fprint(o, "== r2 (exit 0, 1 s)\n\x1b]0;x\x07\nlast")
	if err := s.copy(o); err != nil {
		t.Fatal(err)
	}
	if want := " == r2 (exit 0, 1 s)\n·]0;x·\nlast\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	raw := &show{out: &b}
	o = newSpool()
	long := strings.Repeat("y", 3*lineMost) + "== \n"
	fmt.Fprint(o, long)
	if err := raw.copy(o); err != nil || b.String() != long {
		t.Errorf("a long line changed: %d bytes of %d, %v", b.Len(), len(long), err)
	}
}

// Ctrl-C shows what has ended, ends what has not, also on the targets, and leaves
// JSON whole.
func TestExecInterrupted(t *testing.T) {
	sshd := targetstest.SSHD(t)
	ports := doors(t, sshd, 3)
	dir := t.TempDir()
	file := labAt(t, sshBlock(t, sshd, ports[0]), sshBlock(t, sshd, ports[1]), sshBlock(t, sshd, ports[2]))
	for _, how := range []string{"--parallel=3", "--fold", "--in-order", "--stream", "--json"} {
		first := filepath.Join(dir, how)
		if err := syscall.Mkfifo(first+".pids", 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		sleeping := make(chan string, 2) // process ids
		go func() {
			defer close(sleeping)
			defer cancel()
			fifo, err := os.OpenFile(first+".pids", os.O_RDWR, 0)
			if err != nil {
				return
			}
			defer fifo.Close()
			for lines := bufio.NewScanner(fifo); len(sleeping) < cap(sleeping) && lines.Scan(); {
				sleeping <- lines.Text()
			}
			// Its connection is closed once we have all that the third one said.
			for tick := time.NewTicker(20 * time.Millisecond); connections(sshd) > 2; {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		}()
		status, out, errs := typed(t, ctx, file, strings.NewReader(""), "exec", how, "all", "--", "sh", "-c",
			`if mkdir "$0" 2>/dev/null; then echo done; else echo $$ > "$0.pids"; exec sleep 600; fi`, first)
		cancel()
		if status != exitInterrupted || !strings.Contains(out, "done") || !strings.Contains(errs, "interrupted") {
			t.Errorf("%s: status %d\n%s\n%s", how, status, out, errs)
		}
		if how == "--json" {
			var list []execObject
			if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 3 {
				t.Errorf("%v:\n%s", err, out)
			}
		}
		for pid := range sleeping {
			if b, err := os.ReadFile("/proc/" + pid + "/cmdline"); !errors.Is(err, os.ErrNotExist) && strings.Contains(string(b), "sleep") {
				t.Errorf("%s: process %s goes on: %q", how, pid, b)
			}
		}
	}
}

// connections counts the log-ins of a server, by what its processes call themselves.
func connections(d *targetstest.Daemon) int {
	n := 0
	for _, pid := range targetstest.Descendants(d.Pid) {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(b), "sshd: ") {
			n++
		}
	}
	return n
}

// One input reaches every target whole, also one that begins late, and a command
// that does not read it ends all the same.
func TestExecSharesItsInput(t *testing.T) {
	sshd := targetstest.SSHD(t)
	ports := doors(t, sshd, 3)
	file := labAt(t, sshBlock(t, sshd, ports[0]), sshBlock(t, sshd, ports[1]), sshBlock(t, sshd, ports[2]))
	text := strings.Repeat("0123456789abcde\n", 20_000)
	status, out, errs := typed(t, t.Context(), file, strings.NewReader(text), "exec", "--parallel", "1", "--fold", "all", "--", "cksum")
	if status != 0 || !strings.Contains(out, "== t00, t01, t02 (exit 0, 3 targets") || !strings.Contains(out, " 320000\n") {
		t.Errorf("status %d: %s %s", status, out, errs)
	}
	r, w := io.Pipe() // stays open
	defer w.Close()
	if status, out, errs := typed(t, t.Context(), file, r, "exec", "--fold", "all", "--", "echo", "unread"); status != 0 || !strings.Contains(out, "unread") {
		t.Errorf("status %d: %s %s", status, out, errs)
	}
}

// A spool gives back what was written, from memory or from its file.
func TestSpool(t *testing.T) {
	for _, n := range []int{0, 1, spoolMemory, spoolMemory + 1, 300_000} {
		s := &spool{most: 200_000}
		want := bytes.Repeat([]byte("0123456789"), n/10+1)[:n]
		for rest := want; len(rest) > 0; {
			k := min(len(rest), 7001)
			if m, err := s.Write(rest[:k]); m != k || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[k:]
		}
		got, err := io.ReadAll(s.reader())
		if err != nil || !bytes.Equal(got, want[:min(n, 200_000)]) || s.left != int64(max(0, n-200_000)) {
			t.Errorf("%d bytes: %d came back, %d left, %v", n, len(got), s.left, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
