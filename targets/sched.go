package targets

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	conBanner   = regexp.MustCompile(`(?m)\b(BFS|MuQSS) CPU scheduler (v\S+) by Con Kolivas`)
	altBanner   = regexp.MustCompile(`(?m)\b(BMQ|PDS)(?:-mq)? CPU Scheduler (\S+)`)
	boreBanner  = regexp.MustCompile(`(?m)\bBORE\b.*CPU Scheduler modification (\S+)`)
	versionHead = regexp.MustCompile(`^(\d+)\.(\d+)(?:\.(\d+))?`)
)

// schedReader gathers evidence in the order of the tests; the first decides, a
// later one that disagrees is a conflict.
type schedReader struct {
	ev  *Evidence
	out Scheduler
}

func (r *schedReader) say(name, detail, evidence string) {
	switch {
	case r.out.Name == "":
		r.out.Name, r.out.Detail = name, detail
	case r.out.Name != name:
		r.out.Conflicts = append(r.out.Conflicts, evidence+" says "+name)
		return
	case r.out.Detail == "":
		r.out.Detail = detail
	}
	r.out.Evidence = append(r.out.Evidence, evidence)
}

// knob finds a scheduler file by its name, in /proc/sys/kernel or debugfs.
func (r *schedReader) knob(name string) (string, bool) {
	for _, dir := range []string{"/proc/sys/kernel", "/sys/kernel/debug/sched"} {
		if v, ok := r.ev.Sched[path.Join(dir, name)]; ok {
			return v, true
		}
	}
	return "", false
}

// DetectScheduler says which CPU scheduler the probed system runs, with all
// evidence and whatever speaks against it. Name is "" when nothing tells.
func DetectScheduler(ev *Evidence) Scheduler {
	r := &schedReader{ev: ev}
	v := kernelVersion(ev.uname(2))
	r.schedExt()
	r.bore()
	r.kolivas(v)
	r.alternative()
	r.fair()
	r.fallback(v)
	r.hint()
	return r.out
}

func (r *schedReader) schedExt() {
	state := r.ev.Sched["/sys/kernel/sched_ext/state"]
	if state != "enabled" {
		return
	}
	ops := r.ev.Sched["/sys/kernel/sched_ext/root/ops"]
	r.say("sched_ext", ops, "/sys/kernel/sched_ext/state = enabled, ops = "+ops)
	if r.ev.Sched["/sys/kernel/sched_ext/switch_all"] == "0" {
		r.out.Evidence = append(r.out.Evidence, "switch_all = 0: only tasks that ask for it")
	}
}

func (r *schedReader) bore() {
	m := boreBanner.FindStringSubmatch(string(r.ev.Files["dmesg"]))
	v, ok := r.knob("sched_bore")
	switch {
	case ok && v == "1" && m != nil:
		r.say("bore", m[1], "sched_bore = 1, banner "+strings.TrimSpace(m[0]))
	case ok && v == "1":
		r.say("bore", "", "sched_bore = 1")
	case ok:
		r.out.Evidence = append(r.out.Evidence, "sched_bore = "+v+": built in, switched off")
	case m != nil:
		r.say("bore", m[1], "banner "+strings.TrimSpace(m[0]))
	}
}

// kolivas tells SD, BFS and MuQSS apart.
func (r *schedReader) kolivas(v version) {
	if m := conBanner.FindStringSubmatch(string(r.ev.Files["dmesg"])); m != nil {
		r.say(strings.ToLower(m[1]), m[2], "banner "+m[0])
	}
	rr, ok := r.knob("rr_interval")
	if !ok {
		return
	}
	_, iso := r.knob("iso_cpu")
	seen := "rr_interval = " + rr
	switch {
	case iso && r.conNamed():
		r.out.Evidence = append(r.out.Evidence, seen+", iso_cpu")
	case iso && v.before(4, 8, 0):
		r.say("bfs", "", seen+", iso_cpu, kernel before 4.8")
	case iso:
		r.say("muqss", "", seen+", iso_cpu, kernel 4.8 or later")
	case v.before(2, 6, 31):
		r.say("sd", "", seen+" without iso_cpu")
	}
}

func (r *schedReader) conNamed() bool { return r.out.Name == "bfs" || r.out.Name == "muqss" }

func (r *schedReader) alternative() {
	if m := altBanner.FindStringSubmatch(string(r.ev.Files["dmesg"])); m != nil {
		r.say(strings.ToLower(m[1]), m[2], "banner "+m[0])
	}
	for _, o := range [][2]string{{"SCHED_BMQ", "bmq"}, {"SCHED_PDS", "pds"}} {
		if r.ev.Config[o[0]] == "y" {
			r.say(o[1], "", "CONFIG_"+o[0]+"=y")
		}
	}
}

// fair tells the generations of the fair scheduler apart.
func (r *schedReader) fair() {
	cfs, eevdf := "cfs", "eevdf"
	if r.out.Name == "bore" || r.out.Name == "sched_ext" {
		cfs, eevdf = r.out.Name, r.out.Name // the fair class is below these: its files agree
	}
	if v, ok := r.knob("sched_granularity_ns"); ok {
		r.say(cfs, "early patch", "sched_granularity_ns = "+v)
	}
	for _, name := range []string{"sched_min_granularity_ns", "sched_latency_ns", "latency_ns", "min_granularity_ns"} {
		if v, ok := r.knob(name); ok {
			r.say(cfs, "", name+" = "+v)
			break
		}
	}
	if v, ok := r.knob("base_slice_ns"); ok {
		r.say(eevdf, "", "debug/sched/base_slice_ns = "+v)
	}
	if strings.Contains(string(r.ev.Files["self_sched"]), "se.slice") {
		r.say(eevdf, "", "se.slice in /proc/self/sched")
	}
	f, _ := r.knob("features")
	if strings.Contains(f, "PLACE_LAG") || strings.Contains(f, "RUN_TO_PARITY") {
		r.say(eevdf, "", "PLACE_LAG or RUN_TO_PARITY in debug/sched/features")
	}
}

// fallback decides by configuration and version when no file told.
func (r *schedReader) fallback(v version) {
	if r.out.Name != "" || !v.ok {
		return
	}
	for _, o := range [][2]string{{"SCHED_BFS", "bfs"}, {"SCHED_MUQSS", "muqss"}, {"SCHED_BORE", "bore"}} {
		if r.ev.Config[o[0]] == "y" && (o[0] != "SCHED_BORE" || len(r.out.Evidence) == 0) {
			r.say(o[1], "", "CONFIG_"+o[0]+"=y")
			return
		}
	}
	if r.ev.Config["SCHED_ALT"] == "y" {
		r.out.Evidence = append(r.out.Evidence, "CONFIG_SCHED_ALT=y: BMQ or PDS, which one is not shown")
		return
	}
	known := "no configuration readable"
	if r.ev.Config != nil {
		known = "the configuration names no other"
	}
	name := "eevdf"
	switch {
	case v.before(2, 6, 23):
		name = "o1"
	case v.before(6, 6, 0):
		name = "cfs"
	}
	r.say(name, "", fmt.Sprintf("kernel version %d.%d.%d; %s", v.n[0], v.n[1], v.n[2], known))
}

// hint weighs the names people give to their kernels; they decide nothing.
func (r *schedReader) hint() {
	text := strings.ToLower(r.ev.uname(2) + " " + string(r.ev.Files["version"]))
	for _, h := range [][2]string{{"-bfs", "bfs"}, {"-muqss", "muqss"}, {"-bore", "bore"}, {"-pds", "pds"}, {"-bmq", "bmq"}, {"-eevdf", "eevdf"}, {"-cfs", "cfs"}} {
		if strings.Contains(text, h[0]) {
			if r.out.Name == h[1] {
				r.out.Evidence = append(r.out.Evidence, "the kernel is named "+h[0]+" (a hint)")
			} else {
				r.out.Conflicts = append(r.out.Conflicts, "the kernel is named "+h[0]+" (a hint)")
			}
		}
	}
}

// version of a kernel: 2.6.30.5 is 2, 6, 30.
type version struct {
	n  [3]int
	ok bool
}

func kernelVersion(release string) version {
	m := versionHead.FindStringSubmatch(release)
	if m == nil {
		return version{}
	}
	v := version{ok: true}
	for i := range v.n {
		v.n[i], _ = strconv.Atoi(m[i+1]) // "" is 0
	}
	return v
}

// before reports whether v is known and older than a.b.c.
func (v version) before(a, b, c int) bool {
	if !v.ok {
		return false
	}
	for i, w := range [3]int{a, b, c} {
		if v.n[i] != w {
			return v.n[i] < w
		}
	}
	return false
}
