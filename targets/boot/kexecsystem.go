package boot

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"kernsweep/targets"
)

// kexecSystem is what the running system says before a kexec.
type kexecSystem struct {
	uid, machine, cmdline string
	supported, disabled   bool
	lockdown              string // "", "none", "integrity", "confidentiality"
	tool                  string // path of kexec-tools' program, "" for none
	memKB                 int64  // MemAvailable; -1 unknown
	elf                   []byte
}

// The ELF header is the running shell's.
const kexecScript = `echo "uid $(id -u)"
echo "machine $(uname -m)"
echo "cmdline $(cat /proc/cmdline)"
[ -e /sys/kernel/kexec_loaded ] && echo "supported yes"
[ "$(cat /proc/sys/kernel/kexec_load_disabled 2>/dev/null)" = 1 ] && echo "disabled yes"
[ -e /sys/kernel/security/lockdown ] || mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
echo "lockdown $(cat /sys/kernel/security/lockdown 2>/dev/null)"
echo "tool $(command -v kexec)"
echo "elf $( { od -A n -t x1 -N 64 /proc/self/exe || hexdump -v -n 64 -e '1/1 "%02x "' /proc/self/exe; } 2>/dev/null | tr -d ' \n')"
grep '^MemAvailable:' /proc/meminfo
true`

// surveyKexec asks the running system.
func surveyKexec(ctx context.Context, conn targets.Conn) (*kexecSystem, error) {
	said, err := shell(ctx, conn, kexecScript)
	if err != nil {
		return nil, err
	}
	sys := &kexecSystem{memKB: -1}
	for line := range strings.SplitSeq(said, "\n") {
		key, v, _ := strings.Cut(line, " ")
		v = strings.TrimSpace(v)
		switch key {
		case "uid":
			sys.uid = v
		case "machine":
			sys.machine = v
		case "cmdline":
			sys.cmdline = v
		case "supported":
			sys.supported = true
		case "disabled":
			sys.disabled = true
		case "lockdown": // "none [integrity] confidentiality"
			if _, rest, ok := strings.Cut(v, "["); ok {
				sys.lockdown, _, _ = strings.Cut(rest, "]")
			}
		case "tool":
			if strings.HasPrefix(v, "/") && !strings.Contains(v, "'") {
				sys.tool = v
			}
		case "elf":
			sys.elf, _ = hex.DecodeString(v) // a bad one is no ELF header
		case "MemAvailable:":
			if kb, err := strconv.ParseInt(strings.TrimSuffix(v, " kB"), 10, 64); err == nil {
				sys.memKB = kb
			}
		}
	}
	return sys, nil
}

// locked says that the kernel starts only signed kernels.
func (s *kexecSystem) locked() bool { return s.lockdown != "" && s.lockdown != "none" }

// check refuses what the running kernel would refuse, in words.
func (s *kexecSystem) check(image imageFacts) error {
	arch := kernelArch(s.machine)
	switch {
	case s.uid != "0":
		return fmt.Errorf("it needs root on the target, and the login has uid %s: set ssh.user", s.uid)
	case !s.supported:
		return errors.New("the running kernel is built without kexec (there is no /sys/kernel/kexec_loaded): boot the target by another method, or give its default kernel CONFIG_KEXEC and CONFIG_KEXEC_FILE")
	case s.disabled:
		return errors.New("kexec is switched off until the next start (/proc/sys/kernel/kexec_load_disabled is 1): find what sets kernel.kexec_load_disabled (/etc/sysctl.d), and restart the target")
	case s.locked() && !image.signed:
		return fmt.Errorf("the running kernel is locked down (%s, as Secure Boot does) and starts only signed kernels, and this image carries no signature: sign it, or switch Secure Boot or lockdown= off", s.lockdown)
	case arch != "" && image.arch != "" && arch != image.arch && !(arch == "amd64" && image.arch == "386"):
		return fmt.Errorf("the image is for %s, and the target's kernel is %s (%s)", image.arch, arch, s.machine)
	}
	return nil
}

// kernelArch is the GOARCH of a kernel by its uname -m, "" when that does not tell.
func kernelArch(m string) string {
	switch {
	case m == "x86_64":
		return "amd64"
	case len(m) == 4 && m[0] == 'i' && strings.HasSuffix(m, "86"):
		return "386"
	case m == "aarch64":
		return "arm64"
	case strings.HasPrefix(m, "arm"):
		return "arm"
	case m == "ppc64le" || m == "s390x" || m == "riscv64":
		return m
	}
	return ""
}

// program is the GOARCH of our helper: that of the target's programs.
func (s *kexecSystem) program() (string, error) {
	p, err := targets.ProgramFromELF(s.elf, s.machine)
	if err != nil {
		return "", err
	}
	switch p.GOARCH {
	case "amd64", "arm64", "riscv64":
		return p.GOARCH, nil
	}
	return "", fmt.Errorf("programs for %s have no kexec_file_load here", p.GOARCH)
}

// checkMemory wants the files' size three times, as files in memory, read by the
// kernel, and in their final place, and a reserve.
func (s *kexecSystem) checkMemory(i targets.Image) error {
	const copies, spareKB = 3, 16 << 10
	var size int64
	for _, p := range append(strings.Split(i.Initrd, ","), i.Kernel) {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		size += info.Size()
	}
	need := copies*(size>>10) + spareKB
	if s.memKB >= 0 && s.memKB < need {
		return fmt.Errorf("the target has %d KiB of memory available, and loading %d KiB of kernel and initrd takes about %d KiB: use a smaller initrd, or boot by another method",
			s.memKB, size>>10, need)
	}
	return nil
}
