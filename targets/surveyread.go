package targets

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// surveyReader makes a Survey of two scripts' answers.
type surveyReader struct {
	*Evidence
	more map[string][]byte
	s    *Survey
}

// lines are those of a section, without their ends.
func (r *surveyReader) lines(section string) []string {
	var out []string
	for line := range strings.Lines(string(r.more[section])) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// absent is why a section is not there.
func (r *surveyReader) absent(section, otherwise string) Found {
	if _, ok := r.more[section]; !ok && r.s.Cut != "" {
		return Found{Missing: r.s.Cut}
	}
	return Found{Missing: otherwise}
}

// elf is the header of one of the machine's own programs.
func (r *surveyReader) elf() []byte {
	head := r.Files["elf"]
	if x := r.Files["elf_hex"]; len(head) < 20 && x != nil {
		head, _ = hex.DecodeString(strings.Join(strings.Fields(string(x)), "")) // a bad one is no ELF header
	}
	return head
}

func (r *surveyReader) machine() {
	who := pairs(r.more["who"])
	r.s.Hostname, r.s.UID = r.uname(1), who["uid"]
	head := r.elf()
	p, err := ProgramFromELF(head, r.uname(4))
	if err != nil {
		why := Found{Missing: err.Error()}
		r.s.Arch, r.s.ByteOrder, r.s.Float = why, why, why
		return
	}
	word, order := "little-endian", binary.ByteOrder(binary.LittleEndian)
	if head[5] == 2 {
		word, order = "big-endian", binary.BigEndian
	}
	said := fmt.Sprintf("ELF header of its shell: class %d, data %d, machine %d", head[4], head[5], order.Uint16(head[18:]))
	r.s.Arch = Found{Value: p.GOARCH, Evidence: said + "; uname -m says " + orNothing(r.uname(4))}
	r.s.ByteOrder = Found{Value: word, Evidence: said}
	r.s.Float = r.float(p, head, order)
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return strconv.Quote(s)
}

// float says whether the CPU computes with reals itself.
func (r *surveyReader) float(p Program, head []byte, order binary.ByteOrder) Found {
	info := strings.ToLower(string(r.Files["cpuinfo"]))
	switch {
	case p.GOARCH == "arm" && len(head) >= 40 && order.Uint32(head[36:])&0x400 != 0:
		return Found{Value: "hard", Evidence: "its programs use the hard-float ABI (ELF flag 0x400)"}
	case p.GOARCH == "arm" && info == "", strings.HasPrefix(p.GOARCH, "mips") && info == "":
		return Found{Missing: "/proc/cpuinfo is not readable"}
	case p.GOARCH == "arm" && strings.Contains(info, "vfp"):
		return Found{Value: "hard", Evidence: "vfp among the features in /proc/cpuinfo; its programs use the soft-float ABI"}
	case p.GOARCH == "arm":
		return Found{Value: "soft", Evidence: "no vfp among the features in /proc/cpuinfo"}
	case strings.HasPrefix(p.GOARCH, "mips") && strings.Contains(info, "fpu v"):
		return Found{Value: "hard", Evidence: "an FPU in the cpu model of /proc/cpuinfo"}
	case strings.HasPrefix(p.GOARCH, "mips"):
		return Found{Value: "soft", Evidence: "no FPU in the cpu model of /proc/cpuinfo"}
	}
	return Found{Value: "hard", Evidence: "every " + p.GOARCH + " has it"}
}

func (r *surveyReader) cpus() {
	sockets, cores := map[string]bool{}, map[string]bool{}
	for _, line := range r.lines("topology") {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		r.s.Topology.Threads++
		sockets[f[0]], cores[line] = true, true
	}
	r.s.Topology.Sockets, r.s.Topology.Cores = len(sockets), len(cores)
	r.s.Topology.Nodes = len(r.lines("nodes"))
	r.s.Knobs = slices.Sorted(maps.Keys(r.Sched))
}

// worst is how far a clock may be off before it is said to be wrong.
const worst = 5 * time.Second

func (r *surveyReader) clock(at time.Time) {
	var keeper, evidence string
	for _, line := range r.lines("clock") {
		if f, ok := strings.CutPrefix(line, "synchronised "); ok {
			keeper, evidence = "synchronised", f+" is there"
		}
		if f, ok := strings.CutPrefix(line, "adjtimex "); ok && keeper == "" {
			keeper, evidence = "synchronised", "adjtimex: "+strings.Join(strings.Fields(f), " ")
			if strings.Contains(strings.ToUpper(f), "UNSYNC") {
				keeper = "not synchronised"
			}
		}
	}
	for _, line := range r.lines("daemons") {
		if name, ok := strings.CutPrefix(line, "clock "); ok {
			if keeper == "" {
				keeper = "kept by " + strings.Trim(name, "()")
			}
			evidence = strings.TrimPrefix(evidence+"; the process "+name, "; ")
			break
		}
	}
	if keeper == "" {
		keeper, evidence = "nothing seen that keeps it", "no time daemon among the processes"
	}
	first := r.lines("clock")
	if len(first) == 0 {
		r.s.Clock = r.absent("clock", "date +%s says nothing")
		return
	}
	sec, err := strconv.ParseInt(strings.TrimSpace(first[0]), 10, 64)
	if err != nil {
		r.s.Clock = Found{Missing: "date +%s is not known there: it said " + strconv.Quote(cut(first[0], 40))}
		return
	}
	off := time.Unix(sec, 0).Sub(at.Truncate(time.Second))
	switch {
	case off > worst:
		keeper = fmt.Sprintf("%s, WRONG: %s before the controller's", keeper, off.Round(time.Second))
	case off < -worst:
		keeper = fmt.Sprintf("%s, WRONG: %s behind the controller's", keeper, (-off).Round(time.Second))
	default:
		keeper += ", agrees with the controller's"
	}
	r.s.Clock = Found{Value: keeper, Evidence: evidence}
}

func cut(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func (r *surveyReader) system() {
	r.s.Distro = r.distribution()
	if l := firstLine(r.more["busybox"]); strings.HasPrefix(l, "BusyBox v") {
		r.s.BusyBox = Found{Value: strings.TrimPrefix(strings.Join(strings.Fields(l)[:2], " "), "BusyBox "), Evidence: l}
	} else {
		r.s.BusyBox = r.absent("busybox", "no busybox there")
	}
	dog := pairs(r.more["watchdog"])
	if dog["device"] == "" {
		r.s.Watchdog = r.absent("watchdog", "no /dev/watchdog there")
	} else {
		var feeds []string
		for _, line := range r.lines("daemons") {
			if name, ok := strings.CutPrefix(line, "watchdog "); ok {
				feeds = append(feeds, name)
			}
		}
		r.s.Watchdog = Found{Value: dog["device"] + ", nobody seen that feeds it", Evidence: "no process that is known to, and /sys says state " + orNothing(dog["state"])}
		if len(feeds) > 0 {
			r.s.Watchdog = Found{Value: dog["device"] + ", fed by " + strings.Join(slices.Compact(feeds), ", "), Evidence: "the processes"}
		}
		if dog["identity"] != "" {
			r.s.Watchdog.Value += " (" + dog["identity"] + ")"
		}
	}
	who := pairs(r.more["who"])
	const sysBoot = 1 << 22 // CAP_SYS_BOOT, linux/capability.h
	if caps, err := strconv.ParseUint(who["capbnd"], 16, 64); err == nil && caps&sysBoot == 0 {
		r.s.Container = "no process there may restart it (CapBnd lacks CAP_SYS_BOOT): a container"
	} else if c := who["container"]; c != "" {
		r.s.Container = c + " is there: a container"
	}
}

func (r *surveyReader) distribution() Found {
	wrt := pairs(r.more["openwrt_release"])
	if d := strings.Trim(wrt["DISTRIB_DESCRIPTION"], `"'`); d != "" {
		return Found{Value: d, Evidence: "/etc/openwrt_release"}
	}
	rel := pairs(r.more["os-release"])
	for _, name := range []string{"PRETTY_NAME", "NAME", "ID"} {
		if d := strings.Trim(rel[name], `"'`); d != "" {
			return Found{Value: d, Evidence: name + " in os-release"}
		}
	}
	for _, line := range r.lines("versions") {
		if file, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(v) != "" {
			if strings.HasSuffix(file, "debian_version") {
				v = "Debian " + v
			}
			return Found{Value: strings.TrimSpace(v), Evidence: file}
		}
	}
	return r.absent("versions", "no os-release, openwrt_release or older file of its kind")
}
