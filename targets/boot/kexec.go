package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"kernsweep/targets"
)

// Kexec starts a kernel from the running one, without firmware or boot loader:
// the next start of any other kind brings the device's default kernel. Root and
// a kernel with CONFIG_KEXEC or CONFIG_KEXEC_FILE are needed on the target.
type Kexec struct {
	oneShot
	Dir     string `hcl:"dir,optional" doc:"folder of the target for the kernel's files until they are loaded (default: the first of /dev/shm, /tmp, /run, /var/tmp with room)"`
	Command string `hcl:"command,optional" doc:"shell command that starts the loaded kernel (default: sync, remount every file system read-only, jump). \"systemctl kexec\" stops the services before, and takes as long as a shutdown does"`
}

// Check refuses what cannot work.
func (x *Kexec) Check() error {
	return errors.Join(absolute("dir", x.Dir), x.check())
}

// Boot loads k and returns before the running kernel gives way to it.
func (x *Kexec) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	return x.start(ctx, "kexec", t, k, x.boot)
}

func (x *Kexec) boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	sys, err := surveyKexec(ctx, t.Held)
	if err != nil {
		return err
	}
	image, err := readImage(k.Image.Kernel)
	if err != nil {
		return err
	}
	if err := sys.check(image); err != nil {
		return err
	}
	line, err := x.line(sys.cmdline, k)
	if err != nil {
		return err
	}
	dir, in, err := x.bring(ctx, t.Held, sys, k)
	if err != nil {
		return err
	}
	defer func() { // they are in the kernel's own memory now, or of no use
		cctx, stop := targets.Afterwards(ctx, cleanTime)
		defer stop()
		if err := prune(cctx, t.Held, dir, installed{}); err != nil {
			x.notes = append(x.notes, "kexec: "+err.Error())
		}
	}()
	var jump string
	if sys.tool != "" {
		jump, err = x.loadByTool(ctx, t.Held, sys, in, line)
	} else {
		jump, err = x.loadByAgent(ctx, t, sys, in, line)
	}
	if err != nil {
		return err
	}
	if x.Command != "" {
		jump = x.Command
	} else {
		jump = quiesce + jump
	}
	actx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	return targets.AskReboot(actx, t.Held, jump)
}

// quiesce leaves the file systems as a power cut after a sync would, but clean:
// SysRq-u remounts them read-only in the background (kernel
// Documentation/admin-guide/sysrq.rst), which is waited for, for a while.
const quiesce = `sync
if echo u >/proc/sysrq-trigger; then
	i=0
	while grep -q '^/dev/[^ ]* [^ ]* [^ ]* rw[, ]' /proc/mounts && [ $i -lt 15 ]; do sleep 1; i=$((i + 1)); done
fi
`

// places are where k's files, and our helper, are tried in turn: memory first,
// for nothing is left of it after the jump.
func (x *Kexec) places() []string {
	if x.Dir != "" {
		return []string{x.Dir}
	}
	return []string{"/dev/shm", "/tmp", "/run", "/var/tmp"}
}

// bring puts k's files on the target, where they fit twice: the kernel copies
// them while it loads.
func (x *Kexec) bring(ctx context.Context, conn targets.Conn, sys *kexecSystem, k targets.Kernel) (string, installed, error) {
	if err := sys.checkMemory(k.Image); err != nil {
		return "", installed{}, err
	}
	var causes []error
	for _, dir := range x.places() {
		in, err := install(ctx, conn, dir, k, false)
		if err == nil {
			return dir, in, nil
		}
		var link *targets.LinkError
		if errors.As(err, &link) || ctx.Err() != nil {
			return "", installed{}, err
		}
		causes = append(causes, err)
	}
	return "", installed{}, fmt.Errorf("the kernel's files cannot be put on the target: %w", errors.Join(causes...))
}

// loadByTool loads with kexec-tools: by file, as lockdown wants it, else by its
// segments, which older kernels have. It returns the command that jumps.
func (x *Kexec) loadByTool(ctx context.Context, conn targets.Conn, sys *kexecSystem, in installed, line string) (string, error) {
	script := `kexec=$1 way=$2; shift 2
"$kexec" -u >/dev/null 2>&1
"$kexec" "$way" -l "$@" 2>&1 || exit 1
[ "$(cat /sys/kernel/kexec_loaded)" = 1 ] || { echo "kexec exited with status 0 and loaded nothing"; exit 1; }`
	files := []string{in.Kernel, "--command-line=" + line}
	if in.Initrd != "" {
		files = append(files, "--initrd="+in.Initrd)
	}
	ways := []string{"-s", "-c"}
	if in.DTB != "" { // kexec_file_load takes the running kernel's tree
		files, ways = append(files, "--dtb="+in.DTB), []string{"-c"}
	}
	if sys.locked() {
		ways = []string{"-s"} // the kernel refuses the other
	}
	var causes []error
	for _, way := range ways {
		_, err := shell(ctx, conn, script, append([]string{sys.tool, way}, files...)...)
		if err == nil {
			x.notes = append(x.notes, fmt.Sprintf("loaded by %s %s", sys.tool, way))
			return "exec '" + sys.tool + "' -e", nil
		}
		var link *targets.LinkError
		if errors.As(err, &link) || ctx.Err() != nil {
			return "", err
		}
		causes = append(causes, fmt.Errorf("%s %s -l: %w", sys.tool, way, err))
	}
	return "", errors.Join(causes...)
}

// loadByAgent loads with a helper of ours. It returns the command that jumps,
// which takes the helper away before.
func (x *Kexec) loadByAgent(ctx context.Context, t *targets.Target, sys *kexecSystem, in installed, line string) (string, error) {
	const install = "install kexec-tools on the target"
	if in.DTB != "" {
		return "", errors.New("a device tree is loaded only by kexec_load, and that needs kexec-tools: " + install)
	}
	prog, err := sys.program()
	if err != nil {
		return "", fmt.Errorf("the target has no kexec-tools, and for our own helper: %w; %s", err, install)
	}
	if t.Agent == nil {
		return "", errors.New("the target has no kexec-tools, and no helper can be had here: " + install)
	}
	raw, err := t.Agent(prog)
	if err != nil {
		return "", fmt.Errorf("the target has no kexec-tools, and our own helper cannot be had: %w; %s", err, install)
	}
	var causes []error
	for _, dir := range x.places() {
		helper := path.Join(dir, "kernsweep-kexec")
		if err := t.Held.Put(ctx, helper, 0o700, bytes.NewReader(raw)); err != nil {
			var link *targets.LinkError
			if errors.As(err, &link) || ctx.Err() != nil {
				return "", err
			}
			causes = append(causes, err)
			continue
		}
		initrd := in.Initrd
		if initrd == "" {
			initrd = "-"
		}
		if _, err := shell(ctx, t.Held, `"$1" kexec load "$2" "$3" "$4" || { rm -f "$1"; exit 1; }`, helper, in.Kernel, initrd, line); err != nil {
			return "", sys.explain(err)
		}
		x.notes = append(x.notes, "loaded by kexec_file_load with our own helper")
		if x.Command != "" { // it jumps without our help
			_, err := shell(ctx, t.Held, `rm -f "$1"`, helper)
			return "", err
		}
		// An open file can be run after its name is gone.
		return "exec 3<'" + helper + "' && rm -f '" + helper + "'\nsync\nexec /proc/self/fd/3 kexec jump", nil
	}
	return "", fmt.Errorf("our helper cannot be put on the target: %w", errors.Join(causes...))
}

// explain adds in words what a failed kexec_file_load means.
func (s *kexecSystem) explain(err error) error {
	denied := "the kernel does not permit it: is the login confined (a container, no CAP_SYS_BOOT)?"
	if s.locked() {
		denied = "the running kernel is locked down (" + s.lockdown + ") and does not accept the image's signature: sign it with a key that the kernel knows, or switch Secure Boot or lockdown= off"
	}
	for errno, why := range map[string]string{
		"1":   denied,
		"8":   "the running kernel does not know the image's format: x86 wants a bzImage, arm64 an uncompressed Image",
		"12":  "the target is short of memory",
		"16":  "another kexec is under way",
		"38":  "the running kernel has no kexec_file_load (CONFIG_KEXEC_FILE); kexec_load needs kexec-tools: install them on the target",
		"61":  "the image carries no signature, and the kernel wants one",
		"74":  "the image's signature is damaged",
		"99":  "no place in memory is free for it",
		"126": "the image's signature is by a key that the running kernel does not know",
		"129": "the image's signature is not accepted",
	} {
		if strings.Contains(err.Error(), "kexec_file_load: errno "+errno+" ") {
			return fmt.Errorf("%w: %s", err, why)
		}
	}
	return err
}
