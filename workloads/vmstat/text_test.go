package vmstat

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const newer = `procs -----------memory---------- ---swap-- -----io---- -system-- -------cpu-------
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st gu
 2  0      0 712345   1000 200000    0    0    11    22  300  400  6  4 88  0  2  0
 4  1      0 712000   1000 200000    0    0     0     8 5000 7000 25  5 50  1  4 15
`

func read(t *testing.T, text string) ([]Row, []string) {
	t.Helper()
	rows, warns, err := ReadText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows, warns
}

func TestReadText(t *testing.T) {
	t.Run("guest column", func(t *testing.T) {
		rows, _ := read(t, newer)
		check(t, rows[1], map[Column]float64{R: 4, B: 1, Us: 25, Id: 50, St: 4, Gu: 15, Cs: 7000})
		if !rows[0].SinceBoot || rows[1].SinceBoot {
			t.Error("the first row is since boot, and only it")
		}
		if s := Summarise(rows); s.Samples != 1 || s.Switches != 7000 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("no steal column", func(t *testing.T) {
		rows, _ := read(t, "procs --memory-- ----cpu----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa\n"+
			" 2  0  0  700  60  410  0  0  0  0  4  6 40  20  40  0\n")
		check(t, rows[0], map[Column]float64{Us: 40, Id: 40, Wa: 0})
		missing(t, rows[0], St, Gu)
	})
	t.Run("header repeats, numbers overflow their columns", func(t *testing.T) {
		lines := strings.SplitAfter(newer, "\n")
		wide := strings.Replace(lines[3], "712000", "712000000000", 1)
		rows, warns := read(t, newer+lines[0]+lines[1]+wide)
		if len(rows) != 3 || len(warns) != 0 {
			t.Fatalf("%d rows, %q", len(rows), warns)
		}
		check(t, rows[2], map[Column]float64{Free: 712e9, Cs: 7000, Gu: 15})
	})
	t.Run("time stamps and active pages", func(t *testing.T) {
		rows, _ := read(t, " r  b   swpd   free  inact active   si   so    bi    bo   in   cs us sy id wa st                 CET\n"+
			" 1  0  0  100  20  30  0  0  1  2  3  4 50 40 10  0  0 2026-11-30 10:00:00\n")
		check(t, rows[0], map[Column]float64{Free: 100, Cs: 4, Us: 50, St: 0})
		missing(t, rows[0], Buff, Cache, Gu)
	})
	t.Run("no samples", func(t *testing.T) {
		rows, warns := read(t, strings.Join(strings.SplitAfter(newer, "\n")[:2], "")+"vmstat: /proc is not mounted\n")
		if len(rows) != 0 || len(warns) != 1 || !strings.Contains(warns[0], "vmstat: /proc is not mounted") {
			t.Errorf("%v %q", rows, warns)
		}
	})
	t.Run("a cut line is no row", func(t *testing.T) {
		rows, _ := read(t, newer+" 4  1  0 7120")
		if len(rows) != 2 {
			t.Errorf("%d rows", len(rows))
		}
	})
	t.Run("toybox", func(t *testing.T) {
		rows, warns := read(t, toyboxTop+"\n r  b    swpd    free   buff   cache   si   so    bi    bo   in   cs us sy id wa\n"+
			"1 0 0 4000 500 600 0 0 4 8 90 100 1 2 97 0\n")
		missing(t, rows[0], Si, So, Bi, Bo, St)
		check(t, rows[0], map[Column]float64{In: 90, Id: 97})
		if len(warns) != 1 {
			t.Errorf("%q", warns)
		}
	})
}

// What mail programs, ts(1) and other systems make of the layout.
func TestReadTextOtherLayouts(t *testing.T) {
	const want = 2 // rows
	for name, text := range map[string]string{
		"ts before each line": "10:00:00 " + strings.ReplaceAll(strings.TrimSpace(newer), "\n", "\n10:00:01 "),
		"lines broken": "procs -----------memory---------- ---swap--\n-----io---- -system-- ----cpu----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy\nid wa st gu\n" +
			" 2  0      0 712345   1000 200000    0    0    11    22  300  400  6  4 88\n0  2  0\n 4  1      0 712000   1000 200000    0    0     0     8 5000 7000 25  5 50\n1  4 15\n",
		"FreeBSD": " procs    memory    page                 disks  faults       cpu\n r b w     avm    fre   flt  re  pi  po    fr  sr da0   in   sy   cs us sy id\n" +
			" 2 0 0    1.2G   1.1G   100   0   0   0   120   5   0    5  300  200  6  4 90\n 4 1 0    1.2G   1.1G   100   0   0   0   120   5   0 5000 9000 7000 25  5 70\n",
	} {
		rows, warns := read(t, text)
		if len(rows) != want || len(warns) > 0 {
			t.Fatalf("%s: %d rows, %q", name, len(rows), warns)
		}
		check(t, rows[1], map[Column]float64{R: 4, B: 1, In: 5000, Cs: 7000, Us: 25, Sy: 5})
	}
	for bad, says := range map[string]string{
		" 4  1      0 712000   1000 200000    0    0     0     8 5x00 7000 25  5 50  1  4 15\n":         "begin like rows of vmstat and cannot be read: 1; the first",
		" 4  1 712000100020000   0    0     0     8 5000 7000 25  5 50  1  4 15\n":                      "the first: line 5, \"4 1 712000100020000",
		"1700000000 4  1    0 712000   1000 200000    0    0     0     8 5000 7000 25  5 50  1  4 15\n": "line 5, ",
		" 4  1      0 712000   1000 200000    0    0     0     8 5000 7000 25  5 5  1  4 15\n":          "do not add up to 100 %",
	} {
		_, warns := read(t, newer+bad+newer)
		if len(warns) != 1 || !strings.Contains(warns[0], says) {
			t.Errorf("%q: %q, want %s", bad, warns, says)
		}
	}
}

func TestWriteText(t *testing.T) {
	rows, _ := read(t, newer)
	var buf bytes.Buffer
	if err := WriteText(&buf, rows); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(newer, buf.String()); d != "" {
		t.Errorf("not the familiar layout: %s", d)
	}
	var r Row
	r.Set(Us, 99.6)
	r.Set(Wa, 0)
	buf.Reset()
	if err := WriteText(&buf, []Row{r}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(buf.String(), "gu") || !strings.Contains(buf.String(), "n/a") {
		t.Errorf("missing values:\n%s", &buf)
	}
	again, _ := read(t, buf.String())
	check(t, again[0], map[Column]float64{Us: 100, Wa: 0})
	missing(t, again[0], Cs, St)
}

func FuzzReadText(f *testing.F) {
	f.Add([]byte(newer))
	f.Add([]byte(toyboxTop + "\n r b w swpd cs us\n1 2 3 4 5 NaN\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, _, err := ReadText(bytes.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteText(&out, rows); err != nil {
			t.Fatal(err)
		}
		again, _, err := ReadText(&out)
		if err != nil || len(again) != len(rows) {
			t.Fatalf("%d rows became %d: %v", len(rows), len(again), err)
		}
	})
}

func FuzzReadCSV(f *testing.F) {
	f.Add([]byte("mono_ns,seconds,r,cs,note\n1,2,3,n/a,why\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := ReadCSV(bytes.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteCSV(&out, rows); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadCSV(&out); err != nil || len(again) != len(rows) {
			t.Fatalf("%d rows became %d: %v", len(rows), len(again), err)
		}
	})
}
