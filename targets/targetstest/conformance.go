package targetstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kernsweep/targets"
)

// caseTimeout bounds one case of the suite.
const caseTimeout = time.Minute

// RunConn checks what targets.Conn promises. open is called once per case and
// returns a Conn to this very machine, so that files can be looked at directly;
// the suite closes it. After each case no goroutine may be left.
func RunConn(t *testing.T, open func(t *testing.T) targets.Conn) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, context.Context, targets.Conn)
	}{
		{"how commands end", endings},
		{"words arrive byte for byte", words},
		{"standard input", standardInput},
		{"both outputs at once", bothOutputs},
		{"one line of 5 MiB", longLine},
		{"a writer that fails ends the command", writerFails},
		{"the context ends the command", contextEnds},
		{"a child left behind does not hold the command", childLeft},
		{"many commands at once", manyCommands},
		{"files", files},
		{"large files", largeFiles},
		{"files that cannot be", fileErrors},
		{"a closed connection", closedConn},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			ctx, cancel := context.WithTimeout(context.Background(), caseTimeout)
			defer cancel()
			conn := open(t)
			c.run(t, ctx, conn)
			if err := conn.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := goleak.Find(before); err != nil {
				t.Error(err)
			}
		})
	}
}

// Output runs argv, which must exit with 0, and returns its standard output.
func Output(t testing.TB, ctx context.Context, c targets.Conn, argv ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	exit, err := c.Run(ctx, targets.Cmd{Argv: argv, Stdout: &out, Stderr: &errs})
	if err != nil || !exit.OK() {
		t.Fatalf("%q: %v, %v\n%s", argv, exit, err, errs.String())
	}
	return out.String()
}

func endings(t *testing.T, ctx context.Context, c targets.Conn) {
	for _, e := range []struct {
		argv []string
		want targets.Exit
	}{
		{[]string{"true"}, targets.Exit{}},
		{[]string{"sh", "-c", "exit 7"}, targets.Exit{Code: 7}},
		{[]string{"sh", "-c", "exit 255"}, targets.Exit{Code: 255}},
		{[]string{"no-such-program-anywhere"}, targets.Exit{Code: 127}},
		{[]string{"/"}, targets.Exit{Code: 126}},
		{[]string{"sh", "-c", "kill -9 $$"}, targets.Exit{Signal: "KILL"}},
		{[]string{"sh", "-c", "kill -TERM $$"}, targets.Exit{Signal: "TERM"}},
	} {
		got, err := c.Run(ctx, targets.Cmd{Argv: e.argv})
		if err != nil || got != e.want {
			t.Errorf("%q: %+v, %v; want %+v", e.argv, got, err, e.want)
		}
	}
	if _, err := c.Run(ctx, targets.Cmd{}); err == nil {
		t.Error("an empty command was run")
	}
	if _, err := c.Run(ctx, targets.Cmd{Argv: []string{"echo", "a\x00b"}}); err == nil {
		t.Error("a NUL byte was accepted")
	}
}

// Words are arguments that shells like to change.
func Words() []string {
	return []string{
		"plain", "", "two words", "it's", `"quoted"`, `back\slash`, `\`, `\\`, `\'`, `\n`, "new\nline", "\n", "ends\n\n", "tab\t",
		"!", "!!", "a!b", `\!`, "$HOME", "${x}", "$(id)", "`id`", "*", "?[a]", "~", "#no", "a;b", "a&&b", "a|b", ">x", "{a,b}",
		"%s%n%d", "%", "^a^b", "-n", "--", "ä€😀", "\xff\xfe\x80", "\x01\x7f\x1b[0m", "\r", "'''", "a=b", "1", "\\0101", strings.Repeat("x", 5000),
		"end\\",
	}
}

func words(t *testing.T, ctx context.Context, c targets.Conn) {
	check := func(want []string) {
		t.Helper()
		got := Output(t, ctx, c, append([]string{"printf", `%s\000`}, want...)...)
		if got != strings.Join(want, "\x00")+"\x00" {
			t.Errorf("sent %q\n got %q", want, strings.Split(got, "\x00"))
		}
	}
	check(Words())
	// Alone, since one word that needs care changes how all are sent.
	for _, w := range []string{"plain $(id) `id` \"q\" %s ?*", "ends\n\n", `\`} {
		check([]string{w})
	}
	if got := Output(t, ctx, c, "sh", "-c", "a='it'\\''s'\nb=\\!\necho \"$a$b $1\"", "sh", "x!"); got != "it's! x!\n" {
		t.Errorf("script: %q", got)
	}
}

func standardInput(t *testing.T, ctx context.Context, c targets.Conn) {
	want := strings.Repeat("line\x00\xff\n", 40_000)
	var out bytes.Buffer
	exit, err := c.Run(ctx, targets.Cmd{Argv: []string{"cat"}, Stdin: strings.NewReader(want), Stdout: &out})
	if err != nil || !exit.OK() || out.String() != want {
		t.Errorf("cat: %v, %v, %d of %d bytes", exit, err, out.Len(), len(want))
	}
	if got := Output(t, ctx, c, "cat"); got != "" {
		t.Errorf("no standard input gave %q", got)
	}
	exit, err = c.Run(ctx, targets.Cmd{Argv: []string{"true"}, Stdin: strings.NewReader(want)})
	if err != nil || !exit.OK() {
		t.Errorf("input that nobody reads: %v, %v", exit, err)
	}
	broken := errors.New("disk gone")
	_, err = c.Run(ctx, targets.Cmd{Argv: []string{"sleep", "50"}, Stdin: failing{broken}})
	if !errors.Is(err, broken) {
		t.Errorf("input that fails: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// counting counts bytes and may fail after some.
type counting struct {
	mu    sync.Mutex
	n     int64
	limit int64
	err   error
}

func (w *counting) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n += int64(len(p))
	if w.limit > 0 && w.n > w.limit {
		return 0, w.err
	}
	return len(p), nil
}

func bothOutputs(t *testing.T, ctx context.Context, c targets.Conn) {
	const size = 10 << 20
	var out, errs counting
	exit, err := c.Run(ctx, targets.Cmd{Stdout: &out, Stderr: &errs, Argv: []string{"sh", "-c",
		fmt.Sprintf("head -c %d /dev/zero & head -c %d /dev/zero >&2; wait", size, size)}})
	if err != nil || !exit.OK() || out.n != size || errs.n != size {
		t.Errorf("%v, %v: %d and %d bytes; want %d", exit, err, out.n, errs.n, size)
	}
}

func longLine(t *testing.T, ctx context.Context, c targets.Conn) {
	const size = 5 << 20
	var out counting
	exit, err := c.Run(ctx, targets.Cmd{Stdout: &out, Argv: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}})
	if err != nil || !exit.OK() || out.n != size {
		t.Errorf("%v, %v: %d bytes", exit, err, out.n)
	}
}

func writerFails(t *testing.T, ctx context.Context, c targets.Conn) {
	full := errors.New("truncated at 1 MiB")
	_, err := c.Run(ctx, targets.Cmd{Argv: []string{"cat", "/dev/zero"}, Stdout: &counting{limit: 1 << 20, err: full}})
	if !errors.Is(err, full) {
		t.Errorf("endless output: %v", err)
	}
}

func contextEnds(t *testing.T, ctx context.Context, c targets.Conn) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		awaitFile(ctx, pidFile)
		cancel()
	}()
	_, err := c.Run(short, targets.Cmd{Argv: []string{"sh", "-c", `echo $$ > "$0.new"; mv "$0.new" "$0"; sleep 100; :`, pidFile}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if !awaitGone(ctx, "/proc/"+strings.TrimSpace(string(pid))+"/exe") {
		t.Errorf("process %s lives on", pid)
	}
	if got := Output(t, ctx, c, "echo", "still here"); got != "still here\n" {
		t.Errorf("after a cancelled command: %q", got)
	}
}

func childLeft(t *testing.T, ctx context.Context, c targets.Conn) {
	start := time.Now()
	var out bytes.Buffer
	exit, err := c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "sleep 30 & echo $!; exit 3"}, Stdout: &out})
	if err != nil || exit.Code != 3 {
		t.Errorf("%v, %v", exit, err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	if _, err := c.Run(ctx, targets.Cmd{Argv: []string{"kill", strings.TrimSpace(out.String())}}); err != nil {
		t.Error(err)
	}
}

func manyCommands(t *testing.T, ctx context.Context, c targets.Conn) {
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			want := fmt.Sprintf("%d\n", i)
			var out bytes.Buffer
			exit, err := c.Run(ctx, targets.Cmd{Argv: []string{"echo", fmt.Sprint(i)}, Stdout: &out})
			if err != nil || !exit.OK() || out.String() != want {
				t.Errorf("command %d: %v, %v, %q", i, exit, err, out.String())
			}
		})
	}
	wg.Wait()
}

func closedConn(t *testing.T, ctx context.Context, c targets.Conn) {
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	var link *targets.LinkError
	if _, err := c.Run(ctx, targets.Cmd{Argv: []string{"true"}}); !errors.As(err, &link) {
		t.Errorf("a command after Close: %v", err)
	}
	if err := c.Put(ctx, filepath.Join(t.TempDir(), "x"), 0o600, strings.NewReader("x")); !errors.As(err, &link) {
		t.Errorf("a file after Close: %v", err)
	}
}

// awaitFile waits until path exists.
func awaitFile(ctx context.Context, path string) bool {
	return poll(ctx, func() bool { _, err := os.Stat(path); return err == nil })
}

// awaitGone waits until path exists no more.
func awaitGone(ctx context.Context, path string) bool {
	return poll(ctx, func() bool { _, err := os.Readlink(path); return errors.Is(err, fs.ErrNotExist) })
}

func poll(ctx context.Context, ok func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
