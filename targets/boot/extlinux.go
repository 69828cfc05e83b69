package boot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"kernsweep/targets"
)

// Extlinux starts a kernel once by EXTLINUX or SYSLINUX of a BIOS machine: an
// entry of ours in its configuration, and "extlinux --once", which keeps the
// label in the auxiliary data vector of ldlinux.sys. The loader clears it before
// it starts the entry (https://wiki.syslinux.org/wiki/index.php?title=EXTLINUX).
// U-Boot reads a file of the same name, and has no "once".
type Extlinux struct {
	oneShot
	Dir string `hcl:"dir,optional" doc:"folder of ldlinux.sys on the target (default: the first of /boot/extlinux, /boot/syslinux, /extlinux, /syslinux, /boot that has one)"`
}

// Check refuses what cannot work.
func (x *Extlinux) Check() error {
	return errors.Join(absolute("dir", x.Dir), x.check())
}

// Boot installs k beside the other kernels, points the next start at it, and
// asks for that start.
func (x *Extlinux) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	return x.start(ctx, "extlinux", t, k, x.boot)
}

func (x *Extlinux) boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	conn, exec := t.Held, t.Timeout.WithDefaults().Exec
	sctx, stop := context.WithTimeout(ctx, exec)
	defer stop()
	sys, err := surveyExtlinux(sctx, conn, x.Dir)
	if err != nil {
		return err
	}
	if k.Image.DTB != "" {
		x.notes = append(x.notes, "extlinux: a BIOS machine has no device tree: dtb is not handed over")
		k.Image.DTB = ""
	}
	line, err := x.line(sys.cmdline, k)
	if err != nil {
		return err
	}
	files := path.Join(sys.dir, "kernsweep") // so surely where the loader can read
	in, err := x.install(ctx, conn, sys, files, k)
	if err != nil {
		return err
	}
	label := strings.TrimSuffix(path.Base(in.Kernel), ".k")
	conf, err := withBlock(sys.conf, extlinuxBlock(sys, in, k.Name, label, line))
	if err != nil {
		return fmt.Errorf("%s on the target: %w", sys.file, err)
	}
	if err := writeConf(ctx, conn, sys.file, conf); err != nil {
		return err
	}
	if err := prune(ctx, conn, files, in); err != nil {
		x.notes = append(x.notes, "extlinux: "+err.Error())
	}
	if err := setOnce(ctx, conn, sys.dir, label); err != nil {
		return err
	}
	actx, stopAsk := context.WithTimeout(ctx, exec)
	defer stopAsk()
	if err := targets.AskReboot(actx, conn, ""); err != nil {
		clearOnce(ctx, conn, sys.dir)
		return err
	}
	return nil
}

// install puts k's files in place. When they do not fit, what earlier boots left
// goes first: our entry before the files that it names.
func (x *Extlinux) install(ctx context.Context, conn targets.Conn, sys *extlinuxSystem, files string, k targets.Kernel) (installed, error) {
	in, err := install(ctx, conn, files, k, true)
	var room *roomError
	if !errors.As(err, &room) {
		return in, err
	}
	conf, err := withBlock(sys.conf, "")
	if err != nil {
		return installed{}, fmt.Errorf("%s on the target: %w", sys.file, err)
	}
	if conf != sys.conf {
		if err := writeConf(ctx, conn, sys.file, conf); err != nil {
			return installed{}, err
		}
	}
	if err := prune(ctx, conn, files, installed{}); err != nil {
		return installed{}, err
	}
	return install(ctx, conn, files, k, true)
}

// setOnce makes the next start take the label, and looks for it where the loader
// will: the vector is the last two sectors of ldlinux.sys.
func setOnce(ctx context.Context, conn targets.Conn, dir, label string) error {
	_, err := shell(ctx, conn, `extlinux --once="$2" "$1" || exit 1
sync
tail -c 1024 "$1/ldlinux.sys" | tr -c 'a-z0-9-' '\n' | grep -qx "$2" || { echo "ldlinux.sys does not hold the label after extlinux --once" >&2; exit 1; }`, dir, label)
	if err != nil {
		return fmt.Errorf("setting the one-shot: %w", err)
	}
	return nil
}

// clearOnce takes a one-shot back whose start was not asked for.
func clearOnce(ctx context.Context, conn targets.Conn, dir string) {
	ctx, stop := targets.Afterwards(ctx, cleanTime)
	defer stop()
	_, _ = shell(ctx, conn, `extlinux --clear-once "$1"`, dir) // the failure that led here is the one that matters
}
