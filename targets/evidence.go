package targets

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Fill writes what the evidence says into r.
func (ev *Evidence) Fill(r *BootRecord) {
	r.BootID, _ = bootIDFrom(Exit{}, ev.Files["boot_id"]) // "" never equals a wanted one
	r.Release, r.Version, r.Machine = ev.uname(2), ev.uname(3), ev.uname(4)
	r.Cmdline = strings.TrimSpace(string(ev.Files["cmdline"]))
	if p, err := ev.Program(); err == nil {
		r.Arch = p.GOARCH
	} else {
		r.Notes = append(r.Notes, "architecture unknown: "+err.Error())
	}
	r.CPUs = ev.cpus()
	r.MemoryKB = ev.memory("MemTotal")
	r.UptimeS = ev.uptime().Seconds()
	r.ClientAddr = firstField(ev.Files["client"])
	r.Tools = pairs(ev.Files["tools"])
	r.CPUFreq = cpuFreq(ev.Files["cpufreq"])
	r.Identity = ev.identity()
	r.Scheduler = DetectScheduler(ev)
	if why, ok := ev.Persistent(); !ok {
		r.Notes = append(r.Notes, why)
	}
	if t := strings.TrimSpace(string(ev.Files["tainted"])); t != "" && t != "0" {
		r.Notes = append(r.Notes, "the kernel is tainted ("+t+") right after boot")
	}
	if c := firstComplaint(ev.Files["dmesg"]); c != "" {
		r.Notes = append(r.Notes, "the kernel complained while booting: "+c)
	}
	if why := ev.Missing["dmesg"]; why != "" {
		r.Notes = append(r.Notes, "kernel log: n/a ("+why+")")
	}
}

// uptime is 0 when it is not known.
func (ev *Evidence) uptime() time.Duration {
	s, err := strconv.ParseFloat(firstField(ev.Files["uptime"]), 64)
	if err != nil || !(s >= 0 && s < 1e9) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

func firstField(b []byte) string {
	if f := strings.Fields(string(b)); len(f) > 0 {
		return f[0]
	}
	return ""
}

// cpus counts the CPUs online: "0-1,3" is three.
func (ev *Evidence) cpus() int {
	n := 0
	for _, part := range strings.Split(strings.TrimSpace(string(ev.Files["online"])), ",") {
		a, b, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(a)
		if err != nil {
			continue
		}
		last := first
		if ranged {
			if last, err = strconv.Atoi(b); err != nil {
				continue
			}
		}
		n += max(0, last-first+1)
	}
	if n > 0 {
		return n
	}
	for line := range strings.Lines(string(ev.Files["cpuinfo"])) {
		if k, _, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "processor" {
			n++
		}
	}
	return n
}

// memory returns a line of /proc/meminfo in KiB, 0 when it is absent.
func (ev *Evidence) memory(name string) int64 {
	for line := range strings.Lines(string(ev.Files["meminfo"])) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == name {
			n, _ := strconv.ParseInt(firstField([]byte(v)), 10, 64) // a torn line is absent
			return n
		}
	}
	return 0
}

// Mount is a mounted file system.
type Mount struct {
	Device, Path, Type, Options string
	FreeKB                      int64 // -1: unknown
}

// Mounts lists the mounted file systems with their free space.
func (ev *Evidence) Mounts() []Mount {
	free := map[string]int64{}
	for line := range strings.Lines(string(ev.Files["df"])) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasSuffix(f[len(f)-2], "%") {
			continue
		}
		if n, err := strconv.ParseInt(f[len(f)-3], 10, 64); err == nil {
			free[f[len(f)-1]] = n
		}
	}
	var out []Mount
	for line := range strings.Lines(string(ev.Files["mounts"])) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		m := Mount{Device: f[0], Path: f[1], Type: f[2], Options: f[3], FreeKB: -1}
		if n, ok := free[m.Path]; ok {
			m.FreeKB = n
		}
		out = append(out, m)
	}
	return out
}

// Writable reports whether a mount takes writes and runs programs.
func (m Mount) Writable() bool {
	ro, noexec := false, false
	for _, o := range strings.Split(m.Options, ",") {
		ro, noexec = ro || o == "ro", noexec || o == "noexec"
	}
	return !ro && !noexec
}

// Volatile begins the note of a machine whose root file system is in memory.
const Volatile = "changes will be lost at the next boot"

// Persistent reports whether what is written to the root file system is there
// after the next boot, and if not, why.
func (ev *Evidence) Persistent() (why string, ok bool) {
	mounts := ev.Mounts()
	var root Mount
	for _, m := range mounts {
		if m.Path == "/" {
			root = m // the last one is on top
		}
	}
	switch {
	case root.Path == "":
		return "", true // nothing is known against it
	case root.Type == "overlay" || root.Type == "overlayfs":
		upper := option(root.Options, "upperdir")
		under := holder(mounts, upper)
		if under.Type == "tmpfs" || under.Type == "ramfs" {
			return Volatile + " (overlay on " + under.Type + ")", false
		}
	case root.Type == "rootfs" || root.Type == "tmpfs" || root.Type == "ramfs":
		return Volatile + " (the root file system is in memory)", false
	case !root.Writable() && strings.HasPrefix(root.Options, "ro"):
		return fmt.Sprintf("the root file system (%s) is read-only", root.Type), false
	}
	return "", true
}

func option(options, name string) string {
	for _, o := range strings.Split(options, ",") {
		if k, v, ok := strings.Cut(o, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// holder finds the mount that holds a path, other than the root itself.
func holder(mounts []Mount, p string) Mount {
	var best Mount
	for _, m := range mounts {
		if m.Path != "/" && (p == m.Path || strings.HasPrefix(p, m.Path+"/")) && len(m.Path) >= len(best.Path) {
			best = m
		}
	}
	return best
}
