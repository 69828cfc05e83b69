package vmstat

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kernsweep/workloads/wire"
)

// snap makes a snapshot; cpu is the rest of the cpu line.
func snap(atSeconds float64, cpu string, more string) wire.Snapshot {
	return wire.Snapshot{
		MonoNS: int64(atSeconds * 1e9),
		Stat:   []byte("cpu  " + cpu + "\ncpu0 1 1 1 1\n" + more),
		VMStat: []byte("pgpgin 100\npgpgout 200\npswpin 0\npswpout 0\n"),
		Mem:    []byte("MemTotal: 16000 kB\nMemFree: 9000 kB\nBuffers: 600 kB\nCached: 4000 kB\nSReclaimable: 100 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n"),
	}
}

func check(t *testing.T, r Row, want map[Column]float64) {
	t.Helper()
	for c, v := range want {
		got, ok := r.Get(c)
		if !ok || math.Abs(got-v) > 1e-9 {
			t.Errorf("%s = %v (there: %v), want %v", c, got, ok, v)
		}
	}
}

func missing(t *testing.T, r Row, cols ...Column) {
	t.Helper()
	for _, c := range cols {
		if v, ok := r.Get(c); ok {
			t.Errorf("%s = %v, want it missing", c, v)
		}
	}
}

func TestRows(t *testing.T) {
	a := snap(10, "100 0 50 850 0 0 0 0 40 0", "intr 1000\nctxt 2000\nprocs_running 1\nprocs_blocked 0\n")
	b := snap(12, "180 20 70 900 10 5 5 10 100 10", "intr 1600\nctxt 2010\nprocs_running 3\nprocs_blocked 2\n")
	b.VMStat = []byte("pgpgin 300\npgpgout 200\npswpin 5\npswpout 0\n")
	rows, warns := Rows([]wire.Snapshot{a, b})
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	// 200 ticks: user 80 of which guest 60, nice 20 of which guest_nice 10.
	check(t, rows[0], map[Column]float64{R: 3, B: 2, Swpd: 30, Free: 9000, Buff: 600, Cache: 4100,
		Si: 10, So: 0, Bi: 100, Bo: 0, In: 300, Cs: 5, Us: 15, Sy: 15, Id: 25, Wa: 5, St: 5, Gu: 35})
	if len(warns) != 1 || !strings.Contains(warns[0], "4 kB") {
		t.Errorf("warnings %q", warns)
	}
	if pages, ok := SwapTraffic([]wire.Snapshot{a, b}); pages != 5 || !ok {
		t.Errorf("swap traffic %d %v", pages, ok)
	}
	s := Summarise(rows)
	want := Summary{Samples: 1, Seconds: 2, Switches: 5, Interrupts: 300, User: 15, System: 15, Idle: 25, Wait: 5, Steal: 5}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
}

func TestOldKernels(t *testing.T) {
	a, b := snap(0, "0 0 0 0", "page 10 20\nswap 0 0\nctxt 1\n"), snap(1, "50 0 0 50", "page 30 20\nswap 0 0\nctxt 2\n")
	a.VMStat, b.VMStat, a.Mem, b.Mem = nil, nil, nil, nil
	rows, warns := Rows([]wire.Snapshot{a, b})
	check(t, rows[0], map[Column]float64{Bi: 20, Bo: 0, Us: 50, Id: 50, Cs: 1})
	missing(t, rows[0], Free, Swpd, Wa, St, Gu, In, R)
	if d := cmp.Diff([]string{"swpd, free, buff and cache are missing: /proc/meminfo could not be read"}, warns); d != "" {
		t.Error(d)
	}
	a.Stat = []byte("cpu 1 1 1 1\n")
	b.Stat = a.Stat
	_, warns = Rows([]wire.Snapshot{a, b})
	if !strings.Contains(strings.Join(warns, "\n"), "/proc/vmstat could not be read") {
		t.Errorf("no word about /proc/vmstat: %q", warns)
	}
	if got := Summarise(nil).Missing; len(got) != 7 {
		t.Errorf("missing of nothing: %q", got)
	}
}

func TestTraps(t *testing.T) {
	two := func(a, b wire.Snapshot) (Row, string) {
		rows, warns := Rows([]wire.Snapshot{a, b})
		return rows[0], strings.Join(warns, "\n")
	}
	t.Run("iowait goes back a little", func(t *testing.T) {
		r, w := two(snap(0, "0 0 0 0 100", ""), snap(1, "100 0 0 0 98", ""))
		check(t, r, map[Column]float64{Us: 100, Wa: 0})
		if w != "" {
			t.Errorf("warned: %s", w)
		}
	})
	t.Run("idle falls far", func(t *testing.T) {
		r, w := two(snap(0, "0 0 0 5000 0", ""), snap(1, "100 0 0 3577 0", ""))
		check(t, r, map[Column]float64{Us: 100, Id: 0})
		if !strings.Contains(w, "idle went back by 1423 ticks") {
			t.Errorf("warned: %s", w)
		}
	})
	t.Run("CPU unplugged", func(t *testing.T) {
		a, b := snap(0, "0 0 0 0 0", "cpu1 1 1 1 1\nctxt 5\n"), snap(1, "10 0 0 0 0", "ctxt 9\n")
		r, w := two(a, b)
		missing(t, r, Us, Sy, Id, Wa)
		check(t, r, map[Column]float64{Cs: 4})
		if !strings.Contains(w, "set of CPUs changed") {
			t.Errorf("warned: %s", w)
		}
		if got := CPUsChanged([]wire.Snapshot{a, b}); got != "the set of CPUs changed: cpu0 cpu1 became cpu0" {
			t.Error(got)
		}
	})
	t.Run("wraps", func(t *testing.T) {
		a := snap(0, "0 0 0 0", "ctxt 4294967000\nintr 9000000000\n")
		b := snap(1, "100 0 0 0", "ctxt 704\nintr 5\n")
		a.VMStat, b.VMStat = []byte("pgpgin 2147483600\npswpin 7\n"), []byte("pgpgin 48\npswpin 3\n")
		r, w := two(a, b)
		check(t, r, map[Column]float64{Cs: 1000, Bi: 96})
		missing(t, r, In, Si)
		if !strings.Contains(w, "in is missing: it fell, and is too large to have wrapped") {
			t.Errorf("warned: %s", w)
		}
	})
	t.Run("ticks lost", func(t *testing.T) {
		_, w := two(snap(0, "0 0 0 0", ""), snap(10, "500 0 0 0", ""))
		if !strings.Contains(w, "50 ticks a second were counted on each CPU, 100 are due") {
			t.Errorf("warned: %s", w)
		}
	})
	t.Run("clock stands", func(t *testing.T) {
		rows, w := Rows([]wire.Snapshot{snap(1, "0 0 0 0", ""), snap(1, "0 0 0 0", "")})
		if len(rows) != 0 || len(w) != 1 {
			t.Errorf("%v %q", rows, w)
		}
	})
}

func TestNoTick(t *testing.T) {
	rows, w := Rows([]wire.Snapshot{snap(0, "7 0 0 0", ""), snap(1, "7 0 0 0", "")})
	missing(t, rows[0], Us, Id)
	if len(w) == 0 || !strings.Contains(w[0], "no tick was counted") {
		t.Errorf("warned: %q", w)
	}
	// The last sample may follow the one before within a tick: no reason to doubt.
	rows, w = Rows([]wire.Snapshot{snap(0, "7 0 0 0", ""), snap(0.002, "7 0 0 0", "")})
	missing(t, rows[0], Us, Id)
	if len(w) != 0 || !strings.Contains(rows[0].Note, "shorter than a tick") {
		t.Errorf("warned: %q, note %q", w, rows[0].Note)
	}
}

func TestNetCounters(t *testing.T) {
	read := func(rx, packets string) NetCounters {
		text := "Inter-|   Receive     |  Transmit\n face |bytes packets\n  lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n" +
			"  br0:" + rx + " " + packets + " 0 0 0 0 0 0 70 7 0 0 0 0 0 0\nbad: x y\n"
		all := ReadNetDev([]byte(text))
		if len(all) != 2 {
			t.Fatalf("%v", all)
		}
		return all["br0"]
	}
	const fastEthernet = 12.5e6
	before, after := read("4294900000", "500"), read("1032704", "900")
	if d, why := Received(before, after, 10, fastEthernet, true); d != 1100000 || why != "" {
		t.Errorf("one wrap: %d %q", d, why)
	}
	if _, why := Received(before, after, 3600, fastEthernet, true); why == "" {
		t.Error("an hour at full speed: the number of wraps is open")
	}
	if _, why := Received(after, before, 3600, fastEthernet, true); why == "" {
		t.Error("risen, but wraps in between are possible")
	}
	if _, why := Received(before, after, 10, fastEthernet, false); why == "" {
		t.Error("a 64-bit counter does not wrap")
	}
	if _, why := Received(read("4294967295", "1"), read("4294967295", "900"), 10, fastEthernet, true); !strings.Contains(why, "saturated") {
		t.Errorf("saturated: %q", why)
	}
	if d, why := Sent(before, after, 10, fastEthernet, true); d != 0 || why == "" && before.TxPackets != after.TxPackets {
		t.Errorf("sent %d %q", d, why)
	}
}

func TestDeltaProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]uint{31, 32}).Draw(t, "bits")
		size := uint64(1) << bits
		start := rapid.Uint64Range(0, size-1).Draw(t, "start")
		grown := rapid.Uint64Range(0, size/2).Draw(t, "grown")
		d, why := Delta(start, (start+grown)%size, bits, float64(size)/2)
		if why != "" || d != grown {
			t.Fatalf("grew by %d, got %d %q", grown, d, why)
		}
	})
}

func TestSharesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 10).Draw(t, "fields")
		field := rapid.Uint64Range(0, 1<<40)
		line := func(name string) string {
			var f []string
			for i := range n {
				f = append(f, fmt.Sprint(field.Draw(t, fmt.Sprint(name, i))))
			}
			return strings.Join(f, " ")
		}
		rows, _ := Rows([]wire.Snapshot{snap(0, line("a"), ""), snap(1, line("b"), "")})
		var sum float64
		for c := Us; c <= Gu; c++ {
			v, ok := rows[0].Get(c)
			if v < 0 || v > 100 || ok && math.IsNaN(v) {
				t.Fatalf("%s = %v", c, v)
			}
			sum += v
		}
		if _, ok := rows[0].Get(Us); ok && math.Abs(sum-100) > 1e-6 {
			t.Fatalf("shares add up to %v", sum)
		}
	})
}

func TestCSVProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []Row
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			r := Row{MonoNS: rapid.Int64().Draw(t, "ns"), Seconds: float64(rapid.IntRange(0, 99).Draw(t, "s")),
				Note: rapid.SampledFrom([]string{"", `a "quoted", note; and more`}).Draw(t, "note")}
			for c := range columns {
				if rapid.Bool().Draw(t, "has") {
					r.Set(c, float64(rapid.IntRange(0, 1e9).Draw(t, "v"))/8)
				}
			}
			rows = append(rows, r)
		}
		var buf bytes.Buffer
		if err := WriteCSV(&buf, rows); err != nil {
			t.Fatal(err)
		}
		got, err := ReadCSV(&buf)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(rows, got, cmp.AllowUnexported(Row{})); d != "" {
			t.Fatal(d)
		}
	})
}

func TestSpent(t *testing.T) {
	snaps := []wire.Snapshot{snap(0, "0 0 0 0 0 0 0 0", "procs_running 4\n"), snap(10, "600 200 50 25 25 25 25 50", "procs_running 1\n")}
	got, ok := Spent(snaps)
	if !ok || got != (CPUTime{User: 8, System: 0.5, IRQ: 0.5, Idle: 0.5, Total: 10}) || got.Busy() != 95 {
		t.Errorf("%+v %v", got, ok)
	}
	if n, ok := Runnable(snaps[0]); n != 2 || !ok {
		t.Errorf("%d runnable, %v", n, ok)
	}
	if n, ok := Runnable(snaps[1]); n != 0 || !ok {
		t.Errorf("%d runnable, %v", n, ok)
	}
	for name, odd := range map[string][]wire.Snapshot{"one": snaps[:1], "none": nil, "no tick": {snaps[0], snaps[0]}, "no file": {{}, {}}} {
		if _, ok := Spent(odd); ok {
			t.Errorf("%s: something was spent", name)
		}
		if _, _, ok := Busiest(odd); ok {
			t.Errorf("%s: a CPU was busy", name)
		}
	}
	if _, ok := Runnable(wire.Snapshot{}); ok {
		t.Error("no file tells how many are runnable")
	}
}

func TestBusiestCPU(t *testing.T) {
	at := func(a, b string) wire.Snapshot {
		return wire.Snapshot{Stat: []byte("cpu 0 0 0 0\ncpu0 " + a + "\ncpu1 " + b + "\n")}
	}
	cpu, got, ok := Busiest([]wire.Snapshot{at("0 0 0 0", "0 0 0 0"), at("10 0 0 90", "80 0 5 15")})
	if !ok || cpu != "cpu1" || got.Busy() != 85 {
		t.Errorf("%s %+v %v", cpu, got, ok)
	}
}

func TestSchedStat(t *testing.T) {
	const cpus = "\ncpu0 0 0 5 1 9 8 100 2000 30\ncpu1 0 0 5 1 9 8 100 4000 50"
	for text, want := range map[string]string{
		"version 15\ntimestamp 4294" + cpus:   "",
		"version 14" + cpus:                   "",
		"version 12" + cpus:                   "/proc/schedstat is of a version without nanoseconds",
		"version 15":                          "/proc/schedstat names no CPU",
		"version 15\ncpu0 0 0 0 0 0 0 1 -2 3": "/proc/schedstat has a line without numbers",
		"":                                    "this kernel has no /proc/schedstat",
		"cpu0":                                "/proc/schedstat is of a version without nanoseconds",
	} {
		s, why := ReadSchedStat(text)
		if why != want || why == "" && s != (SchedStat{DelayNS: 6000, Slices: 80, CPUs: 2}) {
			t.Errorf("%q: %+v, %q", text, s, why)
		}
	}
}
