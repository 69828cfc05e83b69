package boot

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
)

const envText = "altbootcmd=run flashboot\nbootcmd=run flashboot\nbootcount=3\nbootdelay=1\nbootlimit=5\nflashboot=bootm 0x9f050000\n"

// newEnv is a stored environment and the configuration of the tools for it.
func newEnv(t *testing.T, text string) (config, stored string) {
	t.Helper()
	dir := t.TempDir()
	stored, config = filepath.Join(dir, "env"), filepath.Join(dir, "fw_env.config")
	source := filepath.Join(dir, "text")
	for p, s := range map[string]string{source: text, config: stored + " 0x0 0x2000\n"} {
		if err := os.WriteFile(p, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(targetstest.Tool(t, "mkenvimage"), "-s", "0x2000", "-o", stored, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	targetstest.Tool(t, "fw_setenv", "/usr/sbin/fw_setenv")
	return config, stored
}

func printenv(t *testing.T, config string) string {
	t.Helper()
	out, err := exec.Command(targetstest.Tool(t, "fw_printenv", "/usr/sbin/fw_printenv"), "-c", config).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// A start through a real environment: set, verified, and put back by the next good
// boot, or by the next start after one that failed.
func TestUBootEnv(t *testing.T) {
	onDaemon(t, func(t *testing.T, tg *targets.Target) {
		config, _ := newEnv(t, envText)
		conn, err := tg.Dial(t.Context(), tg.SSH, targets.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		tg.Held, tg.Serve = conn, serveNothing
		u := &UBootEnv{Netload: Netload{TFTP: "10.0.0.9"}, Config: config, Command: "true", Set: map[string]string{
			"bootargs": "@ARGS@", "bootcmd": "setenv serverip @SERVER@; tftpboot 0x80800000 @KERNEL@; bootm"}}
		if err := u.Check(); err != nil {
			t.Fatal(err)
		}
		k := image(t, 0, "\x27\x05\x19\x56", 5000)
		k.Nonce = "kernsweep.nonce=0123456789abcdef"
		for range 2 { // the second finds what the first has left
			if err := u.Boot(t.Context(), tg, k); err != nil {
				t.Fatal(err)
			}
			got := printenv(t, config)
			for _, want := range []string{"bootargs=console=ttyS0,115200 kernsweep.nonce=0123456789abcdef\n", "bootcmd=setenv serverip 10.0.0.9; tftpboot 0x80800000 ks-",
				"bootcount=0\n", "bootlimit=1\n", "altbootcmd=run flashboot\n", "ks_old_bootcmd=run flashboot\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
		}
		if len(u.Notes()) == 0 || !strings.Contains(u.Notes()[0], "put back") {
			t.Errorf("%q", u.Notes())
		}
		var notes []string
		if err := u.Settle(t.Context(), tg, conn, func(s string) { notes = append(notes, s) }); err != nil {
			t.Fatal(err)
		}
		if got := printenv(t, config); got != envText {
			t.Errorf("it was not put back:\n%s", got)
		}
		if len(notes) != 1 {
			t.Errorf("%q", notes)
		}
		if tr := u.Traits(); !tr.Running || !tr.Returns || !tr.Cmdline || !tr.Image {
			t.Errorf("%+v", tr)
		}
	})
}

// What has nothing to fall back to, or cannot be read, is not written to.
func TestUBootEnvRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		harm func(stored string) error
		want string
	}{
		"no fallback":    {"bootcmd=x\nbootcount=0\n", nil, "no altbootcmd"},
		"no counter":     {"bootcmd=x\naltbootcmd=y\n", nil, "no boot counter"},
		"bad CRC":        {envText, func(p string) error { return os.WriteFile(p, make([]byte, 0x2000), 0o600) }, "fw_printenv"},
		"no tools' file": {envText, os.Remove, "fw_printenv"},
	} {
		t.Run(name, func(t *testing.T) {
			config, stored := newEnv(t, c.text)
			if c.harm != nil {
				if err := c.harm(stored); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := os.ReadFile(stored)
			d := targetstest.SSHD(t)
			tg := &targets.Target{Name: "ap", Serve: serveNothing}
			conn, err := sshconn.New(zap.NewNop()).Dial(t.Context(), d.SSH, targets.DialOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			tg.Held = conn
			u := &UBootEnv{Config: config, Command: "true", Set: map[string]string{"bootcmd": "z"}}
			has(t, u.Boot(t.Context(), tg, targets.Kernel{}), c.want)
			if after, _ := os.ReadFile(stored); string(after) != string(before) {
				t.Error("the environment was written to")
			}
		})
	}
}

// The classic tools print a default environment with status 0.
func TestUBootEnvClassicWarning(t *testing.T) {
	conn := says(func(targets.Cmd) (string, targets.Exit, error) {
		return "Warning: Bad CRC, using default environment\nbootcmd=bootp\naltbootcmd=x\nbootlimit=1\n", targets.Exit{}, nil
	})
	_, err := new(UBootEnv).read(t.Context(), conn)
	has(t, err, "Bad CRC, using default environment", "nothing is written")
}

func TestUBootEnvCheck(t *testing.T) {
	set := map[string]string{"bootcmd": "run x"}
	for want, u := range map[string]*UBootEnv{
		"set is empty":    {},
		"business":        {Set: map[string]string{"altbootcmd": "x"}},
		"line's end":      {Set: map[string]string{"bootcmd": "a\nb"}},
		"neither dir nor": {Set: map[string]string{"bootcmd": "bootm @KERNEL@"}},
		"tftp is not set": {Set: map[string]string{"bootcmd": "@SERVER@"}},
		"exclude each":    {Set: set, Dir: "/boot", Netload: Netload{TFTP: "10.0.0.1"}},
		"absolute":        {Set: set, Dir: "boot"},
		"no name":         {Set: map[string]string{"a b": "c"}},
		"go with tftp":    {Set: set, Netload: Netload{Root: "/srv"}},
	} {
		has(t, u.Check(), want)
	}
	if err := (&UBootEnv{Set: set}).Check(); err != nil {
		t.Error(err)
	}
}
