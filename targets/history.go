package targets

import (
	"path"
	"strings"
)

// finding is what one console line means to a boot: at most one of its parts is
// set, apart from phase.
type finding struct {
	stage string // of a BootError; "" is none
	what  string // in words; the line itself when empty
	phase Phase  // that the line proves
	again bool   // a kernel began (again): readiness seen before does not count
}

// bootHistory follows a boot through the kernel banners on a console.
type bootHistory struct {
	wanted  string // glob of the release, "" any
	first   string // identity of the first banner
	banners int    // how often the first was seen
	timed   bool   // this log's kernel prints times
	went    bool   // init, firmware or a reboot was seen since the banner
	died    bool   // something bad was seen since the banner
}

// read takes one whole line.
func (h *bootHistory) read(line string) finding {
	sec, msg, timed := kernelTime(line)
	if goingDown.MatchString(msg) && (timed || strings.HasPrefix(msg, "reboot: ")) {
		h.went, h.timed = true, false
		return finding{phase: PhaseDown}
	}
	if loaderBanner.MatchString(strings.TrimSpace(line)) {
		h.went, h.timed = true, false
		return finding{phase: PhaseLoading}
	}
	if id, ok := bannerOf(msg); ok && (timed && sec < 1 || !timed && !h.timed) {
		h.timed = timed
		return h.banner(id)
	}
	h.timed = h.timed || timed
	if initRun.MatchString(msg) || timed && sec > 10 {
		h.went = true
	}
	stage := badSign(line)
	if stage != "" {
		h.died = true
	}
	return finding{stage: stage}
}

// banner judges a kernel banner. The same one twice in a row is an early and a
// real console; after init ran, or a third time, it is a machine that restarts.
func (h *bootHistory) banner(id string) finding {
	f := finding{phase: PhaseKernel, again: true}
	restarted := h.went || h.died
	h.went, h.died = false, false
	switch {
	case h.first == "":
		h.first, h.banners = id, 1
	case !sameKernel(h.first, id):
		// One kernel may load another, but only towards the wanted one.
		if h.wanted != "" && !globbed(h.wanted, h.first) && globbed(h.wanted, id) {
			h.first, h.banners = id, 1
			return f
		}
		f.stage, f.what = StageRestart, "unexpected restart, running "+id+" instead of "+h.first
	case restarted || h.banners >= 2:
		f.stage, f.what = StageLoop, "crash suspected: "+id+" began again without having been asked"
	default:
		h.banners++
		return finding{}
	}
	return f
}

// globbed reports whether an identity's release matches a glob.
func globbed(glob, id string) bool {
	release, _, _ := strings.Cut(id, " ")
	ok, err := path.Match(glob, release)
	return err == nil && ok
}
