package agent

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"kernsweep/workloads/wire"
)

func cutAll(f source, text string, size int) string {
	c := cutter{source: &f, stat: f.typ == wire.TypeStat}
	var out []byte
	for b := []byte(text); len(b) > 0 && !c.done; {
		n := min(size, len(b))
		out = c.cut(out, b[:n])
		b = b[n:]
	}
	return string(out)
}

func TestCutKeepsTheWantedLines(t *testing.T) {
	s := newSampler()
	defer s.close()
	tests := []struct {
		file     int
		in, want string
	}{
		{0, "cpu  1 2 3\ncpu0 1 2 3\nintr 77 1 2 3 4 5\nctxt 9\nbtime 5\nprocs_running 1\nsoftirq 8 1 2\n",
			"cpu  1 2 3\ncpu0 1 2 3\nintr 77\nctxt 9\nbtime 5\nprocs_running 1\nsoftirq 8 1 2\n"},
		{0, "cpu  1 2\nintr 77\nctxt 9\n", "cpu  1 2\nintr 77\nctxt 9\n"},
		{0, "cpu  1 2\nintr 77 1", "cpu  1 2\nintr 77\n"},
		{1, "nr_free_pages 3\npgpgin 1\npgpgout 2\npgpgoutx 3\n\npswpin 0\npswpout 4\npgalloc 9\n",
			"pgpgin 1\npgpgout 2\npswpin 0\npswpout 4\n"},
		{1, "nr_free_pages 3\n", ""},
		{2, "MemTotal:  1 kB\nMemFree: 2 kB\nMemShared: 3 kB\nCached: 4 kB\nSwapCached: 5 kB\nActive: 6 kB\nSwapTotal: 0 kB\n",
			"MemTotal:  1 kB\nMemFree: 2 kB\nCached: 4 kB\nSwapCached: 5 kB\nSwapTotal: 0 kB\n"},
		{3, "0.1 0.2 0.3 1/99 1234\n", "0.1 0.2 0.3 1/99 1234\n"},
	}
	for _, tt := range tests {
		for size := 1; size <= len(tt.in); size++ {
			if got := cutAll(s.files[tt.file], tt.in, size); got != tt.want {
				t.Fatalf("%s in chunks of %d:\n%q\nwant\n%q", s.files[tt.file].path, size, got, tt.want)
			}
		}
	}
}

func TestSampleReadsTheRealFilesWithoutAllocation(t *testing.T) {
	s := newSampler()
	defer s.close()
	var spool bytes.Buffer
	w, err := wire.NewWriter(&spool, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.sample(w)
	s.sample(w)
	for _, want := range []string{"\ncpu0 ", "\nctxt ", "pgpgin ", "pswpout ", "MemFree:", "SwapTotal:"} {
		if strings.Count(spool.String(), want) != 2 {
			t.Errorf("two samples do not hold %q twice:\n%s", want, spool.String())
		}
	}
	null, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if w, err = wire.NewWriter(null, 0); err != nil {
		t.Fatal(err)
	}
	s.sample(w)
	if n := testing.AllocsPerRun(10, func() { s.sample(w) }); n != 0 {
		t.Errorf("a sample allocates %v times", n)
	}
}

func BenchmarkSample(b *testing.B) {
	s := newSampler()
	defer s.close()
	null, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	w, err := wire.NewWriter(null, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.sample(w)
	}
}
