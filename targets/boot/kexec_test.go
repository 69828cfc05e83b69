package boot

import (
	"strings"
	"testing"

	"kernsweep/targets"
)

// One guest, started with 6.1, goes from kernel to kernel by our helper.
func TestKexecGuest(t *testing.T) {
	t.Parallel()
	base := guestKernel(t, "6.1")
	m, tg := guest(t, guestArgs(t, base, kernelLine+` lab.mark="a b" BOOT_IMAGE=/x`)...)
	tg.Boot = new(Kexec)
	powerOn(t, m, tg)
	if !strings.HasPrefix(release(t, tg), "6.1.") {
		t.Fatalf("the guest runs %s", release(t, tg))
	}
	next := guestKernel(t, "6.12")
	next.Cmdline = "lab.only=next"
	rec, err := bootGuest(t, tg, next)
	if err != nil {
		t.Fatal(err)
	}
	want := kernelLine + ` lab.mark="a b" kernsweep.own lab.only=next ` + rec.Nonce
	if !rec.Proven || !strings.HasPrefix(rec.Release, "6.12.") || rec.Cmdline != want || !strings.Contains(strings.Join(rec.Notes, "\n"), "our own helper") {
		t.Errorf("6.1 to 6.12: %+v", rec)
	}
	back, err := bootGuest(t, tg, base)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(back.Release, "6.1.") || strings.Contains(back.Cmdline, "lab.only") || strings.Count(back.Cmdline, "kernsweep.own") != 1 {
		t.Errorf("6.12 to 6.1: %+v", back)
	}
	if left, err := shell(t.Context(), tg.Held, "ls -a /dev/shm /tmp /run"); err != nil || strings.Contains(left, "kernsweep-") {
		t.Errorf("left behind: %v %s", err, left)
	}

	bad := guestKernel(t, "6.12")
	bad.Cmdline = "lab.fault=panic"
	_, err = bootGuest(t, tg, bad)
	wantStage(t, err, targets.StagePanic)
	powerOn(t, m, tg)
	if !strings.HasPrefix(release(t, tg), "6.1.") {
		t.Errorf("after the power cycle: %s", release(t, tg))
	}

	if _, err := shell(t.Context(), tg.Held, "echo 1 >/proc/sys/kernel/kexec_load_disabled"); err != nil {
		t.Fatal(err)
	}
	_, err = bootGuest(t, tg, next)
	if err == nil || !strings.Contains(err.Error(), "kexec_load_disabled is 1") {
		t.Errorf("switched off: %v", err)
	}
}
