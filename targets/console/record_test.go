package console

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
)

// clock is a time that moves by step at each look.
type clock struct {
	t    time.Time
	step time.Duration
}

func (c *clock) now() time.Time {
	c.t = c.t.Add(c.step)
	return c.t
}

func evening() time.Time { return time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC) }

func files(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		names = append(names, f.Name())
	}
	return strings.Join(names, " ")
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// replay is what the real scriptreplay shows, as fast as it can.
func replay(t *testing.T, base string) string {
	t.Helper()
	out, err := exec.Command(targetstest.Tool(t, "scriptreplay"), "-t", base+".timing", "-d", "1000000", base+".log").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(out), "\n") // it ends with one of its own
}

// A console is kept byte for byte, and scriptreplay shows it but for the first
// line, which it always leaves out.
func TestRecording(t *testing.T) {
	dir := t.TempDir()
	c := &clock{evening(), 0}
	r, err := record(filepath.Join(dir, "console.log"), Limits{}, c.now)
	if err != nil {
		t.Fatal(err)
	}
	said := []string{"U-Boot", " 2023\r\nHit any key\x1b[K\r", "\x00\xff", "a", "b", "\r\n=> "}
	for i, s := range said {
		c.t = evening().Add(time.Duration(i*i) * 500 * time.Millisecond)
		if n, err := r.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error("again:", err)
	}
	if _, err := r.Write([]byte("x")); err == nil {
		t.Error("a closed recording takes bytes")
	}
	base := filepath.Join(dir, "console")
	if got := read(t, base+".log"); got != strings.Join(said, "") {
		t.Errorf("%q", got)
	}
	want := "0.500000 15\n1.500000 2\n2.500000 1\n3.500000 1\n4.500000 5\n"
	if got := read(t, base+".timing"); got != want {
		t.Errorf("timing\n%s", got)
	}
	if got := read(t, base+".start"); got != "2026-11-30T22:00:00Z\n" {
		t.Errorf("start %q", got)
	}
	if got := replay(t, base); got != "Hit any key\x1b[K\r\x00\xffab\r\n=> " {
		t.Errorf("scriptreplay shows %q", got)
	}
	if got := files(t, dir); got != "console.log console.start console.timing" {
		t.Error(got)
	}
	if _, err := Record(base+".log", Limits{}); err == nil {
		t.Error("a recording is overwritten")
	}
}

// Of a flood the head and the newest bytes stay, with the real times.
func TestRecordingOfAFlood(t *testing.T) {
	dir := t.TempDir()
	c := &clock{evening(), time.Second}
	r, err := record(filepath.Join(dir, "console.log"), Limits{Head: 100, Tail: 50}, c.now)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for i := range 100 {
		line := fmt.Sprintf("line %03d\r\n", i)
		all.WriteString(line)
		if _, err := io.WriteString(r, line); err != nil {
			t.Fatal(err)
		}
	}
	// As a crash of the controller would leave it.
	if got := files(t, dir); got != "console.log console.start console.tail.17 console.tail.17.timing console.tail.18 console.tail.18.timing console.timing" {
		t.Error(got)
	}
	if got := read(t, filepath.Join(dir, "console.tail.18")); got != all.String()[950:] {
		t.Errorf("the newest tail is %q", got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	want := all.String()[:100] + "\r\n[kernsweep: 800 bytes of the console are left out here]\r\n" + all.String()[900:]
	if got := read(t, filepath.Join(dir, "console.log")); got != want {
		t.Errorf("%q", got)
	}
	if got := files(t, dir); got != "console.log console.start console.timing" {
		t.Error(got)
	}
	if got := replay(t, filepath.Join(dir, "console")); got != want[len("line 000\r\n"):] {
		t.Errorf("scriptreplay shows %q", got)
	}
	sum := 0.0
	for _, l := range strings.Fields(read(t, filepath.Join(dir, "console.timing"))) {
		if f := 0.0; strings.Contains(l, ".") {
			fmt.Sscan(l, &f)
			sum += f
		}
	}
	// The clock is looked at once for the start and once a line.
	if want := 101.0; sum < want-1.01 || sum > want {
		t.Errorf("the timing spans %.1f s of %.1f", sum, want)
	}
}

// 100 MB cost no memory and little time.
func TestRecordingIsBounded(t *testing.T) {
	dir := t.TempDir()
	r, err := Record(filepath.Join(dir, "console.log"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Repeat([]byte("sd 0:0:0:0: [sda] rejecting I/O to offline device\r\n"), 100)[:4096]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range 100 << 20 / len(chunk) {
		if _, err := r.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("100 MB in %s, %d KB allocated", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>10)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
	if took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	st, err := os.Stat(filepath.Join(dir, "console.log"))
	if err != nil || st.Size() < 16<<20 || st.Size() > 24<<20+100 {
		t.Errorf("%v %v", st.Size(), err)
	}
}

// A full disk is said once; the head stays.
func TestRecordingOnAFullDisk(t *testing.T) {
	r, err := Record(filepath.Join(t.TempDir(), "console.log"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.part.log.Close()
	r.part.log = full
	for range 2 {
		if _, err := r.Write([]byte("x")); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Error(err)
		}
	}
	if err := r.Close(); err == nil {
		t.Error("it closes as if nothing had happened")
	}
}
