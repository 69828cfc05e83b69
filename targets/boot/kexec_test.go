package boot

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
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

// packed are files of this machine as a segment of a guest's initial RAM disk:
// path there -> path here.
func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for to, from := range files {
		to = filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, "cp", "-L", from, to)
	}
	return segment(t, dir)
}

// With kexec-tools there, they do it; a kernel that is locked down wants signed
// images.
func TestKexecToolsGuest(t *testing.T) {
	t.Parallel()
	kexec := targetstest.Tool(t, "kexec", "/usr/sbin/kexec", "/sbin/kexec")
	files := map[string]string{"usr/sbin/kexec": kexec}
	for f := range strings.FieldsSeq(run(t, "ldd", kexec)) {
		if strings.HasPrefix(f, "/") && !strings.Contains(f, "ld-linux") && !strings.Contains(f, "libc.so") {
			files["lib/x86_64-linux-gnu/"+filepath.Base(f)] = f
		}
	}
	base := guestKernel(t, "6.1")
	m, tg := guest(t, guestArgs(t, base, kernelLine, packed(t, files))...)
	tg.Boot = &Kexec{Dir: "/run/kexec"}
	powerOn(t, m, tg)
	next := guestKernel(t, "6.12")
	next.Cmdline = "lockdown=integrity"
	rec, err := bootGuest(t, tg, next)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(rec.Release, "6.12.") || !strings.Contains(strings.Join(rec.Notes, "\n"), "loaded by /usr/sbin/kexec -s") {
		t.Errorf("%+v", rec)
	}
	_, err = bootGuest(t, tg, base)
	if err == nil || !strings.Contains(err.Error(), "locked down (integrity) and does not accept the image's signature") {
		t.Errorf("locked down, and the image is signed by a key that this kernel does not know: %v", err)
	}
	base.Image.Kernel = unsigned(t, base.Image.Kernel)
	_, err = bootGuest(t, tg, base)
	if err == nil || !strings.Contains(err.Error(), "locked down (integrity,") || !strings.Contains(err.Error(), "this image carries no signature") {
		t.Errorf("locked down, and the image is not signed: %v", err)
	}
}

// unsigned is a copy of an image whose header names no certificates.
func unsigned(t *testing.T, image string) string {
	t.Helper()
	b, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	header := binary.LittleEndian.Uint32(b[0x3c:])
	clear(b[header+24+112+4*8:][:8]) // the fifth data directory
	return fileOf(t, "unsigned", string(b))
}

func TestKexecChecks(t *testing.T) {
	good := kexecSystem{uid: "0", machine: "x86_64", supported: true, lockdown: "none", memKB: 1 << 20}
	amd64, signed := imageFacts{arch: "amd64", pe: true}, imageFacts{arch: "amd64", pe: true, signed: true}
	for _, c := range []struct {
		name  string
		with  func(*kexecSystem)
		image imageFacts
		want  string
	}{
		{"good", func(*kexecSystem) {}, amd64, ""},
		{"unknown format", func(*kexecSystem) {}, imageFacts{}, ""},
		{"no root", func(s *kexecSystem) { s.uid = "1000" }, amd64, "needs root"},
		{"no kexec", func(s *kexecSystem) { s.supported = false }, amd64, "built without kexec"},
		{"switched off", func(s *kexecSystem) { s.disabled = true }, amd64, "kexec_load_disabled is 1"},
		{"locked", func(s *kexecSystem) { s.lockdown = "confidentiality" }, amd64, "locked down (confidentiality"},
		{"locked, signed", func(s *kexecSystem) { s.lockdown = "integrity" }, signed, ""},
		{"arm image", func(*kexecSystem) {}, imageFacts{arch: "arm64"}, "the image is for arm64, and the target's kernel is amd64 (x86_64)"},
		{"32-bit image", func(*kexecSystem) {}, imageFacts{arch: "386"}, ""},
		{"32-bit machine", func(s *kexecSystem) { s.machine = "i686" }, amd64, "the target's kernel is 386"},
		{"mips", func(s *kexecSystem) { s.machine = "mips" }, imageFacts{arch: "mipsle"}, ""},
	} {
		s := good
		c.with(&s)
		err := s.check(c.image)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	k := targets.Image{Kernel: fileOf(t, "k", strings.Repeat("k", 4<<20)), Initrd: fileOf(t, "i", strings.Repeat("i", 1<<20))}
	s := good
	s.memKB = 30 << 10
	if err := s.checkMemory(k); err == nil || !strings.Contains(err.Error(), "30720 KiB of memory available, and loading 5120 KiB of kernel and initrd takes about 31744 KiB") {
		t.Error(err)
	}
	s.memKB = 32 << 10
	if err := s.checkMemory(k); err != nil {
		t.Error(err)
	}
	if s.memKB = -1; s.checkMemory(k) != nil {
		t.Error("a kernel before 3.14 does not tell, and is refused")
	}
}

// Everything but the load itself, on this machine: its kernel may have no kexec
// or forbid it, so only what comes before is looked at.
func TestKexecSurveysOverSSH(t *testing.T) {
	onDaemon(t, func(t *testing.T, tg *targets.Target) {
		ctx, conn := held(t, tg)
		s, err := surveyKexec(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		line, err := os.ReadFile("/proc/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		if s.uid != strconv.Itoa(os.Getuid()) || s.cmdline != strings.TrimSpace(string(line)) || s.machine == "" || s.memKB <= 0 {
			t.Errorf("%+v", s)
		}
		if p, err := s.program(); kernelArch(s.machine) == "amd64" && (err != nil || p != "amd64") {
			t.Errorf("%s, %v", p, err)
		}
	})
	if err := new(Kexec).Boot(t.Context(), &targets.Target{}, targets.Kernel{}); err == nil {
		t.Error("it asked nobody and said nothing")
	}
	if (&Kexec{Dir: "tmp"}).Check() == nil || (&Kexec{oneShot: oneShot{Cmdline: Cmdline{Mode: "x"}}}).Check() == nil || new(Kexec).Check() != nil {
		t.Error("checks")
	}
	if tr := targets.TraitsOf(new(Kexec)); !tr.Cmdline || !tr.Image || !tr.Running || !tr.Returns {
		t.Errorf("%+v", tr)
	}
}

func TestKexecExplainsErrno(t *testing.T) {
	for text, want := range map[string]string{
		"kernsweep-agent: kexec_file_load: errno 1 (operation not permitted)":          "does not permit it",
		"kernsweep-agent: kexec_file_load: errno 126 (required key not available)":     "by a key that the running kernel does not know",
		"kernsweep-agent: kexec_file_load: errno 38 (function not implemented)":        "kexec_load needs kexec-tools",
		"kernsweep-agent: kexec_file_load: errno 8 (exec format error)":                "does not know the image's format",
		"kernsweep-agent: kexec_file_load: errno 14 (bad address)":                     "bad address)",
		"kernsweep-agent: /run/kernsweep-0123456789ab.k: no such file or directory":    "no such file or directory",
		"kernsweep-agent: kexec_file_load: errno 61 (no data available)":               "carries no signature",
		"kernsweep-agent: kexec_file_load: errno 16 (device or resource busy) and 126": "another kexec is under way",
	} {
		if got := new(kexecSystem).explain(errors.New(text)).Error(); !strings.HasPrefix(got, text) || !strings.Contains(got, want) {
			t.Errorf("%s", got)
		}
	}
}
