package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"kernsweep/targets"
)

// Sysupgrade installs an OpenWrt image with the system's own sysupgrade. It is
// the one method that writes the device's flash by nature, once a boot: a sweep
// of few blocks wears it less. The image brings its own command line, so a boot
// is proven by boot_id, release and scheduler only.
type Sysupgrade struct {
	Keep       string        `hcl:"keep,optional" doc:"\"settings\" (default), or \"nothing\": sysupgrade -n, the device comes up with the image's own address and keys"`
	Dir        string        `hcl:"dir,optional" doc:"folder on the target for the image (default \"/tmp\", which is in memory)"`
	Reserve    int           `hcl:"reserve,optional" doc:"MiB of memory that stay free beside the image and what sysupgrade unpacks (default 4)"`
	SettleTime time.Duration `hcl:"settle,optional" doc:"the first boot's overlay must be formatted within this; timeouts.boot covers it too (default 5m)"`

	notes []string
}

// sysupgrade copies BusyBox, its libraries and mtd to a RAM disk before it
// unmounts the flash (package/base-files/files/lib/upgrade/stage2 of OpenWrt).
const unpackKB = 2 << 10

const (
	imageName = "kernsweep-sysupgrade.bin"
	logName   = "kernsweep-sysupgrade.log"
	codeName  = "kernsweep-sysupgrade.exit"
)

// stageRefused is a kernel whose image the device does not accept.
const stageRefused = "image refused"

// Check refuses what cannot work.
func (s *Sysupgrade) Check() error {
	switch {
	case s.Keep != "" && s.Keep != "settings" && s.Keep != "nothing":
		return fmt.Errorf("keep is %q: want \"settings\" or \"nothing\"", s.Keep)
	case s.Dir != "" && (!path.IsAbs(s.Dir) || path.Clean(s.Dir) == "/"):
		return fmt.Errorf("dir = %q: want an absolute path of a folder", s.Dir)
	case s.Reserve < 0:
		return fmt.Errorf("reserve = %d is negative", s.Reserve)
	case s.SettleTime < 0:
		return fmt.Errorf("settle = %s is negative", s.SettleTime)
	}
	return nil
}

// Traits of the method.
func (*Sysupgrade) Traits() targets.BootTraits { return targets.BootTraits{Running: true, Image: true} }

// Notes say what the newest boot did to the flash.
func (s *Sysupgrade) Notes() []string { return s.notes }

// Boot sends the image, lets the device check it, and starts sysupgrade. It
// returns when the link is gone, for sysupgrade ends every session. An image
// that the device refuses is a *targets.BootError.
func (s *Sysupgrade) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	s.notes = nil
	switch {
	case t.Held == nil:
		return errors.New("sysupgrade: no link to the running system")
	case k.Image.Kernel == "":
		return fmt.Errorf("sysupgrade: kernel %s has no image", k.Name)
	case k.Image.Initrd != "" || k.Image.DTB != "":
		return fmt.Errorf("sysupgrade: an OpenWrt image is one file, and kernel %s has an initrd or a dtb beside it", k.Name)
	}
	if args := strings.TrimSpace(k.Image.Cmdline + " " + k.Cmdline); args != "" {
		s.notes = append(s.notes, "sysupgrade: the image brings its own command line; not handed over: "+args)
	}
	info, err := os.Stat(k.Image.Kernel)
	if err != nil {
		return fmt.Errorf("sysupgrade: %w", err)
	}
	conn, exec := t.Held, t.Timeout.WithDefaults().Exec
	if err := s.makeRoom(ctx, conn, exec, info.Size()); err != nil {
		return fmt.Errorf("sysupgrade: %w", err)
	}
	err = s.bring(ctx, conn, exec, k)
	if err == nil {
		err = s.start(ctx, t, info.Size())
	}
	if err == nil {
		return nil
	}
	if oom := s.cleanUp(ctx, t); oom != "" {
		err = fmt.Errorf("%w; the target ran out of memory: %s", err, oom)
	}
	var be *targets.BootError
	if errors.As(err, &be) {
		return err
	}
	return fmt.Errorf("sysupgrade: %w", err)
}

func (s *Sysupgrade) dir() string {
	if s.Dir == "" {
		return "/tmp"
	}
	return path.Clean(s.Dir)
}

func (s *Sysupgrade) file(name string) string { return path.Join(s.dir(), name) }

// bring sends the image and lets the device judge it.
func (s *Sysupgrade) bring(ctx context.Context, conn targets.Conn, exec time.Duration, k targets.Kernel) error {
	began := time.Now()
	if err := put(ctx, conn, s.file(imageName), k.Image.Kernel); err != nil {
		return fmt.Errorf("sending %s: %w", filepath.Base(k.Image.Kernel), err)
	}
	took := time.Since(began).Round(100 * time.Millisecond)
	// The flash of an old device reads a few MB a second, and hashing is slower.
	ctx, stop := context.WithTimeoutCause(ctx, 4*exec, fmt.Errorf("the target did not check the image within %s", 4*exec))
	defer stop()
	if err := compareSums(ctx, conn, s.file(imageName), k.Image.Kernel); err != nil {
		return err
	}
	var out strings.Builder
	e, err := conn.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "PATH=$PATH:/sbin:/usr/sbin\n" + `sysupgrade -T "$1" 2>&1`, "sh", s.file(imageName)}, Stdout: &out})
	switch said := strings.TrimSpace(out.String()); {
	case err != nil:
		return fmt.Errorf("sysupgrade -T: %w", err)
	case e.OK():
		s.notes = append(s.notes, fmt.Sprintf("sysupgrade: the image was sent in %s and accepted by the device", took))
	case strings.Contains(said, "Invalid option"):
		s.notes = append(s.notes, "sysupgrade: this system's sysupgrade has no -T: the image was compared by its sum only")
	case e.Signal != "" || e.NoStatus || e.Code > 128:
		return fmt.Errorf("sysupgrade -T %s: %.400s", e, said)
	default:
		return &targets.BootError{Kernel: k.Name, Stage: stageRefused, LastLines: lastLines(said), Err: fmt.Errorf(
			"sysupgrade -T refuses %s (status %d): %s: is it the sysupgrade image of this very device?", filepath.Base(k.Image.Kernel), e.Code, oneLine(said))}
	}
	return nil
}

// oneLine makes a message out of a program's lines.
func oneLine(s string) string {
	return strings.Join(lastLines(s), " / ")
}

func lastLines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out[max(0, len(out)-8):]
}
