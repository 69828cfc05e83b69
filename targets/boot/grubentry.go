package boot

import (
	"errors"
	"fmt"
	"strings"
)

// Our menu entries stand between these lines. The rest of the file is others'.
const (
	entriesBegin = "### BEGIN kernsweep: replaced whole at every boot ###"
	entriesEnd   = "### END kernsweep ###"
)

// grubEntry is a menu entry. Paths are those inside the file system.
type grubEntry struct {
	id, title string
	modules   []string // to load before, as the other entries do
	uuid      string   // of the file system with the files
	files     installed
	cmdline   string
	linux     string // "linux", or "linuxefi" where GRUB is patched to want it
	initrd    string
}

// text of the entry in GRUB's language (GRUB manual, "Writing full configuration
// files directly"). It may be chosen without the password that a menu may ask for.
func (g grubEntry) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nmenuentry %s --id %s --unrestricted {\n", entriesBegin, grubQuote(g.title), grubQuote(g.id))
	for _, m := range g.modules {
		fmt.Fprintf(&b, "\tinsmod %s\n", m)
	}
	fmt.Fprintf(&b, "\tsearch --no-floppy --fs-uuid --set=root %s\n", g.uuid)
	// GRUB reads files without a word, a large one for a minute: the console says
	// which, in the words of other entries, and is not taken for dead meanwhile.
	fmt.Fprintf(&b, "\techo 'Loading Linux ...'\n\t%s %s", g.linux, grubQuote(g.files.Kernel))
	for _, w := range splitArgs(g.cmdline) {
		// GRUB puts a word with blanks into double quotes itself, and escapes those
		// that are in it already (its grub_create_loader_cmdline).
		b.WriteString(" " + grubQuote(strings.ReplaceAll(w, `"`, "")))
	}
	b.WriteString("\n")
	if g.files.Initrd != "" {
		fmt.Fprintf(&b, "\techo 'Loading initial ramdisk ...'\n\t%s %s\n", g.initrd, grubQuote(g.files.Initrd))
	}
	if g.files.DTB != "" {
		fmt.Fprintf(&b, "\tdevicetree %s\n", grubQuote(g.files.DTB))
	}
	b.WriteString("}\n" + entriesEnd + "\n")
	return b.String()
}

// grubQuote makes one word of s. Plain words stay readable.
func grubQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-=:,+@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// replaceEntries is the file with our entries instead of those that are there;
// "" takes them out.
func replaceEntries(file, ours string) (string, error) {
	head, rest, found := strings.Cut(file, entriesBegin)
	if !found {
		if strings.Contains(file, entriesEnd) {
			return "", errors.New("it has the line that ends our entries, and none that begins them: remove what is left of them by hand")
		}
		if file != "" && !strings.HasSuffix(file, "\n") {
			file += "\n"
		}
		return file + ours, nil
	}
	_, tail, found := strings.Cut(rest, entriesEnd+"\n")
	if !found || strings.Contains(tail, entriesBegin) {
		return "", errors.New("the lines around our entries are damaged: remove what is left of them by hand")
	}
	return head + ours + tail, nil
}
