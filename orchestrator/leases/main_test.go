package leases

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary runs itself as the other controllers.
func TestMain(m *testing.M) {
	switch os.Getenv("LEASES_CHILD") {
	case "":
		goleak.VerifyTestMain(m)
	case "mutex":
		exit(childMutex())
	case "full":
		exit(childFull())
	default:
		exit(childTakes())
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// fast times: long enough for a loaded machine, short enough for a test.
func fastTimes() times {
	return times{renew: 200 * time.Millisecond, ttl: 1500 * time.Millisecond, watch: 600 * time.Millisecond, poll: 25 * time.Millisecond,
		queue: 2 * time.Second, mutex: 500 * time.Millisecond, giveUp: time.Minute, release: time.Minute}
}

func fastFolder(dir string) (*Folder, error) {
	f, err := Open(dir)
	if err != nil {
		return nil, err
	}
	f.times = fastTimes()
	if os.Getenv("LEASES_NOFLOCK") != "" {
		f.flock = func(int, int) error { return syscall.ENOLCK }
	}
	return f, nil
}

// childTakes obeys lines on standard input, and answers each by one line:
// "take KEY…", "wait KEY…", "check", "release".
func childTakes() error {
	syscall.Umask(0o077)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f, err := fastFolder(os.Getenv("LEASES_DIR"))
	if err != nil {
		return err
	}
	k := f.NewKeeper(Holder{Owner: os.Getenv("LEASES_OWNER"), Run: "run-of-" + os.Getenv("LEASES_OWNER"), RunDir: os.Getenv("LEASES_RUN")}, nil)
	var l *Lease
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "take", "wait":
			var wants []Want
			for _, w := range words[1:] {
				wants = append(wants, Want{Key: w, What: "target box"})
			}
			l, err = k.Take(ctx, wants, Options{Wait: words[0] == "wait"})
			switch {
			case err != nil:
				fmt.Println("no:", strings.ReplaceAll(err.Error(), "\n", " "))
			case len(l.Takeovers()) > 0:
				fmt.Println("won by takeover:", l.Takeovers()[0])
			default:
				fmt.Println("won")
			}
		case "check":
			if err := l.Check(ctx, ""); err != nil {
				fmt.Println("no:", err)
			} else {
				fmt.Println("mine")
			}
		case "release":
			if l != nil {
				err = l.Release()
				l = nil
			}
			fmt.Println("released", err)
		}
	}
	return in.Err()
}

// child is another process.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Scanner
	in  interface{ Write([]byte) (int, error) }
}

func start(t *testing.T, dir, owner string, set ...func(*exec.Cmd)) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEASES_CHILD=takes", "LEASES_DIR="+dir, "LEASES_OWNER="+owner, "LEASES_RUN="+filepath.Join(dir, "..", "run-of-"+owner))
	cmd.Stderr = os.Stderr
	for _, f := range set {
		f(cmd)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, out: bufio.NewScanner(out), in: in}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if got := c.hear(); got != "ready" {
		t.Fatalf("the other process says %q", got)
	}
	return c
}

func (c *child) say(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) hear() string {
	if c.out.Scan() {
		return c.out.Text()
	}
	return "(it ended)"
}

func (c *child) ask(line string) string {
	c.t.Helper()
	c.say(line)
	return c.hear()
}

func (c *child) want(line, answer string) {
	c.t.Helper()
	if got := c.ask(line); !strings.HasPrefix(got, answer) {
		c.t.Fatalf("%s: %q, want %q", line, got, answer)
	}
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// kill ends the process, and waits until it is gone.
func (c *child) kill() {
	c.t.Helper()
	c.signal(syscall.SIGKILL)
	_ = c.cmd.Wait()
}

// folder is one for the test, in a place that every user reaches.
func folder(t *testing.T) string {
	t.Helper()
	top, err := os.MkdirTemp("", "leases")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	if err := os.Chmod(top, 0o777); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(top, "l")
}

// rounds of a test that is repeated: more in a long night.
func rounds(few, many int) int {
	if os.Getenv("KERNSWEEP_LONG") == "1" {
		return many
	}
	return few
}
