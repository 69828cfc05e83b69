package targets

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// finding is what one console line means to a boot.
type finding struct {
	stage  string        // of a BootError; "" is none
	what   string        // in words; the line itself when empty
	rank   int           // of the stage: what explains more counts
	wait   time.Duration // it may turn out well: decided after so long; 0 at once
	mild   bool          // a complaint that a system lives with
	old    bool          // the word of a system from before the start
	phase  Phase         // that the line proves
	again  bool          // a kernel began (again): readiness seen before does not count
	final  bool          // nothing that explains it will follow
	kernel bool          // a kernel has the machine: what its loader doubted is settled
	sec    float64       // printk time of the line, 0 is none
}

// Ranks of findings: a panic for want of a root follows a milder line, and a
// lockup may end in a panic.
const (
	rankTrouble = iota + 1
	rankPanic
	rankCause
	rankCertain
)

func ranks(stage string) int {
	switch stage {
	case StageNoRoot, StageNoInit:
		return rankCause
	case StagePanic, StageUnpacked:
		return rankPanic
	}
	return rankTrouble
}

// place is who speaks on the console.
type place int

const (
	unknown  place = iota
	inLoader       // firmware or a boot loader
	handed         // the loader has started the kernel
	inKernel       // a kernel's banner was seen
)

// bootHistory follows a boot through the banners on a console.
type bootHistory struct {
	wanted  string // glob of the release, "" any
	first   string // identity of the first banner
	whole   string // the first banner from the release on
	banners int    // how often the first was seen
	timed   bool   // this log's kernel prints times
	went    bool   // init, firmware or a reboot was seen since the banner
	died    bool   // something bad was seen since the banner
	levels  bool   // the kernel's lines come with their levels
	record  bool   // a program prints what pstore kept of an earlier crash
	place   place
	loaders map[string]int // banners of loaders since the last kernel began
	tail    string         // end of the line before
	doubt,
	doubtWhole string // a banner without time that a program may have printed
}

// restartWords are found also where noise has hit them.
var restartWords = [...]pattern{newPattern("Restarting system")}

const (
	maxTail    = 64
	maxLoaders = 16
	loaderLoop = 3 // starts of a loader without a kernel
)

// read takes one whole line.
func (h *bootHistory) read(line string) finding {
	var out finding
	all := messages(line)
	for _, m := range all {
		f := h.message(m)
		if f.phase != "" {
			out.phase, out.again = f.phase, out.again || f.again
		}
		out.kernel = out.kernel || f.kernel
		if f.stage != "" && (out.stage == "" || outranks(f, out)) {
			f.phase, f.again, f.kernel = out.phase, out.again, out.kernel
			out = f
		}
	}
	foreign := len(all) == 0 || h.record && all[len(all)-1].leveled
	if out.stage == "" && out.phase == "" && !out.kernel && !foreign {
		out, foreign = noisySign(h.tail, line, h.place != inKernel)
	}
	h.died = h.died || out.stage != "" && !out.mild
	h.tail = ""
	if (out.stage == "" || out.mild) && !foreign { // the next line may end its words
		h.tail = plain(line)
		h.tail = h.tail[max(0, len(h.tail)-maxTail):]
	}
	out.final = strings.Contains(line, "---[ end Kernel panic")
	if out.stage != "" {
		out.sec, _, _ = kernelTime(line)
	}
	return out
}

// message reads one writer's words.
func (h *bootHistory) message(m message) finding {
	if recordHead.MatchString(m.text) && h.place == inKernel && !h.levels {
		h.record = true
	}
	h.levels = h.levels || m.leveled && !h.record
	if h.record && m.leveled {
		return finding{}
	}
	if doubt := h.doubt; doubt != "" {
		if h.doubt = ""; earlyWords.MatchString(m.text) {
			h.timed = false
			return h.banner(doubt, h.doubtWhole)
		}
	}
	switch {
	case (goingDown.MatchString(m.text) || m.timed && len(m.text) < 40 && restartWords[0].in(m.text, 0)) && (m.timed || !h.timed):
		return h.down(m.text)
	case !m.timed && loaderBanner.MatchString(m.text):
		return h.loader(m.text)
	case !m.timed && handover.MatchString(m.text):
		h.went = h.went || h.place == inKernel
		h.place, h.timed = handed, false
		return finding{phase: PhaseLoading, kernel: true}
	}
	if id, whole, ok := readBanner(m.text); ok && h.credible(m) {
		if !m.timed && !m.damaged && h.place == inKernel && h.went && !h.died {
			h.doubt, h.doubtWhole = id, whole // `cat /proc/version` looks the same
			return finding{}
		}
		h.timed = m.timed || m.damaged
		return h.banner(id, whole)
	}
	h.timed = h.timed || m.timed
	if m.timed && h.place == inLoader { // noise has hit the banner
		h.place = handed
		return finding{kernel: true}
	}
	if initRun.MatchString(m.text) || m.timed && m.sec > 10 {
		h.went = true
	}
	if rebooting.MatchString(m.text) && h.place != inLoader {
		return finding{stage: StagePanic, rank: rankTrouble, what: "crash suspected: " + m.text}
	}
	f := kernelSign(m.text)
	if f.stage == StageOops && h.timed && !m.timed && !m.damaged && bugLine.MatchString(m.text) {
		return finding{} // a program's word
	}
	if f.stage == "" && h.place != inKernel && !m.timed {
		f = loaderComplaint(m.text)
	}
	return f
}

// credible says that a banner is a kernel's own: at time zero, or without any
// time where the log has none, or with a damaged one.
func (h *bootHistory) credible(m message) bool {
	if m.timed {
		return m.sec < 1
	}
	return !h.timed || m.damaged || h.place != inKernel
}

// isWanted says that the kernel seen may be the one that is waited for.
func (h *bootHistory) isWanted() bool { return h.wanted == "" || globbed(h.wanted, h.first) }

// down reads that a system goes down: the old one, or the new one unasked.
func (h *bootHistory) down(msg string) finding {
	f := finding{phase: PhaseDown}
	if h.place == inKernel && h.isWanted() {
		f.stage, f.wait = StageRestart, restartWait
		f.what = fmt.Sprintf("%s went down without having been asked (%s)", h.first, msg)
	}
	h.place, h.went, h.timed = unknown, true, false
	return f
}

// loader judges the banner of a firmware or boot loader.
func (h *bootHistory) loader(line string) finding {
	f := finding{phase: PhaseLoading, rank: rankTrouble}
	switch {
	case h.place == inKernel && h.isWanted():
		f.stage, f.wait = StageRestart, restartWait
		f.what = fmt.Sprintf("the boot loader began again after %s had started (%s)", h.first, line)
	case h.place == handed:
		f.stage, f.wait = StageRestart, restartWait
		f.what = fmt.Sprintf("the boot loader began again before the kernel said a word (%s)", line)
	}
	h.place, h.went, h.timed = inLoader, true, false
	if h.loaders == nil {
		h.loaders = map[string]int{}
	}
	name := loaderBanner.FindString(line) // its version may be hit by noise
	if _, known := h.loaders[name]; (known || len(h.loaders) < maxLoaders) && !loaderMenu.MatchString(line) {
		h.loaders[name]++
	}
	if n := h.loaders[name]; n >= loaderLoop {
		f.stage, f.wait = StageLoop, 0
		f.what = fmt.Sprintf("the boot loader began %d times and no kernel came: %s", n, line)
	}
	return f
}

// atPrompt says that an unfinished line is a boot loader's prompt.
func (h *bootHistory) atPrompt(part string) bool {
	if loaderPrompt.MatchString(part) {
		return h.place != inKernel || !strings.HasPrefix(part, "=>")
	}
	return h.place == inLoader && anyPrompt.MatchString(part) && !shellNames.MatchString(part)
}

// banner judges a kernel banner. The same one twice in a row is an early and a
// real console; after init ran, or a third time, it is a machine that restarts.
func (h *bootHistory) banner(id, whole string) finding {
	f := finding{phase: PhaseKernel, again: true, kernel: true, rank: rankTrouble}
	restarted := h.went || h.died
	h.went, h.died, h.record, h.place, h.loaders = false, false, false, inKernel, nil
	switch {
	case h.first == "":
		h.first, h.whole, h.banners = id, whole, 1
	case h.damaged(id, whole, restarted):
		if !h.isWanted() {
			h.first, h.whole = id, whole
		}
		return h.same(f, restarted)
	case !sameKernel(h.first, id):
		// One kernel may load another, but only towards the wanted one.
		if h.wanted != "" && !globbed(h.wanted, h.first) && globbed(h.wanted, id) {
			h.first, h.whole, h.banners = id, whole, 1
			return f
		}
		f.stage, f.what = StageRestart, "unexpected restart, running "+id+" instead of "+h.first
	default:
		return h.same(f, restarted)
	}
	return f
}

// same judges the first banner seen again.
func (h *bootHistory) same(f finding, restarted bool) finding {
	if !restarted && h.banners < 2 {
		h.banners++
		return finding{}
	}
	f.stage, f.what = StageLoop, "crash suspected: "+h.first+" began again without having been asked"
	return f
}

// damaged says that noise makes the difference between the first kernel's banner
// and this one: where nothing restarted, a like one comes from a second console;
// else all behind the release, with the time of the build, must be the same.
func (h *bootHistory) damaged(id, whole string, restarted bool) bool {
	if !restarted {
		return alike(h.whole, whole)
	}
	_, a, _ := strings.Cut(h.whole, " ")
	_, b, ok := strings.Cut(whole, " ")
	return ok && strings.Contains(a, "#") && a == b && alike(h.first, id)
}

// globbed reports whether an identity's release matches a glob.
func globbed(glob, id string) bool {
	release, _, _ := strings.Cut(id, " ")
	ok, err := path.Match(glob, release)
	return err == nil && ok
}

// outranks says that the later finding explains more than the earlier one.
func outranks(later, earlier finding) bool {
	switch {
	case later.rank == rankCertain:
		return earlier.rank != rankCertain
	case later.wait > 0:
		return false
	case earlier.wait > 0:
		return true
	case earlier.stage == StageRestart || earlier.stage == StageLoop:
		return false
	}
	return later.rank > earlier.rank
}
