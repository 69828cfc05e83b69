package targets

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// knobConn runs the real script on files below root, where a kernel's would be.
type knobConn struct {
	shellConn
	root string
	runs int
}

func (c *knobConn) Run(ctx context.Context, cmd Cmd) (Exit, error) {
	c.runs++
	argv := append([]string{}, cmd.Argv...)
	argv[2] = strings.ReplaceAll(argv[2], "mount -t", "false")
	argv[4] = filepath.Join(c.root, argv[4])
	cmd.Argv = argv
	return c.shellConn.Run(ctx, cmd)
}

func (c *knobConn) put(t *testing.T, p, v string) {
	t.Helper()
	f := filepath.Join(c.root, p)
	if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f, []byte(v+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c *knobConn) get(t *testing.T, p string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.root, p))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestSetTimeslice(t *testing.T) {
	for _, c := range []struct {
		sched string
		files map[string]string
		d     time.Duration
		set   map[string]string // nil: not available
	}{
		{"cfs", map[string]string{sysKernel + "sched_min_granularity_ns": "4000000", sysKernel + "sched_latency_ns": "20000000"}, 400 * time.Millisecond,
			map[string]string{sysKernel + "sched_min_granularity_ns": "400000000", sysKernel + "sched_latency_ns": "400000000"}},
		{"cfs", map[string]string{debugSched + "min_granularity_ns": "3000000", debugSched + "latency_ns": "24000000"}, 10 * time.Millisecond,
			map[string]string{debugSched + "min_granularity_ns": "10000000", debugSched + "latency_ns": "10000000"}},
		{"cfs", map[string]string{sysKernel + "sched_granularity_ns": "4000000"}, 10 * time.Millisecond,
			map[string]string{sysKernel + "sched_granularity_ns": "10000000"}},
		{"cfs", map[string]string{debugSched + "min_granularity_ns": "3000000"}, 10 * time.Millisecond, nil}, // its partner is missing: put back
		{"eevdf", map[string]string{debugSched + "base_slice_ns": "1400000"}, 400 * time.Millisecond, map[string]string{debugSched + "base_slice_ns": "400000000"}},
		{"bfs", map[string]string{sysKernel + "rr_interval": "6"}, 400 * time.Millisecond, map[string]string{sysKernel + "rr_interval": "400"}},
		{"muqss", map[string]string{sysKernel + "rr_interval": "6"}, 1500 * time.Microsecond, nil},
		{"bore", map[string]string{debugSched + "base_slice_ns": "1400000"}, 10 * time.Millisecond, nil},
		{"eevdf", nil, 10 * time.Millisecond, nil},
		{"eevdf", nil, time.Hour, nil},
		{"o1", nil, 10 * time.Millisecond, nil},
		{"pds", nil, 10 * time.Millisecond, nil},
	} {
		conn := &knobConn{shellConn: shellConn{[]string{"busybox", "ash"}}, root: t.TempDir()}
		for p, v := range c.files {
			conn.put(t, p, v)
		}
		k, err := SetTimeslice(t.Context(), conn, Scheduler{Name: c.sched}, c.d)
		var ue *UnavailableError
		if errors.As(err, &ue) != (c.set == nil) || err != nil && c.set != nil {
			t.Errorf("%s %s: %v", c.sched, c.d, err)
			continue
		}
		for p, want := range c.set {
			if got := conn.get(t, p); got != want {
				t.Errorf("%s: %s = %s, want %s", c.sched, p, got, want)
			}
		}
		if err == nil {
			if err := k.Restore(t.Context(), conn); err != nil {
				t.Error(err)
			}
		}
		for p, want := range c.files {
			if got := conn.get(t, p); got != want {
				t.Errorf("%s: %s = %s after the restore, want %s", c.sched, p, got, want)
			}
		}
	}
}

// stubborn is a kernel that clamps what is written to a knob.
type stubborn struct {
	shellConn
	value, refuses string
	writes         []string
}

func (s *stubborn) Run(_ context.Context, c Cmd) (Exit, error) {
	s.writes = append(s.writes, c.Argv[5])
	old := s.value
	s.value = c.Argv[5]
	if c.Argv[5] == "400" {
		s.value = "100"
	}
	if s.refuses != "" {
		s.value = old
	}
	io.WriteString(c.Stdout, "@old\n"+old+"\n@write\n"+s.refuses+"\n@new\n"+s.value+"\n")
	return Exit{}, nil
}

func TestKnobReadBack(t *testing.T) {
	var ue *UnavailableError
	s := &stubborn{value: "6"}
	if _, err := SetKnob(t.Context(), s, sysKernel+"rr_interval", "400"); !errors.As(err, &ue) || s.value != "6" {
		t.Errorf("clamped: %v, left at %s", err, s.value)
	}
	s = &stubborn{value: "6", refuses: "sh: write error: Operation not permitted"}
	if _, err := SetKnob(t.Context(), s, sysKernel+"rr_interval", "400"); !errors.As(err, &ue) || !strings.Contains(err.Error(), "not permitted") || len(s.writes) != 1 {
		t.Errorf("refused: %v, %v", err, s.writes)
	}
	for _, p := range []string{"/etc/passwd", "/sys/../etc/passwd", "rr_interval", "/proc/sys/../../x"} {
		if _, err := SetKnob(t.Context(), s, p, "1"); !errors.As(err, &ue) {
			t.Errorf("%s: %v", p, err)
		}
	}
	k := Knob{Path: sysKernel + "rr_interval", Old: "9"}
	if err := k.Restore(t.Context(), s); err == nil || !strings.Contains(err.Error(), "was 9") {
		t.Errorf("restore: %v", err)
	}
}

func TestTimesliceReason(t *testing.T) {
	for s, none := range map[string]bool{"": false, "cfs": false, "EEVDF": false, "bfs": false, "sd": false, "O(1)": true, "pds": true, "sched_ext": true, "nonsense": true} {
		if (TimesliceReason(s) != "") != none {
			t.Errorf("%q: %q", s, TimesliceReason(s))
		}
	}
}

// An ordinary user cannot see debugfs: that says nothing of the kernel.
func TestKnobThatOnlyRootSees(t *testing.T) {
	conn := &knobConn{shellConn: shellConn{[]string{"busybox", "ash"}}, root: t.TempDir()}
	user := &asUser{conn}
	for path, want := range map[string]string{
		debugSched + "base_slice_ns":   "/sys/kernel/debug/sched/base_slice_ns is only for root, and the log-in is user tester",
		"/proc/sys/kernel/rr_interval": "this kernel has no /proc/sys/kernel/rr_interval",
	} {
		_, err := SetKnob(t.Context(), user, path, "1")
		var ue *UnavailableError
		if !errors.As(err, &ue) || !strings.HasPrefix(ue.Reason, want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// asUser makes id say that an ordinary user is logged in.
type asUser struct{ *knobConn }

func (c *asUser) Run(ctx context.Context, cmd Cmd) (Exit, error) {
	argv := append([]string{}, cmd.Argv...)
	argv[2] = "id() { case $1 in -u) echo 1004 ;; *) echo tester ;; esac; }\n" + argv[2]
	cmd.Argv = argv
	return c.knobConn.Run(ctx, cmd)
}
