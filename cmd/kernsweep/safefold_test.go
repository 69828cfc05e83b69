package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// What is said on a terminal of 80 columns is torn at no word, also by a run, whose
// output waits in an outlet. Elsewhere a message is one line.
func TestSaidFolds(t *testing.T) {
	outer, inner, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	if err := pty.Setsize(inner, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	const text = "kernsweep: run 20261201T023540Z-bad-353a: 4 ok, 4 boot-failed, 1 lost, 3 skipped; next: kernsweep rerun 20261201T023540Z-bad-353a --failed"
	o := newOutlet(inner, 1<<20)
	if foldWidth(o) != 80 || foldWidth(inner) != 80 || foldWidth(io.Discard) != math.MaxInt {
		t.Error("the width is not the terminal's")
	}
	fmt.Fprintln(said{o}, text)
	o.close(t.Context())
	inner.Close()
	_ = outer.SetReadDeadline(time.Now().Add(10 * time.Second)) // a terminal that was closed ends the read at once
	shown, _ := io.ReadAll(outer)                               // EIO is how it ends
	got := strings.TrimSpace(strings.ReplaceAll(string(shown), "\r", ""))
	for l := range strings.SplitSeq(got, "\n") {
		if ansi.StringWidth(l) > 80 {
			t.Errorf("%d columns: %s", ansi.StringWidth(l), l)
		}
	}
	if !strings.Contains(got, "kernsweep rerun 20261201T023540Z-bad-353a --failed") {
		t.Errorf("it shows %q", got)
	}
}
