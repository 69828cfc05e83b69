package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kernsweep/workloads/wire"
)

// write fills a spool with one of everything.
func write(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := wire.NewWriter(&b, 0)
	if err != nil {
		t.Fatal(err)
	}
	task := wire.Task{Name: "LTMM", PID: 7, StartNS: 10, EndNS: 20, UserUS: 3, SystemUS: 4, Voluntary: 5, Involuntary: 6, MaxRSSKB: 8}
	killed := wire.Task{Name: "load", PID: 8, Exit: -1, Signal: 9, StartNS: 11, EndNS: 21, TimedOut: true}
	for _, r := range []wire.Record{
		{Type: wire.TypeBegin, MonoNS: 1, Body: []byte("pid=7\nargv=exec -- a=b\n")},
		{Type: wire.TypeStat, MonoNS: 2, Body: []byte("cpu 1\n")},
		{Type: wire.TypeVMStat, MonoNS: 2, Body: []byte("pgpgin 1\n")},
		{Type: wire.TypeOut, MonoNS: 3, Body: []byte("end 5 6\n")},
		{Type: wire.TypeStat, MonoNS: 4, Body: []byte("cpu 2\n")},
		{Type: wire.TypeLoad, MonoNS: 4, Body: []byte("0.1\n")},
		{Type: wire.TypeFreq, MonoNS: 4, Body: []byte("cpu0 1400000\n")},
		{Type: wire.TypeState, MonoNS: 4, Body: []byte("/proc/schedstat=version 15;cpu0 0 0 0 0 0 0 7 8 9\n/sys/a=b=c\nodd\n")},
		{Type: wire.TypeOut, MonoNS: 5, Body: []byte("\x00\xff")},
		{Type: wire.TypeErr, MonoNS: 5},
		{Type: wire.TypePoints, MonoNS: 6, Name: "wakeup", Body: []byte("1 2\n-3 4\n")},
		{Type: wire.TypePoints, MonoNS: 6, Name: "wakeup", Body: []byte("5 6")},
		{Type: wire.TypeValue, MonoNS: 7, Name: "bytes", Body: []byte("value=12\nunit=B\n")},
		{Type: "later-invention", MonoNS: 7, Name: "x y", Body: []byte("?")},
		{Type: wire.TypeTask, MonoNS: 8, Name: task.Name, Body: wire.AppendTask(nil, task)},
		{Type: wire.TypeTask, MonoNS: 8, Name: killed.Name, Body: wire.AppendTask(nil, killed)},
		{Type: wire.TypeNote, MonoNS: 9, Body: []byte("note")},
		{Type: wire.TypeEnd, MonoNS: 9, Body: []byte("status=ok\n")},
	} {
		if err := w.Write(r.Type, r.MonoNS, r.Name, r.Body); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestReadGivesBackWhatWasWritten(t *testing.T) {
	got, err := wire.Read(iotestOneByte{bytes.NewReader(write(t))})
	if err != nil {
		t.Fatal(err)
	}
	want := &wire.Spool{
		Begin:   map[string]string{"pid": "7", "argv": "exec -- a=b"},
		BeginNS: 1,
		End:     map[string]string{"status": "ok"},
		EndNS:   9,
		Tasks: []wire.Task{
			{Name: "LTMM", PID: 7, StartNS: 10, EndNS: 20, UserUS: 3, SystemUS: 4, Voluntary: 5, Involuntary: 6, MaxRSSKB: 8},
			{Name: "load", PID: 8, Exit: -1, Signal: 9, StartNS: 11, EndNS: 21, TimedOut: true},
		},
		Snapshots: []wire.Snapshot{
			{MonoNS: 2, Stat: []byte("cpu 1\n"), VMStat: []byte("pgpgin 1\n")},
			{MonoNS: 4, Stat: []byte("cpu 2\n"), Load: []byte("0.1\n"), Freq: []byte("cpu0 1400000\n")},
		},
		States: []wire.State{{MonoNS: 4, Files: map[string]string{
			"/proc/schedstat": "version 15\ncpu0 0 0 0 0 0 0 7 8 9", "/sys/a": "b=c"}}},
		Points: map[string][][]int64{"wakeup": {{1, 2}, {-3, 4}, {5, 6}}},
		Values: map[string]map[string]string{"bytes": {"value": "12", "unit": "B"}},
		Notes:  []string{"note"},
		Stdout: []byte("end 5 6\n\x00\xff"),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// iotestOneByte gives one byte per Read.
type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

func TestEveryTornSpoolIsToldAndKeepsItsBeginning(t *testing.T) {
	whole := write(t)
	for n := range whole {
		s, err := wire.Read(bytes.NewReader(whole[:n]))
		if !errors.Is(err, wire.ErrTorn) {
			t.Fatalf("cut at %d of %d: error %v", n, len(whole), err)
		}
		if s == nil {
			t.Fatalf("cut at %d: nothing read", n)
		}
	}
	s, _ := wire.Read(bytes.NewReader(whole[:len(whole)-3]))
	if len(s.Tasks) != 2 || s.End != nil {
		t.Errorf("a spool cut in its end record has tasks %v, end %v", s.Tasks, s.End)
	}
}

func TestDamageIsTorn(t *testing.T) {
	for name, text := range map[string]string{
		"empty":          "",
		"other file":     "hello, world, this is no spool\n",
		"huge length":    wire.Magic + "out 1 99999999999\nx\n",
		"negative":       wire.Magic + "out 1 -1\n\n",
		"no line end":    wire.Magic + "out 1 1\nxyend 1 0\n\n",
		"long head":      wire.Magic + strings.Repeat("a", 10000) + "\n",
		"zeros":          wire.Magic + strings.Repeat("\x00", 500) + "\n",
		"after the end":  wire.Magic + "end 1 0\n\nnote 1 0\n\n",
		"bad points":     wire.Magic + "points 1 3 x\n1 a\nend 1 0\n\n",
		"bad task":       wire.Magic + "task 1 6 x\nexit=a\nend 1 0\n\n",
		"no end":         wire.Magic,
		"half a head":    wire.Magic + "end",
		"not two fields": wire.Magic + "end 3\n\n",
	} {
		if _, err := wire.Read(strings.NewReader(text)); !errors.Is(err, wire.ErrTorn) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestMissingFiguresAreNamed(t *testing.T) {
	s, err := wire.Read(strings.NewReader(wire.Magic + "task 1 27 exec\npid=3\nexit=0\nutime_us=5000\n\nend 1 0\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"stime_us", "nvcsw", "nivcsw", "maxrss_kb"}
	if d := cmp.Diff(want, s.Tasks[0].Missing); d != "" {
		t.Error(d)
	}
}

func TestLimitDropsBulkButNeverTheEnd(t *testing.T) {
	var b bytes.Buffer
	w, err := wire.NewWriter(&b, 200)
	if err != nil {
		t.Fatal(err)
	}
	var full error
	for range 10 {
		if err := w.Write(wire.TypeOut, 1, "", bytes.Repeat([]byte("x"), 50)); err != nil {
			full = err
		}
	}
	if full != wire.ErrFull || !w.Full() {
		t.Errorf("full: %v, %v", full, w.Full())
	}
	if err := w.Write(wire.TypeEnd, 2, "", []byte("status=ok\n")); err != nil {
		t.Fatal(err)
	}
	s, err := wire.Read(&b)
	if err != nil || s.End["status"] != "ok" || len(s.Stdout) != 150 {
		t.Errorf("read back: %v, end %v, %d bytes of stdout", err, s.End, len(s.Stdout))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(write(f))
	f.Add([]byte(wire.Magic + "points 1 3 x\n1 a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := wire.Read(bytes.NewReader(b))
		if s == nil || (err == nil) != (s.End != nil) && !errors.Is(err, wire.ErrTorn) {
			t.Errorf("spool %v, error %v", s, err)
		}
	})
}
