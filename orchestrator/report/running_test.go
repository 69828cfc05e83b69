package report

import (
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
)

// A report of a run that is being executed must not look like its end.
func TestReportOfARunningRun(t *testing.T) {
	l := newLab(t, "s")
	run := l.done()
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	text := render(t, run)
	if !strings.Contains(text, "state     RUNNING (kim, process ") || strings.Contains(text, "exit status") {
		t.Errorf("while it runs:\n%s", text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if text := render(t, run); strings.Contains(text, "RUNNING") {
		t.Errorf("after it died:\n%s", text)
	}
	l = newLab(t, "s")
	l.end()
	run = l.done()
	if w, err = run.OpenWriter("kim"); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if text := render(t, run); strings.Contains(text, "RUNNING") {
		t.Errorf("the report at a run's end:\n%s", text)
	}
}

func render(t *testing.T, run *results.Run) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, run, Options{Width: 100}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
