package targetstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Addresses of the two ends of a Network.
const (
	NearAddress = "192.0.2.1" // of the test
	FarAddress  = "192.0.2.2" // of the daemons
)

const apartEnv = "KERNSWEEP_TEST_APART"

// Apart runs the rest of the calling test in a network namespace of its own: it
// starts the test's program there once more, for this test alone, and reports
// false where the caller must return. The test must not be a subtest, and runs
// beside others of its kind.
func Apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartEnv) != "" {
		return true
	}
	t.Parallel() // only the other process does anything
	flags := "-nm"
	if os.Geteuid() != 0 {
		flags = "-rnm"
	}
	limit := 5 * time.Minute
	if end, ok := t.Deadline(); ok {
		limit = time.Until(end) - 5*time.Second
	}
	cmd := exec.Command(Tool(t, "unshare"), flags, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=true", "-test.timeout="+limit.String())
	cmd.Env = append(os.Environ(), apartEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Errorf("in its own network namespace: %v\n%s", err, out.String())
	} else if testing.Verbose() {
		t.Log(out.String())
	}
	return false
}

// Network is a wire between the test's network namespace and another one, which
// can be cut without either end being told: both stay plugged into a bridge.
type Network struct {
	pid int // of the process that keeps the far namespace
}

// NewNetwork lays the wire. The test must run Apart.
func NewNetwork(t *testing.T) *Network {
	t.Helper()
	Tool(t, "ip", "/usr/sbin/ip", "/sbin/ip")
	keeper := exec.Command(Tool(t, "unshare"), "-n", "sh", "-c", "echo ready; exec sleep 3600")
	keeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := keeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = keeper.Process.Kill()
		_ = keeper.Wait()
	})
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	n := &Network{keeper.Process.Pid}
	sh(t, fmt.Sprintf(`ip link set lo up; ip link add br0 type bridge; ip link set br0 up
ip link add near type veth peer name nearport; ip link add far netns %d type veth peer name farport
for p in nearport farport; do ip link set $p master br0; ip link set $p up; done
ip addr add %s/24 dev near; ip link set near up`, n.pid, NearAddress))
	sh(t, strings.Join(n.prefix(t), " ")+` sh -c "ip link set lo up; ip addr add `+FarAddress+`/24 dev far; ip link set far up"`)
	return n
}

// prefix makes a command run in the far namespace.
func (n *Network) prefix(t testing.TB) []string {
	return []string{Tool(t, "nsenter"), "-t", strconv.Itoa(n.pid), "-n"}
}

// SSHD is a server at FarAddress, as SSHD starts it.
func (n *Network) SSHD(t testing.TB, lines ...string) *Daemon {
	t.Helper()
	d := sshdBehind(t, n.prefix(t), append([]string{"ListenAddress " + FarAddress}, lines...)...)
	d.SSH.Host, d.SSH.Port = FarAddress, 22
	write(t, d.SSH.KnownHosts, FarAddress+" "+d.HostKey+"\n")
	return d
}

// Cut lets every packet vanish, without a word to either end.
func (n *Network) Cut(t testing.TB) {
	t.Helper()
	sh(t, "ip link set farport nomaster")
}

// Mend undoes Cut.
func (n *Network) Mend(t testing.TB) {
	t.Helper()
	sh(t, "ip link set farport master br0")
}

// sh runs a script that must succeed.
func sh(t testing.TB, script string) {
	t.Helper()
	if out, err := exec.Command("/bin/sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, script)
	}
}
