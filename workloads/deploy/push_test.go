package deploy

import (
	"os"
	"strings"
	"testing"

	"kernsweep/targets"
)

// Two lanes may share a machine: one removes the file that the other is about to
// test.
func TestAnAgentThatIsRemovedBeforeItsTestIsPushedAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"go", "shell"} {
		dir := t.TempDir()
		removed := 0
		conn := &fakeConn{answer: func(argv []string) (targets.Exit, string, bool) {
			if file := argv[max(0, len(argv)-2)]; argv[len(argv)-1] == "--self-test" && removed < 2 {
				removed++
				os.Remove(file)
			}
			return targets.Exit{}, "", false
		}}
		a := install(t, placed{conn, dir}, Options{Want: kind})
		if a.Kind() != kind || removed != 2 || !strings.HasPrefix(a.place().file, dir) {
			t.Errorf("%s: %s in %v, removed %d times", kind, a.Kind(), a.place(), removed)
		}
	}
}
