package validity

import (
	"strings"
	"testing"

	"kernsweep/targets"
	"kernsweep/workloads"
)

const quietBoot = `[    0.000000] Linux version 2.6.30.5
[    1.204000] jffs2: version 2.2. (NAND) (SUMMARY)
[    1.310000] 5 cmdlinepart partitions found on MTD device
[    2.100000] random: an error that is none
`

func bootRig(t *testing.T, boots int, change func(n int, r *targets.BootRecord), logs map[int]string) *rig {
	r := newRig(t, false)
	r.cell("ap", "iperf.lan", "default", metrics(workloads.HigherIsBetter, "throughput"), "cfs")
	for range boots {
		n := r.boot("ap", "cfs", nil)
		if change != nil {
			change(n, &r.recs[len(r.recs)-1].Boot.Record)
		}
		if text, ok := logs[n]; ok {
			r.file("ap", n, "dmesg.txt", text)
		}
	}
	return r
}

func TestKernelLogAtBoot(t *testing.T) {
	flash := quietBoot + "[    9.120000] jffs2: error: (512) jffs2_get_inode_nodes: wrong node header CRC 0x1 != 0x2\n"
	for _, c := range []struct {
		name string
		logs map[int]string
		want string
		boot int
	}{
		{"quiet", map[int]string{1: quietBoot, 2: quietBoot}, "", 0},
		{"flash errors in one boot", map[int]string{1: quietBoot, 2: flash}, "in 1 of 3 boots, first in boot 2: [    9.120000] jffs2: error", 2},
		{"flash errors in all boots", map[int]string{1: flash, 2: strings.ReplaceAll(flash, "9.12", "9.31"), 3: flash}, "in 3 of 3 boots, first in boot 1", 0},
		{"a warning", map[int]string{3: quietBoot + "[    3.1] x\n[    3.200000] WARNING: CPU: 0 PID: 1 at drivers/net/foo.c:120 foo_init+0x40/0x90\n"}, "in 1 of 3 boots, first in boot 3", 3},
		{"no log", nil, "", 0},
		{"no text", map[int]string{1: "", 2: "\x00\xff\xfe", 3: strings.Repeat("x", 300_000)}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := bootRig(t, 3, nil, c.logs).found("kernel log at boot")
			if c.want == "" {
				none(t, got)
				return
			}
			if f := one(t, got); f.Hard || f.Boot != c.boot || f.Kernel != "cfs" || !strings.HasPrefix(f.Evidence, c.want) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestUnprovenBoots(t *testing.T) {
	none(t, bootRig(t, 3, nil, nil).found("unproven boots"))
	r := bootRig(t, 3, func(n int, r *targets.BootRecord) {
		if n > 1 {
			r.Proven, r.Unproven = false, "the boot method starts nothing"
		}
	}, nil)
	if f := one(t, r.found("unproven boots")); f.Boot != 0 || f.Evidence != "2 of 3 boots" || !strings.HasSuffix(f.Text, "the boot method starts nothing") {
		t.Errorf("%+v", f)
	}
	r = bootRig(t, 3, func(n int, r *targets.BootRecord) { r.Proven = n != 2 }, nil)
	if f := one(t, r.found("unproven boots")); f.Boot != 2 || !strings.HasSuffix(f.Text, "no reason is recorded") {
		t.Errorf("%+v", f)
	}
}

func TestBootCountedTwice(t *testing.T) {
	none(t, bootRig(t, 3, nil, nil).found("boot counted twice"))
	none(t, bootRig(t, 3, func(_ int, r *targets.BootRecord) { r.BootID = "" }, nil).found("boot counted twice"))
	r := bootRig(t, 3, func(n int, r *targets.BootRecord) {
		if n == 3 {
			r.BootID = "00000000-0000-4000-8000-000000000001"
		}
		if n == 1 {
			r.BootID = "00000000-0000-4000-8000-000000000001"
		}
	}, nil)
	if f := one(t, r.found("boot counted twice")); !f.Hard || f.Boot != 3 || f.Text != "boot 3 is the same boot as 1: it counts once" {
		t.Errorf("%+v", f)
	}
}

func TestSeveralBuilds(t *testing.T) {
	none(t, bootRig(t, 3, nil, nil).found("several builds"))
	r := bootRig(t, 3, func(n int, r *targets.BootRecord) {
		if n == 2 {
			r.Version = "#2 SMP"
		}
	}, nil)
	if f := one(t, r.found("several builds")); f.Hard || f.Evidence != "2 builds in 3 boots" || len(f.Detail) != 2 {
		t.Errorf("%+v", f)
	}
}

// An imported run says once what cannot be checked, and not for each kernel.
func TestImportedRun(t *testing.T) {
	r := newRig(t, true)
	ms := metrics(workloads.LowerIsBetter, "elapsed", "user", "system")
	r.cell("box", "kernbench.k", "optimal", ms, "2.6.35", "2.6.35-ck1")
	for i, k := range []string{"2.6.35", "2.6.35-ck1"} {
		n := r.boot("box", k, func(rec *targets.BootRecord) { *rec = targets.BootRecord{Kernel: k, Unproven: "imported"} })
		r.trial(cellOf("box", k, "kernbench.k", "optimal"), n, 1, values(ms, []float64{62.91, 62.83}[i], 100, 10), nil)
	}
	if f := one(t, r.found("nothing proven")); f.Target != "" || f.Kernel != "" {
		t.Errorf("%+v", f)
	}
	none(t, r.found("unproven boots"))
	none(t, r.found("different configurations"))
	if f := one(t, r.found("image layout")); !strings.Contains(f.Evidence, "-0.13 %") {
		t.Errorf("%+v", f)
	}
}
