package vmstat

import (
	"fmt"
	"slices"

	"kernsweep/workloads/wire"
)

// The largest rates that are believed when a counter wrapped: far above what a
// machine old enough to have 32-bit counters can do.
const (
	mostEvents = 2e6 // interrupts or switches per second
	mostPages  = 1e6 // pages swapped per second, 4 GB/s
	mostKB     = 4e6 // kB paged per second
)

const (
	userHZ     = 100 // ticks per second in /proc/stat on every architecture we run on
	pageKB     = 4
	smallSlip  = 2            // ticks a counter may go back without a word
	checkAfter = 2            // seconds before the tick check means something
	shortest   = 2.0 / userHZ // seconds; less may pass between two ticks, as at the end of a trial
)

// tooShort is no complaint: the other intervals have the shares.
const tooShort = "CPU shares are missing: the interval is shorter than a tick"

// Rows computes one row per interval between snapshots, from raw counters and
// the target's monotonic clock. Warnings are sentences about what is missing or
// not to be trusted, each said once.
func Rows(snaps []wire.Snapshot) ([]Row, []string) {
	var rows []Row
	var w warnings
	if len(snaps) > 1 {
		w.whole(snaps)
	}
	for i := 1; i < len(snaps); i++ {
		a, b := parse(snaps[i-1]), parse(snaps[i])
		if b.monoNS <= a.monoNS {
			w.add("a sample was left out: the clock did not advance since the one before")
			continue
		}
		r := Row{MonoNS: b.monoNS, Seconds: seconds(a, b)}
		state(&r, b)
		paging(&r, a, b, &w)
		events(&r, a, b)
		shares(&r, a, b, &w)
		if r.Note != "" && r.Note != tooShort {
			w.add(r.Note)
		}
		rows = append(rows, r)
	}
	return rows, w
}

func seconds(a, b counters) float64 { return float64(b.monoNS-a.monoNS) / 1e9 }

// state fills the columns that are levels.
func state(r *Row, c counters) {
	set := func(col Column, m map[string]uint64, key string) {
		if v, ok := m[key]; ok {
			r.Set(col, float64(v))
		}
	}
	set(R, c.stat, "procs_running")
	set(B, c.stat, "procs_blocked")
	set(Free, c.mem, "MemFree")
	set(Buff, c.mem, "Buffers")
	set(Cache, c.mem, "Cached")
	if v, ok := c.mem["SReclaimable"]; ok && r.has[Cache] {
		r.Set(Cache, r.value[Cache]+float64(v))
	}
	total, ok := c.mem["SwapTotal"]
	left, ok2 := c.mem["SwapFree"]
	if ok && ok2 && left <= total {
		r.Set(Swpd, float64(total-left))
	}
}

// paging fills si, so, bi, bo. The kernel keeps paged sectors and prints half of
// them, so a 32-bit one wraps at 2^31 kB.
func paging(r *Row, a, b counters, w *warnings) {
	rate(r, Si, a.vm, b.vm, "pswpin", 32, mostPages, pageKB)
	rate(r, So, a.vm, b.vm, "pswpout", 32, mostPages, pageKB)
	rate(r, Bi, a.vm, b.vm, "pgpgin", 31, mostKB, 1)
	rate(r, Bo, a.vm, b.vm, "pgpgout", 31, mostKB, 1)
	if r.value[Si]+r.value[So] > 0 {
		w.add("si and so are for pages of 4 kB")
	}
}

func events(r *Row, a, b counters) {
	rate(r, In, a.stat, b.stat, "intr", 32, mostEvents, 1)
	rate(r, Cs, a.stat, b.stat, "ctxt", 32, mostEvents, 1)
}

func rate(r *Row, c Column, a, b map[string]uint64, key string, bits uint, most, unit float64) {
	x, ok := a[key]
	y, ok2 := b[key]
	if !ok || !ok2 {
		return
	}
	d, why := Delta(x, y, bits, most*r.Seconds)
	if why != "" {
		r.note(fmt.Sprintf("%s is missing: %s", c, why))
		return
	}
	r.Set(c, float64(d)*unit/r.Seconds)
}

// shares fills the CPU columns. guest is already in user and guest_nice in nice.
func shares(r *Row, a, b counters, w *warnings) {
	n := min(len(a.ticks), len(b.ticks))
	if n < 4 {
		return
	}
	if !slices.Equal(a.cpus, b.cpus) {
		r.note("CPU shares are missing: the set of CPUs changed")
		return
	}
	var d [tickFields]float64
	for i := range n {
		d[i] = float64(int64(b.ticks[i] - a.ticks[i]))
		if d[i] < 0 {
			if d[i] < -smallSlip {
				r.note(fmt.Sprintf("%s went back by %.0f ticks, taken as 0", tickName(i), -d[i]))
			}
			d[i] = 0
		}
	}
	var total float64
	for _, v := range d[:guest] {
		total += v
	}
	if total == 0 && r.Seconds < shortest {
		r.note(tooShort)
		return
	}
	if total == 0 {
		r.note("CPU shares are missing: no tick was counted")
		return
	}
	pct := func(v float64) float64 { return 100 * v / total }
	virtual := min(d[guest], d[user]) + min(d[guestNice], d[nice])
	r.Set(Us, pct(d[user]+d[nice]-virtual))
	r.Set(Sy, pct(d[system]+d[irq]+d[softirq]))
	r.Set(Id, pct(d[idle]))
	if n > iowait {
		r.Set(Wa, pct(d[iowait]))
	}
	if n > steal {
		r.Set(St, pct(d[steal]))
	}
	if n > guest {
		r.Set(Gu, pct(virtual))
	}
}

type warnings []string

// mostWarnings keeps a long trial with one complaint per sample readable; the
// rows carry every note.
const mostWarnings = 10

func (w *warnings) add(s string) {
	if len(*w) < mostWarnings && !slices.Contains(*w, s) {
		*w = append(*w, s)
	}
}

// whole adds what only the first and the last snapshot together tell.
func (w *warnings) whole(snaps []wire.Snapshot) {
	a, b := parse(snaps[0]), parse(snaps[len(snaps)-1])
	for _, f := range []struct {
		missing       bool
		file, columns string
	}{
		{b.ticks == nil, "/proc/stat", "r, b, in, cs and the CPU columns"},
		{len(b.vm) == 0, "/proc/vmstat", "si, so, bi and bo"},
		{len(b.mem) == 0, "/proc/meminfo", "swpd, free, buff and cache"},
	} {
		if f.missing {
			w.add(f.columns + " are missing: " + f.file + " could not be read")
		}
	}
	if s := tickCheck(a, b); s != "" {
		w.add(s)
	}
}

// tickCheck compares the ticks counted with the ticks that must have passed.
func tickCheck(a, b counters) string {
	n := min(len(a.ticks), len(b.ticks), guest)
	if dt := seconds(a, b); dt >= checkAfter && n >= 4 && len(b.cpus) > 0 && slices.Equal(a.cpus, b.cpus) {
		var sum float64
		for i := range n {
			sum += max(0, float64(int64(b.ticks[i]-a.ticks[i])))
		}
		if hz := sum / dt / float64(len(b.cpus)); hz < 0.9*userHZ || hz > 1.1*userHZ {
			return fmt.Sprintf("CPU shares are doubtful: %.0f ticks a second were counted on each CPU, %d are due", hz, userHZ)
		}
	}
	return ""
}
