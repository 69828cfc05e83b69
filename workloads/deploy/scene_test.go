package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/workloads/wire"
)

// await polls until ok, for what sends no event.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// running waits until n tasks have a begin record.
func (s *scene) running(t *testing.T, n int) {
	t.Helper()
	await(t, "the tasks to begin", func() bool {
		b := s.begun()
		all := append(b["target"], b["peer"]...)
		for _, x := range all {
			if len(head4k(x.File)) < len(wire.Magic)+20 {
				return false
			}
		}
		return len(all) >= n
	})
}

func head4k(file string) string {
	b, _ := os.ReadFile(file)
	return string(b[:min(len(b), 4<<10)])
}

// finished waits until all begun tasks have written their end.
func (s *scene) finished(t *testing.T) {
	t.Helper()
	await(t, "the tasks to end", func() bool {
		b := s.begun()
		for _, x := range append(b["target"], b["peer"]...) {
			f, err := os.Open(x.File)
			if err != nil {
				return false
			}
			_, err = wire.Read(f)
			f.Close()
			if err != nil {
				return false
			}
		}
		return true
	})
}

// marked lists the processes that carry the mark of a begun task.
func (s *scene) marked() (pids []string) {
	b := s.begun()
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, _ := os.ReadFile(f)
		for _, x := range append(b["target"], b["peer"]...) {
			if strings.Contains(string(env), wire.TaskVariable+"="+wire.TaskOf(x.File)) {
				pids = append(pids, f)
			}
		}
	}
	return pids
}

// clean checks that nothing is left of any task: no process, no spool.
func (s *scene) clean(t *testing.T) {
	t.Helper()
	if left := s.marked(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	for _, dir := range []string{s.Target, s.Peer} {
		files, err := filepath.Glob(dir + "/*")
		if err != nil || len(files) > 0 {
			t.Errorf("files are left: %v, %v", files, err)
		}
	}
}

// pairOf is a number in the begin record of a spool.
func pairOf(head, key string) (n int) {
	for ln := range strings.Lines(head) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(ln), key+"="); ok {
			_, _ = fmt.Sscan(v, &n) // 0 is no pid
			return n
		}
	}
	return 0
}
