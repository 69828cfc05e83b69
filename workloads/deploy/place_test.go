package deploy

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"kernsweep/targets"
)

// router is what place.sh says on a small device: 16 MB, /tmp in memory, a
// read-only flash behind an overlay.
const router = `uid 0
release 5.15.137
machine mips
home /root
mem MemFree: 5200
mem MemAvailable: 6900
mem Buffers: 400
mem Cached: 2900
mount rootfs / rw
mount squashfs /rom ro,relatime
mount tmpfs /tmp rw,nosuid,size=6100k
mount jffs2 /overlay rw,noatime
mount overlay / rw,lowerdir=/,upperdir=/overlay/upper,workdir=/overlay/work
tool gunzip
dir yes /tmp
df Filesystem 1024-blocks Used Available Capacity Mounted on
df tmpfs 6100 40 6060 1% /tmp
dir yes /root
df overlay 1500 900 600 60% /
have -rwx------    1 0        0          1900000 Jan  1 00:00 /root/agent
done
`

func TestParseMachine(t *testing.T) {
	m := parseMachine(router)
	if m.release != "5.15.137" || m.uid != "0" || m.uname != "mips" || m.freeMemKB() != 6900 || !m.tools["gunzip"] {
		t.Errorf("%+v", m)
	}
	if len(m.places) != 2 || !m.places[0].inMemory || m.places[1].inMemory ||
		m.places[0].availKB != 6060 || m.places[1].availKB != 600 {
		t.Errorf("places %+v", m.places)
	}
	delete(m.memKB, "MemAvailable")
	if got := m.freeMemKB(); got != 5200+(400+2900)/2 {
		t.Errorf("without MemAvailable: %d", got)
	}
}

func TestOverlayOnMemoryIsMemory(t *testing.T) {
	m := parseMachine("mount tmpfs /over rw\nmount overlay / rw,lowerdir=/rom,upperdir=/over/up\ndir yes /root\n")
	if !m.places[0].inMemory {
		t.Errorf("%+v", m.places)
	}
	m = parseMachine("mount overlay / rw,upperdir=/a/up\nmount overlay /a rw,upperdir=/b\nmount overlay /b rw,upperdir=/a/up\ndir yes /\n")
	if m.places[0].inMemory {
		t.Error("overlays upon each other have no end")
	}
}

func TestChoose(t *testing.T) {
	with := func(old, new string) *machine { return parseMachine(strings.ReplaceAll(router, old, new)) }
	tests := []struct {
		name      string
		m         *machine
		kb        int64
		exec      bool
		dir, want string
	}{
		{"room in memory", with("", ""), 1800, true, "/tmp", ""},
		{"df says enough, memory does not", with("Available: 6900", "Available: 4000"), 1800, true, "",
			"/tmp: 4000 kB of memory are available, and 4872 are needed; /root has 600 kB free, and 2824 are needed"},
		{"noexec", with("yes /tmp", "no /tmp"), 500, true, "", "/tmp is mounted noexec"},
		{"noexec is good enough for a script", with("yes /tmp", "no /tmp"), 20, false, "/tmp", ""},
		{"flash with room", with("1500 900 600", "9000 900 8100"), 1800, true, "/tmp", ""},
		{"too large for /tmp", with("Available: 6900", "Available: 60000"), 5900, true, "", "/tmp has 6060 kB free, and 6924 are needed"},
		{"flash takes it when memory cannot", parseMachine(strings.NewReplacer("1500 900 600", "9000 900 8100", "Available: 6900", "Available: 4500").Replace(router)),
			1800, true, "/root", ""},
		{"nothing writable", parseMachine("uid 0\ndone\n"), 1, true, "", "no directory is writable"},
		{"another user's file has the agent's name", with("df tmpfs", "have -rwx------ 1 1004 1004 1900000 Jan 1 00:00 /tmp/agent-0\ndf tmpfs"), 500, true, "",
			"/tmp: the agent's name is taken by another user's file"},
		{"an own file of another size does not matter", with("df tmpfs", "have -rwx------ 1 0 0 7 Jan 1 00:00 /tmp/agent-0\ndf tmpfs"), 1800, true, "/tmp", ""},
		{"ramfs has 0 blocks", parseMachine("mem MemAvailable: 9000\nmount ramfs / rw\ndir yes /tmp\ndf none 0 0 0 - /\n"), 1800, true, "/tmp", ""},
	}
	for _, tt := range tests {
		p, why := tt.m.choose(tt.kb, tt.exec)
		if p.dir != tt.dir || !strings.Contains(why, tt.want) || (why == "") != (tt.want == "") {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, p.dir, why, tt.dir, tt.want)
		}
	}
}

// Two users of one machine must not push to one name in a sticky directory: only
// one of them may replace or remove the file.
func TestTheAgentsNameHoldsTheUsersNumber(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	uid := strconv.Itoa(os.Getuid())
	for _, name := range []string{"agent", "agent-" + uid} {
		if err := os.WriteFile(home+"/"+name, []byte("x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/nowhere", home+"/dangling-"+uid); err != nil {
		t.Fatal(err)
	}
	m, err := survey(t.Context(), &fakeConn{}, "agent", "dangling")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, p := range m.places {
		if p.dir == home {
			have = p.have
		}
	}
	if len(have) != 2 || !owned(have, m.ours("agent"), uid, 1) || owned(have, "agent", uid, 1) || !strings.Contains(have[1], "dangling-"+uid) {
		t.Errorf("found %q", have)
	}
}

func TestOwned(t *testing.T) {
	for line, want := range map[string]bool{
		"-rwx------ 1 0 0 77 Jan 1 00:00 /tmp/agent":        true,
		"-rwxr-xr-x 1 0 0 77 Jan 1 00:00 /tmp/agent":        true,
		"-rwxrwx--- 1 0 0 77 Jan 1 00:00 /tmp/agent":        false,
		"-rwx----w- 1 0 0 77 Jan 1 00:00 /tmp/agent":        false,
		"-rwx------ 1 5 0 77 Jan 1 00:00 /tmp/agent":        false,
		"-rwx------ 1 0 0 76 Jan 1 00:00 /tmp/agent":        false,
		"lrwxrwxrwx 1 0 0 77 Jan 1 00:00 /tmp/agent":        false,
		"-rwx------ 1 0 0 77 Jan 1 00:00 /tmp/x -> y/other": false,
		"": false,
	} {
		if got := owned([]string{line}, "agent", "0", 77); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestTooOld(t *testing.T) {
	for release, want := range map[string]string{
		"2.6.22.19":    "kernel 2.6.22.19 is older than 3.2, which the Go agent needs",
		"2.6.32-5-arm": "kernel 2.6.32 is older than 3.2, which the Go agent needs",
		"3.1.10":       "kernel 3.1.10 is older than 3.2, which the Go agent needs",
		"2":            "kernel 2 is older than 3.2, which the Go agent needs",
		"3.2.0":        "", "3.18.23": "", "4.4.60-ipq": "", "5.15.137": "", "10.0": "", "": "", "next-20260101": "",
	} {
		if got := TooOld(release); got != want {
			t.Errorf("%s: %q, want %q", release, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		exit targets.Exit
		text string
		want string
	}{
		{targets.Exit{Code: 132}, "Illegal instruction\n", "floating-point unit"},
		{targets.Exit{Signal: "ILL"}, "", "illegal instruction"},
		{targets.Exit{Code: 2}, "/tmp/agent: line 1: syntax error: unexpected \"(\"\n", "byte order"},
		{targets.Exit{Code: 126}, "sh: /tmp/agent: Exec format error", "another architecture"},
		{targets.Exit{Code: 2}, "runtime: epollcreate failed with 38 errno=38", "lacks a system call"},
		{targets.Exit{Signal: "KILL"}, "", "out of memory"},
		{targets.Exit{Code: 126}, "Permission denied", "may not be executed"},
		{targets.Exit{Code: 1}, "", ""},
	} {
		if got := explain(tt.exit, tt.text); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%v %q: %q, want %q", tt.exit, tt.text, got, tt.want)
		}
	}
}

func FuzzParseMachine(f *testing.F) {
	f.Add(router)
	f.Fuzz(func(t *testing.T, s string) {
		m := parseMachine(s)
		if p, why := m.choose(100, true); why == "" && p.dir == "" && len(m.places) == 0 {
			t.Error("a place out of nothing")
		}
	})
}
