package power

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// daemon runs a program of the system until the test ends; ready is asked until
// it says that the program serves.
func daemon(t *testing.T, dir string, ready func() bool, name string, args ...string) {
	t.Helper()
	log := filepath.Join(dir, "log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := exec.Command(name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, out, out
	c.Env = append(os.Environ(), "SNMP_PERSISTENT_DIR="+dir, "MIBS=")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
		if t.Failed() {
			b, _ := os.ReadFile(log)
			t.Logf("%s said:\n%s", name, b)
		}
	})
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v", name, err)
		case <-limit:
			t.Fatalf("%s does not answer", name)
		case <-tick.C:
		}
	}
}

func file(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// freeUDP is a UDP port of 127.0.0.1 that was free a moment ago.
func freeUDP(t *testing.T) int {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// bmcScript is the chassis of the BMC: a machine in QEMU that has no image, so
// that its firmware waits. $1 is the folder; the BMC acknowledges at once, and
// the machine goes on after a second.
const bmcScript = `#!/bin/sh
cd "$1" || exit 1
alive() { [ -s pid ] && kill -0 "$(cat pid)" 2>/dev/null; }
case "$3 $4 $5" in
"get power "*) if alive; then echo power:1; else echo power:0; fi ;;
"set power 1") alive || { (sleep 1; exec QEMU -machine pc -accel tcg -m 16 -S -nodefaults -display none -daemonize -pidfile pid) >/dev/null 2>&1 </dev/null & } ;;
"set power 0") alive && kill -9 "$(cat pid)"; rm -f pid ;;
esac
exit 0
`

// TestIPMI drives a BMC by ipmi_sim with a machine behind it.
func TestIPMI(t *testing.T) {
	t.Parallel()
	sim, tool := targetstest.Tool(t, "ipmi_sim"), targetstest.Tool(t, "ipmitool")
	dir, port := t.TempDir(), freeUDP(t)
	script := file(t, filepath.Join(dir, "chassis"), strings.Replace(bmcScript, "QEMU", targetstest.Tool(t, "qemu-system-x86_64"), 1), 0o755)
	conf := file(t, filepath.Join(dir, "lan.conf"), fmt.Sprintf(`name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 %d
    priv_limit admin
    allowed_auths_callback md5
    allowed_auths_user md5
    allowed_auths_operator md5
    allowed_auths_admin md5
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "%s %s 0x20"
  user 2 true "lab" "s3cret" operator 10 md5
`, port, script, dir), 0o600)
	emu := file(t, filepath.Join(dir, "emu"), "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n", 0o600)
	ready := func() bool {
		return exec.Command(tool, "-I", "lanplus", "-H", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "lab", "-P", "s3cret", "-L", "OPERATOR", "-C", "3",
			"-N", "1", "-R", "1", "chassis", "power", "status").Run() == nil
	}
	daemon(t, dir, ready, sim, "-c", conf, "-f", emu, "-s", dir, "-n")
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
			pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	runs := func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			return false
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return syscall.Kill(pid, 0) == nil
	}
	a := fmt.Sprintf("127.0.0.1:%d", port)
	d := &IPMI{Address: a, Login: login(t, "lab"), Deadline: 30 * time.Second}
	conform(t, rig{driver: d, address: "127.0.0.1:", on: runs, dead: &IPMI{Address: fmt.Sprintf("127.0.0.1:%d", freeUDP(t)), Login: login(t, "lab"), Deadline: 3 * time.Second}})

	wrong := &IPMI{Address: a, Login: Login{User: "lab", PasswordFile: file(t, filepath.Join(dir, "wrong"), "wrong", 0o600)}, Deadline: 20 * time.Second}
	if err := wrong.Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "refuses user or password") {
		t.Errorf("a wrong password: %v", err)
	}
	if runs() {
		t.Error("who may not has switched on")
	}
}

// A BMC that takes datagrams and never answers ends with the deadline, and a
// cancelled context ends the wait at once.
func TestDeafDevices(t *testing.T) {
	t.Parallel()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, d := range []targets.Power{
		&IPMI{Address: c.LocalAddr().String(), Login: login(t, "lab"), Deadline: time.Second},
		&SNMP{Address: c.LocalAddr().String(), Model: "apc-rpdu", Socket: "3", Deadline: time.Second},
	} {
		begin := time.Now()
		err := d.Set(t.Context(), true)
		if err == nil || !strings.Contains(err.Error(), "no end within 1s") || time.Since(begin) > 10*time.Second {
			t.Errorf("%T after %s: %v", d, time.Since(begin), err)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, stop)
		begin = time.Now()
		if err := d.Set(ctx, true); !errors.Is(err, context.Canceled) || time.Since(begin) > 4*time.Second {
			t.Errorf("%T cancelled, after %s: %v", d, time.Since(begin), err)
		}
	}
}

// outletScript is a strip behind snmpd's "pass": $1 is the state's file, $2 the
// table that is set, $3 the one that is read, $4 on and $5 off in the latter.
const outletScript = `#!/bin/sh
state=$1 set=$2 get=$3 on=$4 off=$5; shift 5
case $1 in
-g) case $2 in
	$set.4) v=$(cat "$state") ;;
	$get.4) [ "$(cat "$state")" = 1 ] && v=$on || v=$off ;;
	*) exit 0 ;;
	esac
	printf '%s\ninteger\n%s\n' "$2" "$v" ;;
-s) [ "$2" = "$set.4" ] || { echo not-writable; exit 0; }
	echo "$4" >"$state" ;;
esac
exit 0
`

// TestSNMP drives strips by Debian's snmpd, by each version of the protocol.
func TestSNMP(t *testing.T) {
	t.Parallel()
	snmpd, get := targetstest.Tool(t, "snmpd", "/usr/sbin/snmpd"), targetstest.Tool(t, "snmpget")
	dir, port := t.TempDir(), freeUDP(t)
	script, state := file(t, filepath.Join(dir, "outlet"), outletScript, 0o755), file(t, filepath.Join(dir, "state"), "2", 0o600)
	const apc = ".1.3.6.1.4.1.318.1.1.26.9.2"
	pass := func(root, set, get string, on, off int) string {
		return fmt.Sprintf("pass %s /bin/sh %s %s %s %s %d %d\n", root, script, state, set, get, on, off)
	}
	conf := file(t, filepath.Join(dir, "snmpd.conf"), "rwcommunity s3cret 127.0.0.1\nrocommunity look 127.0.0.1\n"+
		"createUser lab SHA authphrase AES privphrase\nrwuser lab priv\n"+
		pass(apc, apc+".4.1.5", apc+".3.1.5", 2, 1), 0o600)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	ready := func() bool {
		return exec.Command(get, "-v2c", "-c", "look", "-t", "1", "-r", "0", address, ".1.3.6.1.2.1.1.1.0").Run() == nil
	}
	daemon(t, dir, ready, snmpd, "-f", "-Lo", "-C", "-c", conf, "-p", filepath.Join(dir, "snmpd.pid"), "udp:"+address)
	env := map[string]string{"KERNSWEEP_TEST_COMMUNITY": "s3cret", "KERNSWEEP_TEST_LOOK": "look", "KERNSWEEP_TEST_AUTH": "authphrase", "KERNSWEEP_TEST_PRIV": "privphrase"}
	for n, v := range env {
		os.Setenv(n, v) // names of this test alone
	}
	on := func() bool {
		b, err := os.ReadFile(state)
		return err == nil && strings.TrimSpace(string(b)) == "1"
	}
	for name, d := range map[string]*SNMP{
		"v1":    {Version: "1", Model: "apc-rpdu2", CommunityEnv: "KERNSWEEP_TEST_COMMUNITY"},
		"v2c":   {Model: "apc-rpdu2", CommunityEnv: "KERNSWEEP_TEST_COMMUNITY"},
		"v3":    {Version: "3", Model: "apc-rpdu2", User: "lab", AuthEnv: "KERNSWEEP_TEST_AUTH", PrivEnv: "KERNSWEEP_TEST_PRIV"},
		"plain": {OID: apc + ".4.1.5", On: "1", Off: "2", StateOID: apc + ".3.1.5.%s", StateOn: "2", StateOff: "1", CommunityEnv: "KERNSWEEP_TEST_COMMUNITY"},
	} {
		t.Run(name, func(t *testing.T) {
			d.Address, d.Socket = address, "04"
			dead := *d
			dead.Address, dead.Deadline = fmt.Sprintf("127.0.0.1:%d", freeUDP(t)), 3*time.Second
			conform(t, rig{driver: d, address: "127.0.0.1:", on: on, dead: &dead})
		})
	}
	for want, d := range map[string]*SNMP{
		"has no such outlet, or the community may not write": {Version: "1", Model: "apc-rpdu2", Socket: "9", CommunityEnv: "KERNSWEEP_TEST_COMMUNITY"},
		"may write":                  {Model: "apc-rpdu2", Socket: "4", CommunityEnv: "KERNSWEEP_TEST_LOOK"},
		"refuses user or passphrase": {Version: "3", Model: "apc-rpdu2", Socket: "4", User: "lab", AuthEnv: "KERNSWEEP_TEST_PRIV"},
		"a wrong community":          {Model: "apc-rpdu2", Socket: "4", CommunityEnv: "KERNSWEEP_TEST_AUTH", Deadline: time.Second},
	} {
		d.Address = address
		err := d.Set(t.Context(), true)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		t.Log(err)
	}
}
