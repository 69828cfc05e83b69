package boot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"kernsweep/targets"
)

// Grub boots a kernel once through GRUB's next_entry: it puts the kernel into
// the target's /boot, writes a menu entry of its own, asks for that entry once,
// and reboots. The default entry stays as it is, and every other start takes it.
type Grub struct {
	oneShot
	Dir     string `hcl:"dir,optional" doc:"folder of grub.cfg and grubenv on the target (default: where distributions keep it)"`
	Into    string `hcl:"into,optional" doc:"folder of the target for the kernels' files, on a file system that GRUB can read (default /boot)"`
	Entries string `hcl:"entries,optional" doc:"file of the target for our menu entry, which grub.cfg must source (default: custom.cfg beside grub.cfg). Lines of others in it are kept"`
	Command string `hcl:"command,optional" doc:"shell command that reboots (default: reboot, and reboot -f when that fails)"`

	stuck bool // GRUB was found not to clear next_entry
}

// Check refuses what cannot work.
func (g *Grub) Check() error {
	return errors.Join(absolute("dir", g.Dir), absolute("into", g.Into), absolute("entries", g.Entries), g.check())
}

// Boot prepares k and asks for the reboot. Nothing is changed on the target
// before everything was checked; next_entry is the last thing written.
func (g *Grub) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	return g.start(ctx, "grub", t, k, g.boot)
}

func (g *Grub) boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	sys, err := g.prepare(ctx, t.Held, k)
	if err != nil {
		return err
	}
	actx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	err = targets.AskReboot(actx, t.Held, g.Command)
	if err == nil {
		return nil
	}
	// Nobody expects the kernel under test at the start that comes instead.
	cctx, stop := targets.Afterwards(ctx, cleanTime)
	defer stop()
	if e := sys.bootOnce(cctx, t.Held, ""); e != nil {
		err = fmt.Errorf("%w; next_entry is still set, the next start takes it: %w", err, e)
	}
	return err
}

// prepare does everything but the reboot.
func (g *Grub) prepare(ctx context.Context, conn targets.Conn, k targets.Kernel) (*grubSystem, error) {
	id := entryID(k.Nonce)
	cfg, err := findGrub(ctx, conn, g.Dir)
	if err != nil {
		return nil, err
	}
	entries := g.Entries
	if entries == "" {
		entries = path.Join(cfg.dir, "custom.cfg")
	}
	if !cfg.sources(entries) {
		return nil, fmt.Errorf("%s/grub.cfg does not source %s, where our entry goes: make /etc/grub.d/41_custom executable and run update-grub, or set entries to a file that it sources", cfg.dir, entries)
	}
	into := g.Into
	if into == "" {
		into = "/boot"
	}
	sys, err := surveyGrub(ctx, conn, cfg.dir, into, entries)
	if err != nil {
		return nil, err
	}
	if err := g.left(ctx, conn, sys); err != nil {
		return nil, err
	}
	entry := grubEntry{id: id, title: "kernsweep: " + k.Name, modules: cfg.modules(), uuid: sys.uuid, linux: "linux", initrd: "initrd"}
	if startsByEFI.MatchString(cfg.text) {
		entry.linux, entry.initrd = "linuxefi", "initrdefi"
	}
	if err := sys.check(cfg); err != nil {
		return nil, err
	}
	if err := sys.checkImage(k.Image.Kernel); err != nil {
		return nil, err
	}
	if entry.cmdline, err = g.line(sys.cmdline, k); err != nil {
		return nil, err
	}
	in, err := g.bring(ctx, conn, into, k)
	if err != nil {
		return nil, err
	}
	entry.files = sys.inside(in)
	if err := writeEntries(ctx, conn, sys, entry); err != nil {
		return nil, err
	}
	return sys, sys.bootOnce(ctx, conn, id)
}

// entryID is the name of a boot's menu entry; it comes back in the command line.
func entryID(nonce string) string {
	_, v, _ := strings.Cut(nonce, "=")
	return "kernsweep-" + v
}

// left looks at what earlier boots left in next_entry.
func (g *Grub) left(ctx context.Context, conn targets.Conn, sys *grubSystem) error {
	next := sys.env.get("next_entry")
	running := ""
	for _, w := range splitArgs(sys.cmdline) {
		if strings.HasPrefix(w, "kernsweep.nonce=") {
			running = entryID(w)
		}
	}
	if next != "" && next == running {
		g.stuck = true
		if err := sys.bootOnce(ctx, conn, ""); err != nil {
			return fmt.Errorf("GRUB booted our entry and could not clear next_entry, and neither could we: %w", err)
		}
	} else if next != "" {
		g.notes = append(g.notes, "next_entry was "+next+" before this boot: an earlier reboot never came to GRUB, or somebody else asked for an entry")
	}
	if g.stuck {
		return fmt.Errorf("GRUB booted our entry and did not clear next_entry in %s, so it would boot the kernel under test for ever (it was cleared over SSH now): GRUB cannot write to that disk; use another boot method", sys.envFile)
	}
	return nil
}

// plentyKB is the room in /boot, in KiB, with which kernels of other boots may
// stay, so that they are sent once: the system's own updates need some, too.
const plentyKB = 256 << 10

// bring installs k. Where the room is short, files of earlier boots go first;
// none of them is in use.
func (g *Grub) bring(ctx context.Context, conn targets.Conn, into string, k targets.Kernel) (installed, error) {
	in, err := install(ctx, conn, into, k, true)
	var room *roomError
	if errors.As(err, &room) {
		if err := prune(ctx, conn, into, installed{}); err != nil {
			return installed{}, err
		}
		in, err = install(ctx, conn, into, k, true)
	}
	if err != nil {
		return installed{}, err
	}
	at, err := surveyFolder(ctx, conn, into, nil)
	if err != nil || at.freeKB >= plentyKB {
		return in, err
	}
	return in, prune(ctx, conn, into, in)
}

// writeEntries puts our entry into the file for it, in one step.
func writeEntries(ctx context.Context, conn targets.Conn, sys *grubSystem, entry grubEntry) error {
	text, err := replaceEntries(sys.entries, entry.text())
	if err != nil {
		return fmt.Errorf("%s: %w", sys.entriesFile, err)
	}
	if err := conn.Put(ctx, sys.entriesFile, sys.entriesMode, strings.NewReader(text)); err != nil {
		return err
	}
	return sys.flush(ctx, conn)
}
