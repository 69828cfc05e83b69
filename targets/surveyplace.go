package targets

import (
	"strconv"
	"strings"
)

// Place is a folder of a machine in which a tiny program was written and run.
type Place struct {
	Dir    string `json:"dir"`
	Write  bool   `json:"write"`
	Exec   bool   `json:"exec"`
	FreeKB int64  `json:"free_kb"` // -1: unknown
	// Survives is "yes", "no" or "" (unknown): whether a file is still there after
	// the next boot. Why is the evidence.
	Survives string `json:"survives,omitempty"`
	Why      string `json:"why,omitempty"`
}

// minRoom is what the agent, its spool and a little more take, in KiB.
const minRoom = 4 << 10

// Usable says that programs can be put there and run.
func (p Place) Usable() bool { return p.Write && p.Exec && (p.FreeKB < 0 || p.FreeKB >= minRoom) }

func (r *surveyReader) places() {
	mounts := r.Mounts()
	for _, line := range r.lines("places") {
		if df, ok := strings.CutPrefix(line, "df "); ok && len(r.s.Places) > 0 {
			if f := strings.Fields(df); len(f) >= 4 && strings.HasSuffix(f[len(f)-2], "%") {
				if n, err := strconv.ParseInt(f[len(f)-3], 10, 64); err == nil {
					r.s.Places[len(r.s.Places)-1].FreeKB = n
				}
			}
			continue
		}
		f := strings.SplitN(line, " ", 4)
		if len(f) != 4 || f[0] != "place" {
			continue
		}
		p := Place{Dir: f[3], Write: f[1] == "yes", Exec: f[2] == "yes", FreeKB: -1}
		p.Survives, p.Why = r.survives(mounts, p.Dir)
		r.s.Places = append(r.s.Places, p)
	}
}

// survives says whether what is written to dir outlives a boot.
func (r *surveyReader) survives(mounts []Mount, dir string) (answer, why string) {
	m := holder(mounts, dir)
	if m.Path == "" {
		for _, o := range mounts {
			if o.Path == "/" {
				m = o
			}
		}
	}
	switch m.Type {
	case "":
		return "", "/proc/mounts does not tell"
	case "tmpfs", "ramfs", "rootfs", "devtmpfs", "zram":
		return "no", m.Type + " at " + m.Path
	case "overlay", "overlayfs":
		upper := option(m.Options, "upperdir")
		switch under := holder(mounts, upper); under.Type {
		case "tmpfs", "ramfs":
			return "no", m.Type + " at " + m.Path + ", its upper folder on " + under.Type
		case "":
			return "", m.Type + " at " + m.Path + ", its upper folder is not seen"
		default:
			return "yes", m.Type + " at " + m.Path + ", its upper folder on " + under.Type
		}
	}
	if m.Path == "/" && (dir == "/tmp" || dir == "/run") {
		return "", m.Type + " at /, and many systems empty it when they start"
	}
	return "yes", m.Type + " at " + m.Path
}
