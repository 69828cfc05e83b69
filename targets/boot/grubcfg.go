package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"kernsweep/targets"
)

// maxSourced bounds how deep configurations that read each other are followed.
const maxSourced = 4

// grubConfig is the GRUB configuration that a target boots by.
type grubConfig struct {
	dir  string // folder of grub.cfg and grubenv, without symbolic links
	text string // grub.cfg with what it reads, without comments
}

// Where distributions keep it. On EFI machines the file in the system partition
// is often only a stub that reads the real one.
const grubDirsScript = `for d in /boot/grub /boot/grub2 /boot/efi/EFI/* /efi/EFI/* /boot/EFI/*; do
	[ -f "$d/grub.cfg" ] && readlink -f "$d/grub.cfg"
done
true`

// findGrub finds the one configuration that reads next_entry. dir "" looks where
// distributions keep it.
func findGrub(ctx context.Context, conn targets.Conn, dir string) (*grubConfig, error) {
	said := path.Join(dir, "grub.cfg")
	var err error
	if dir == "" {
		if said, err = shell(ctx, conn, grubDirsScript); err != nil {
			return nil, err
		}
	}
	var found []*grubConfig
	var causes []error
	var seen []string
	for file := range strings.SplitSeq(strings.TrimSpace(said), "\n") {
		if file == "" || slices.Contains(seen, file) {
			continue
		}
		seen = append(seen, file)
		text, err := readGrub(ctx, conn, path.Dir(file), file, maxSourced)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no %s on the target", file)
		}
		if err == nil {
			err = readsNextEntry(text)
		}
		var link *targets.LinkError
		if errors.As(err, &link) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			causes = append(causes, fmt.Errorf("%s: %w", file, err))
			continue
		}
		found = append(found, &grubConfig{path.Dir(file), text})
	}
	switch {
	case len(seen) == 0:
		return nil, errors.New("there is no grub.cfg in /boot/grub, /boot/grub2 or a folder of EFI/ on the target: set dir")
	case len(found) == 0:
		return nil, errors.Join(causes...)
	case len(found) > 1:
		return nil, fmt.Errorf("both %s and %s on the target hold a whole GRUB configuration, and only one is booted by: set dir", found[0].dir, found[1].dir)
	}
	return found[0], nil
}

var sourcedFile = regexp.MustCompile(`(?:^|[;\s])(?:source|configfile|\.)\s+["']?([^\s"';]+)`)

// readGrub reads a configuration and those that it reads. One that is not there
// is no error: configurations test for it first.
func readGrub(ctx context.Context, conn targets.Conn, dir, file string, depth int) (string, error) {
	var raw bytes.Buffer
	if err := conn.Get(ctx, file, &raw); err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.SplitSeq(raw.String(), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		b.WriteString(line + "\n")
		m := sourcedFile.FindStringSubmatch(line)
		if m == nil || depth == 0 {
			continue
		}
		for _, p := range sourcedPaths(dir, m[1]) {
			text, err := readGrub(ctx, conn, dir, p, depth-1)
			var link *targets.LinkError
			if errors.As(err, &link) || ctx.Err() != nil {
				return "", err
			}
			if err == nil {
				b.WriteString(text)
				break
			}
		}
	}
	return b.String(), nil
}

// sourcedPaths are the places on the target that a file named in a configuration
// in dir may be at.
func sourcedPaths(dir, name string) []string {
	for _, v := range []string{"$prefix", "${prefix}", "$config_directory", "${config_directory}"} {
		if rest, ok := strings.CutPrefix(name, v); ok {
			return []string{path.Join(dir, rest)}
		}
	}
	if strings.HasPrefix(name, "(") { // (hd0,1)/grub/x, ($root)/x
		_, name, _ = strings.Cut(name, ")")
	}
	name = strings.Trim(name, `"'`)
	if !strings.HasPrefix(name, "/") || strings.Contains(name, "$") {
		return nil
	}
	return []string{path.Join("/boot", name), name}
}

var (
	setsDefault = regexp.MustCompile(`(?m)^\s*(set\s+)?default=.*\$\{?next_entry\}?`)
	loadsEnv    = regexp.MustCompile(`(?m)(^|[;\s])load_env\b`)
	savesNext   = regexp.MustCompile(`(?m)(^|[;\s])save_env\b.*\bnext_entry\b`)
	setsTimeout = regexp.MustCompile(`(?m)^\s*set\s+timeout=["']?(-?\d+)`)
	loadsModule = regexp.MustCompile(`(?m)^\s*insmod\s+(part_\w+|ext2|xfs|fat|exfat|f2fs|jfs|lvm|diskfilter|mdraid\w*|raid\w+|gzio|xzio|lzopio|zstdio)\s*$`)
	startsByEFI = regexp.MustCompile(`(?m)^\s*linuxefi\s`)
)

// readsNextEntry refuses a configuration that one-shot boots do not work with.
func readsNextEntry(text string) error {
	const fix = "make it with grub-mkconfig (update-grub), or add what its 00_header writes"
	switch {
	case !loadsEnv.MatchString(text) || !setsDefault.MatchString(text):
		return errors.New("the configuration never reads next_entry, so nothing would be booted once: " + fix)
	case !savesNext.MatchString(text):
		return errors.New("the configuration reads next_entry and never clears it (save_env next_entry), so the kernel under test would be booted for ever: " + fix)
	}
	times := setsTimeout.FindAllStringSubmatch(text, -1)
	if len(times) > 0 && !slices.ContainsFunc(times, func(m []string) bool { return m[1] != "-1" }) {
		return errors.New("the menu waits for a key for ever (timeout=-1): set GRUB_TIMEOUT to some seconds in /etc/default/grub")
	}
	return nil
}

// modules are those that the configuration's own entries load to find their files.
func (c *grubConfig) modules() []string {
	var all []string
	for _, m := range loadsModule.FindAllStringSubmatch(c.text, -1) {
		if !slices.Contains(all, m[1]) {
			all = append(all, m[1])
		}
	}
	return all
}

// sources tells whether the configuration reads the given file into its menu.
func (c *grubConfig) sources(file string) bool {
	for _, m := range sourcedFile.FindAllStringSubmatch(c.text, -1) {
		if slices.Contains(sourcedPaths(c.dir, m[1]), file) {
			return true
		}
	}
	return false
}
