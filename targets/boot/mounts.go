package boot

import (
	"path"
	"strings"
)

// mount is one line of /proc/self/mountinfo (kernel
// Documentation/filesystems/proc.rst, section 3.5).
type mount struct {
	dev    string // "major:minor"
	root   string // the folder of the file system that is mounted
	dir    string // where
	opts   string // of the mount
	fstype string
	source string
	super  string // options of the file system
}

type mounts []mount

// parseMounts picks the lines of mountinfo out of text.
func parseMounts(text string) mounts {
	var all mounts
	for line := range strings.SplitSeq(text, "\n") {
		head, tail, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(head), strings.Fields(tail)
		if !ok || len(f) < 6 || len(g) < 3 || !strings.Contains(f[2], ":") {
			continue
		}
		all = append(all, mount{dev: f[2], root: unescape(f[3]), dir: unescape(f[4]), opts: f[5],
			fstype: g[0], source: unescape(g[1]), super: unescape(g[2])})
	}
	return all
}

// unescape undoes the kernel's octal escapes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// of finds the mount that p lies on: the deepest, and of those at one place the
// last, which hides the others.
func (all mounts) of(p string) mount {
	var best mount
	for _, m := range all {
		if under(p, m.dir) && len(m.dir) >= len(best.dir) {
			best = m
		}
	}
	return best
}

func under(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// within is p's path inside its file system.
func (m mount) within(p string) string {
	return path.Join("/", m.root, strings.TrimPrefix(p, m.dir))
}

func (m mount) readOnly() bool { return hasOption(m.opts, "ro") || hasOption(m.super, "ro") }

func hasOption(list, name string) bool {
	for o := range strings.SplitSeq(list, ",") {
		if o == name {
			return true
		}
	}
	return false
}
