package vmstat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kernsweep/workloads/wire"
)

// ticks of the cpu line of /proc/stat, in the kernel's order.
const (
	user = iota
	nice
	system
	idle
	iowait
	irq
	softirq
	steal
	guest
	guestNice
	tickFields
)

func tickName(i int) string {
	return [tickFields]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"}[i]
}

// counters is a snapshot, read. Absent keys are absent in the kernel's files.
type counters struct {
	monoNS int64
	ticks  []uint64 // as many as the kernel prints
	cpus   []string // names of the per-CPU lines, sorted
	stat   map[string]uint64
	vm     map[string]uint64
	mem    map[string]uint64
}

func parse(s wire.Snapshot) counters {
	c := counters{monoNS: s.MonoNS, stat: map[string]uint64{}, vm: pairs(s.VMStat), mem: pairs(s.Mem)}
	for _, line := range strings.Split(string(s.Stat), "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch {
		case f[0] == "cpu":
			c.ticks = numbers(f[1:], tickFields)
		case strings.HasPrefix(f[0], "cpu"):
			c.cpus = append(c.cpus, f[0])
		case f[0] == "page" && len(f) > 2: // Linux 2.4
			put(c.vm, "pgpgin", f[1])
			put(c.vm, "pgpgout", f[2])
		case f[0] == "swap" && len(f) > 2:
			put(c.vm, "pswpin", f[1])
			put(c.vm, "pswpout", f[2])
		default:
			put(c.stat, f[0], f[1])
		}
	}
	slices.Sort(c.cpus)
	return c
}

// pairs reads "name value" and "name: value kB" lines.
func pairs(text []byte) map[string]uint64 {
	m := map[string]uint64{}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) >= 2 {
			put(m, strings.TrimSuffix(f[0], ":"), f[1])
		}
	}
	return m
}

func put(m map[string]uint64, key, value string) {
	if v, err := strconv.ParseUint(value, 10, 64); err == nil {
		m[key] = v
	}
}

func numbers(f []string, most int) []uint64 {
	var n []uint64
	for _, s := range f[:min(len(f), most)] {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			break
		}
		n = append(n, v)
	}
	return n
}

// CPUsChanged says in a sentence how the set of running CPUs changed during the
// snapshots, "" when it did not. A trial in which it did is invalid.
func CPUsChanged(snaps []wire.Snapshot) string {
	var before []string
	for _, s := range snaps {
		now := parse(s).cpus
		if len(now) == 0 {
			continue
		}
		if before != nil && !slices.Equal(before, now) {
			return "the set of CPUs changed: " + strings.Join(before, " ") + " became " + strings.Join(now, " ")
		}
		before = now
	}
	return ""
}

// SwapTraffic is the number of pages swapped in or out during the snapshots; ok
// is false when the kernel did not say.
func SwapTraffic(snaps []wire.Snapshot) (pages uint64, ok bool) {
	if len(snaps) < 2 {
		return 0, false
	}
	a, b := parse(snaps[0]), parse(snaps[len(snaps)-1])
	for _, key := range []string{"pswpin", "pswpout"} {
		x, okA := a.vm[key]
		y, okB := b.vm[key]
		if !okA || !okB {
			return 0, false
		}
		d, why := Delta(x, y, 32, mostPages*seconds(a, b))
		if why != "" {
			return 0, false
		}
		pages += d
	}
	return pages, true
}

// CPUs is the number of running CPUs in the last snapshot that tells, 0 when
// none does.
func CPUs(snaps []wire.Snapshot) int {
	for i := len(snaps) - 1; i >= 0; i-- {
		if n := len(parse(snaps[i]).cpus); n > 0 {
			return n
		}
	}
	return 0
}

// Swapped says what it means that pages were swapped.
func Swapped(pages uint64) string {
	return fmt.Sprintf("%d pages were swapped during the run: the figures measure the swap device", pages)
}
