package targets

import (
	"os"
	"testing"
)

// A target may print anything: the readers neither crash nor believe it.
func FuzzProbe(f *testing.F) {
	f.Add([]byte("\n@@m uname\nLinux\nh\n6.1.0\n#1\nmips\n\n@@m boot_id\n" + idOld + "\n\n@@m online\n0-1\n\n@@m sched\n/proc/sys/kernel/rr_interval=6\n\n@@m end\n"))
	f.Add([]byte("\n@@m online\n9-2\n\n@@m uptime\nnan -inf\n\n@@m end\n"))
	f.Add([]byte("\n@@m elf\n\x7fELF\x01\x02\x01\n@@m elf_hex\n7f 45 4c 46\n@@m config.gz\n\x1f\x8b\n@@m df\na b c 5% /\n@@m mounts\na / overlay upperdir=/x\n@@m end\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ev, err := readProbe(b, "m")
		if err != nil {
			return
		}
		var r BootRecord
		ev.Fill(&r)
		if r.BootID != "" && !wellFormed(r.BootID) {
			t.Errorf("boot_id %q", r.BootID)
		}
		if r.CPUs < 0 || r.UptimeS < 0 {
			t.Errorf("cpus %d, uptime %v", r.CPUs, r.UptimeS)
		}
	})
}

func FuzzKernelLog(f *testing.F) {
	for _, name := range []string{"dmesg_before.txt", "dmesg_after.txt"} {
		b, err := os.ReadFile("testdata/dmesg/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte("[    1.000000] x\n"))
		f.Add([]byte("x\n"), b)
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		d := KernelLog{Text: after}.Since(KernelLog{Text: before})
		if len(d.Signs) > len(d.New) {
			t.Errorf("%+v", d)
		}
		if same := (KernelLog{Text: after}).Since(KernelLog{Text: after}); len(same.New) != 0 && len(logLines(after)) > 0 {
			t.Errorf("a log is news to itself: %q", same.New)
		}
	})
}
