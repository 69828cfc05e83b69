package results

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fill takes all the room of a file system.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// On a full disk nothing new begins; what runs is still ended and judged, with
// the room kept for that; what was there stays readable; with room the run goes on.
func TestFullDisk(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	disk := tmpfs(t, "1m")
	run, err := Create(disk, "s", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	slot := Slot{Cell: Cell{"r1", "k", "w", "s"}, Block: 1, Boot: 1, Repeat: 1}
	if _, err := w.Append(t.Context(), Record{Lane: "r1", Kind: KindStarted, Slot: &slot, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	acked := 1
	for range 1000 {
		if _, err = w.Append(t.Context(), Record{Lane: "r1", Kind: KindNote, Note: strings.Repeat("x", 1000)}); err != nil {
			break
		}
		acked++
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk of the run directory is full; all that was acknowledged is kept; make room, then: kernsweep resume "+run.Name()) {
		t.Fatal(err)
	}
	if j := journal(t, run); len(j.Records) != acked || len(j.Notes) != 0 {
		t.Fatalf("%d records of %d acknowledged, %q", len(j.Records), acked, j.Notes)
	}
	for _, r := range []Record{{Lane: "r1", Kind: KindEnded, Slot: &slot, Attempt: 1, Outcome: OK}, {Lane: "r1", Kind: KindJudged, Slot: &slot, Attempt: 1, Outcome: OK},
		{Lane: "r1", Kind: KindLane, Note: NoteEnded, Reason: strings.Repeat("r", 5000)}, {Kind: KindRun, Note: NoteInterrupted}} {
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatalf("%s, from the reserve: %v", r.Kind, err)
		}
		acked++
	}
	fill(t, ballast)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, ballast)
	if _, err := run.OpenWriter("kim"); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room, then: kernsweep resume") {
		t.Fatalf("opening on the full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if w, err = run.OpenWriter("kim"); err != nil {
		t.Fatal(err)
	}
	r, err := w.Append(t.Context(), Record{Lane: "r1", Kind: KindNote})
	if err != nil || r.Seq != acked+1 {
		t.Errorf("went on with %d after %d (%v)", r.Seq, acked, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if j := journal(t, run); len(j.Notes) != 0 || Load(j.Records).Count()[OK] != 1 {
		t.Errorf("%q", j.Notes)
	}
	if left, err := filepath.Glob(filepath.Join(run.Dir(), "journal.*")); err != nil || len(left) != 2 {
		t.Errorf("%q (journal.jsonl and journal.lock are to stay) %v", left, err)
	}
}

// Whatever the file system answers, what was acknowledged stays, the error says
// what to do, and once all is well again the run goes on.
func TestFaultsOfTheFileSystem(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	for e, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "is full; all that was acknowledged is kept; make room",
		syscall.EDQUOT: "quota is used up",
		syscall.EIO:    "has errors (see dmesg)",
		syscall.EROFS:  "is or turned read-only",
	} {
		t.Run(e.Error(), func(t *testing.T) {
			dir, server := faulty(t)
			run, err := Create(dir, "s", RunMeta{}, t0)
			if err != nil {
				t.Fatal(err)
			}
			w, err := run.OpenWriter("kim")
			if err != nil {
				t.Fatal(err)
			}
			server.fail(t, e)
			_, err = w.Append(t.Context(), Record{Kind: KindRun, Note: NoteInterrupted})
			if !errors.Is(err, e) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "kernsweep resume "+run.Name()) {
				t.Error(err)
			}
			if j := journal(t, run); len(j.Records) != 1 || len(j.Notes) != 0 {
				t.Errorf("%d records, %q", len(j.Records), j.Notes)
			}
			err = w.Close()
			if err != nil && !errors.Is(err, e) {
				t.Error(err)
			}
			if _, err := run.OpenWriter("kim"); err == nil || !errors.Is(err, e) || !strings.Contains(err.Error(), want) {
				t.Errorf("opening: %v", err)
			}
			server.fail(t, 0)
			if _, held := run.HeldBy(); held { // it could not be given free: as if this process had ended since
				plant(t, run.Dir(), func(h *Holder) { *h = thisHolder("kim", t0); h.Start = "1" })
			}
			if w, err = run.OpenWriter("kim"); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Append(t.Context(), Record{Kind: KindRun, Note: NoteBegan}); err != nil {
				t.Error(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if j := journal(t, run); len(j.Notes) != 0 || j.Records[len(j.Records)-1].Note != NoteBegan {
				t.Errorf("%+v %q", j.Records, j.Notes)
			}
		})
	}
}

// Reading needs no right to write, writing is refused with another place.
func TestReadOnlyFileSystem(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	disk := tmpfs(t, "1m")
	run := filled(t, disk)
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, "read", "JOURNAL_RUN="+run.Dir())
	if s := c.line(t); !strings.HasPrefix(s, "1 records, notes []; writing: run "+run.Dir()+" cannot be locked") || !strings.Contains(s, "put runs elsewhere with --runs DIR") {
		t.Error(s)
	}
	c.end(t)
}

func TestAnotherUserReads(t *testing.T) {
	base := t.TempDir()
	run := filled(t, base)
	for _, d := range []string{base, filepath.Dir(base)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	prog := filepath.Join(base, "child") // go test's own folder is private
	if err := os.WriteFile(prog, bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(run.Dir(), 0o555); err != nil {
		t.Fatal(err)
	}
	c := childCommand(prog, "read", "JOURNAL_RUN="+run.Dir())
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	}
	out, err := c.CombinedOutput()
	if s := string(out); err != nil || !strings.HasPrefix(s, "1 records, notes []; writing: ") || !strings.Contains(s, "this user may not write there") {
		t.Errorf("%v: %s", err, s)
	}
	if err := os.Chmod(run.Dir(), 0o755); err != nil {
		t.Error(err)
	}
}

// filled is a run with one record.
func filled(t *testing.T, runs string) *Run {
	t.Helper()
	run, err := Create(runs, "s", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), Record{Kind: KindRun, Note: NoteBegan}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return run
}
