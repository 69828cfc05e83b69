package deploy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/localconn"
	"kernsweep/targets/sshconn"
	"kernsweep/workloads"
)

// scene is what a controller process and whoever comes after it share: one trial
// with this machine as target and as peer.
type scene struct {
	Agent  string      // of the target: "go", "shell"
	SSH    targets.SSH // how the target is reached; zero: as a controller would itself
	Work   string      // which workload
	Port   int         // of its server
	Dir    string      // of the attempt
	Begun  string      // the journal
	Target string      // folder of the target's agent and spools
	Peer   string      // the peer's
	Tree   string      // source tree of kernbench
	Script string      // of exec
}

func newScene(t *testing.T, s scene) *scene {
	t.Helper()
	s.Dir = t.TempDir()
	s.Begun = filepath.Join(s.Dir, "journal")
	for _, dir := range []*string{&s.Target, &s.Peer} {
		d, err := os.MkdirTemp("/dev/shm", "kernsweep-test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(d) })
		*dir = d
	}
	return &s
}

// placed is a Conn to a machine whose only place for agents is dir, so that the
// tests of one machine do not meet.
type placed struct {
	targets.Conn
	dir string
}

func (c placed) Run(ctx context.Context, cmd targets.Cmd) (targets.Exit, error) {
	if r, ok := cmd.Stdin.(*strings.Reader); ok {
		script, err := io.ReadAll(r)
		if err != nil {
			return targets.Exit{}, err
		}
		before, rest, found := strings.Cut(string(script), "for d in /dev/shm ")
		if found {
			_, rest, _ = strings.Cut(rest, "; do\n")
			script = []byte(before + "for d in " + c.dir + "; do\n" + rest)
		}
		cmd.Stdin = strings.NewReader(string(script))
	}
	return c.Conn.Run(ctx, cmd)
}

func (s *scene) dial(ctx context.Context) (targets.Conn, error) {
	if s.SSH.Host == "" {
		return placed{localconn.New(), s.Target}, nil
	}
	conn, err := sshconn.New(zap.NewNop()).Dial(ctx, s.SSH, targets.DialOptions{})
	return placed{conn, s.Target}, err
}

// sides are the two agents of one session, and what closes their links.
func (s *scene) sides(ctx context.Context, spare []Spooled, note func(string)) (target, peer *Agent, done func(), err error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	local := placed{localconn.New(), s.Peer}
	done = func() { conn.Close(); local.Close() }
	o := Options{Arch: runtime.GOARCH, Want: s.Agent, Note: note, Redial: s.dial}
	for _, b := range spare {
		o.Spare = append(o.Spare, b.File)
	}
	if target, err = Install(ctx, conn, o); err != nil {
		return nil, nil, done, err
	}
	o.Want, o.Instance, o.Redial = "go", Instance(), nil
	peer, err = Install(ctx, local, o)
	return target, peer, done, err
}

func (s *scene) env(target, peer *Agent, t, p workloads.Agent) *workloads.Env {
	n := targets.Network{Address: "127.0.0.1", Peer: "127.0.0.1"}
	return &workloads.Env{Target: workloads.Side{Conn: target.link(), Agent: t, Network: n},
		Peer: workloads.Side{Conn: peer.link(), Agent: p, Network: n},
		Dir:  s.Dir, Scale: 1, CPUs: 2, Deadline: time.Minute, Sample: time.Second}
}

// workload is the one of the scene, a few seconds long.
func (s *scene) workload() workloads.Workload {
	switch s.Work {
	case "crunch":
		return &workloads.Crunch{Work: 2000}
	case "latency":
		return &workloads.Latency{Duration: 3 * time.Second, Load: 1}
	case "kernbench":
		return &workloads.Kernbench{Source: s.Tree, InTree: true, Dir: s.Tree}
	case "iperf to the target":
		return &workloads.Iperf{Tool: "iperf3", Duration: 3 * time.Second, Bandwidth: "20M", Port: s.Port}
	case "iperf to the peer":
		return &workloads.Iperf{Tool: "iperf2", Server: "peer", Duration: 3 * time.Second, Bandwidth: "20M", Port: s.Port}
	case "stream":
		return &workloads.Iperf{Tool: "stream", Duration: 3 * time.Second, Port: s.Port}
	}
	return &workloads.Exec{Script: s.Script, Sources: map[string]string{"elapsed": "rusage:elapsed"}}
}

// controller is a kernsweep of its own process: it runs the trial of a scene,
// writes down where its spools are, and then waits to be killed.
func controller(file string) int {
	b, err := os.ReadFile(file)
	s := &scene{}
	if err == nil {
		err = json.Unmarshal(b, s)
	}
	if err == nil {
		err = s.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func (s *scene) run(ctx context.Context) error {
	target, peer, _, err := s.sides(ctx, nil, func(string) {})
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(s.Begun, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	begin := func(machine string) func(Spooled) error {
		return func(b Spooled) error {
			mu.Lock()
			defer mu.Unlock()
			_, err := fmt.Fprintf(journal, "%s|%s|%s\n", machine, b.File, b.Prefix)
			return err
		}
	}
	env := s.env(target, peer, target.Tracked(begin("target")), peer.Tracked(begin("peer")))
	env.Ended = func(how string) { fmt.Fprintf(journal, "ended|%s|\n", how) }
	err = s.workload().Run(ctx, env)
	fmt.Fprintf(journal, "over|%v|\n", err)
	return err
}

// begun reads the journal of a scene.
func (s *scene) begun() map[string][]Spooled {
	m := map[string][]Spooled{}
	f, err := os.Open(s.Begun)
	if err != nil {
		return m
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for in.Scan() {
		if f := strings.Split(in.Text(), "|"); len(f) == 3 {
			m[f[0]] = append(m[f[0]], Spooled{File: f[1], Prefix: f[2]})
		}
	}
	return m
}

// start starts the controller of a scene.
func (s *scene) start(t *testing.T) *exec.Cmd {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "scene")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "TEST_CONTROLLER="+file)
	c.Stderr = os.Stderr
	if _, err := c.StdinPipe(); err != nil { // held open: it waits for its end
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill9(c) })
	return c
}

// kill9 is what happens to controllers at night.
func kill9(c *exec.Cmd) {
	_ = c.Process.Kill() // it may be dead already
	_ = c.Wait()
}

// resume takes the scene up in this process, over agents that begin nothing.
func (s *scene) resume(t *testing.T, spare bool) (notes []string, ended string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := s.begun()
	var mu sync.Mutex
	note := func(n string) { mu.Lock(); defer mu.Unlock(); notes = append(notes, n) }
	var spared []Spooled
	if spare {
		spared = append(append(spared, b["target"]...), b["peer"]...)
	}
	target, peer, done, err := s.sides(ctx, spared, note)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	env := s.env(target, peer, target.Resuming(b["target"]), peer.Resuming(b["peer"]))
	env.Ended = func(how string) { ended = how }
	err = s.workload().Run(ctx, env)
	for _, a := range []*Agent{target, peer} {
		err = errors.Join(err, a.Remove(ctx))
	}
	return notes, ended, err
}
