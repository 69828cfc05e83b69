package targets

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Stages of a BootError that the console names.
const (
	StagePanic     = "panic"
	StageOops      = "oops"
	StageNoRoot    = "no root"
	StageNoInit    = "no init"
	StageEmergency = "emergency shell"
	StageLockup    = "soft lockup" // hard ones too
	StageHungTask  = "hung task"
	StageRCU       = "rcu stall"
	StageUnpacked  = "not decompressed" // the kernel's own loader gave up
	StageRefused   = "refused by the boot loader"
	StageRestart   = "unexpected restart"
	StageLoop      = "restart loop" // also of the boot loader, without a kernel
	StageLoader    = "boot loader"  // stuck there
	StageHang      = "hang"
	StageEnded     = "machine ended"
)

// Stages of a BootError that the probe names.
const (
	StageUnreachable    = "unreachable"
	StageWrongKernel    = "wrong kernel" // the console may name it too
	StageWrongScheduler = "wrong scheduler"
	StageNotRebooted    = "not rebooted"
)

// sign is how a message says what failed: by how it begins, so that a sentence
// with the word BUG in it is none, or by words anywhere, unless they are quoted.
type sign struct {
	stage string
	begin *regexp.Regexp
	words []string
}

// kernelSigns are a kernel's and its user space's, in order of rank: the first
// that matches names the stage. The wordings are those of Linux 2.4 to 6.x, and
// of the initial RAM disks of Debian, dracut, Arch, Gentoo and Alpine.
var kernelSigns = [...]sign{
	{StageNoRoot, regexp.MustCompile(`^(?:VFS: Cannot open root device|Please append a correct "root=" boot option|No filesystem could mount root|Gave up waiting for (?:root|suspend/resume)|ALERT! .*(?:does not exist|Dropping to a shell)|\(initramfs\)|dracut:/\S* ?#|\[rootfs [^\]]*\]# ?$|ERROR: Failed to mount .* on real root|!! (?:Could not find the root|Block device .* is not a valid root)|Mounting root: failed|initramfs emergency recovery shell|dracut\S* Warning: Could not boot)`),
		[]string{"Unable to mount root fs", "Dropping to a shell!", "Starting Dracut Emergency Shell"}},
	{StageNoInit, regexp.MustCompile(`^(?:(?:Kernel panic: )?No init found|(?:run-init|switch_root): .*(?:No such file|can't execute|failed to execute|not found))`),
		[]string{"No working init found", "Requested init ", "doesn't have requested ", "Cannot find init!"}},
	{StagePanic, regexp.MustCompile(`^(?:Kernel panic(?: - |: )|\w{0,5} ?panic - not syncing: |\(XEN\) Panic on CPU|Error: unrecognized/unsupported (?:machine ID|processor variant))`),
		[]string{panicWords, "PANIC: early exception", "PANIC: double fault"}},
	{StageUnpacked, regexp.MustCompile(`^(?:-+ ?System halted|(?:\S+ )?(?:LZMA|XZ|LZO|LZ4|ZSTD|GZIP|XZ-compressed) data is corrupt|invalid compressed format|Error -?\d+ while decompressing|Decoding failed$|(?:Decompressing kernel|Uncompressing Linux)\S* ?.*(?:failed|ERROR|corrupt))`), nil},
	{StageLockup, regexp.MustCompile(`^(?:(?:NMI )?(?:watchdog: )?BUG: (?:soft|workqueue) lockup|(?:NMI )?[Ww]atchdog.* hard LOCKUP)`), nil},
	{StageHungTask, regexp.MustCompile(`^INFO: task .+ blocked (?:in I/O wait )?for more than \d+ seconds`), nil},
	{StageRCU, regexp.MustCompile(`^(?:(?:rcu: )?INFO: (?:rcu\w*|RCU) (?:self-)?detected .*stall|(?:rcu: )?\w+ kthread starved for \d+ jiffies|RCU detected CPU \d+ stall)`), nil},
	{StageOops, regexp.MustCompile(`^(?:Oops: [0-9a-f]{4}\b|kernel BUG at |Kernel bug detected\[|(?:CPU \d+ )?Unable to handle kernel|general protection fault|Unhandled kernel |(?:Data|Instruction) bus error|double fault: )`), nil},
	{StageEmergency, regexp.MustCompile(`^(?:Entering emergency mode|Give root password for maintenance|Press Enter for maintenance|- failsafe -$)`),
		[]string{"You are in emergency mode", "root account is locked", "RUN fsck MANUALLY", "FAILSAFE MODE active"}},
}

// dieCounter is the number of an oops, which every architecture prints behind
// its name: "Oops: 17 [#1] ARM", "Data bus error[#2]:".
var dieCounter = regexp.MustCompile(`^(?:Internal error: |Oops\b|[A-Za-z][\w ,.:'()/-]*(?:Oops|fault|error|instruction|access|exception|segment|opcode|trap|context|code|int3)\b)[\w ,.:!'()/-]*\[#+\d{1,3}\]`)

// A kernel's "BUG:" is an oops, unless it only reports and goes on.
var (
	bugLine  = regexp.MustCompile(`^(?:BUG: |=* *BUG \S+ \()`)
	mildBugs = regexp.MustCompile(`^BUG: (?:sleeping function|scheduling while atomic|using \S*(?:smp_processor_id|this_cpu)|KCSAN|MAX_\w+ too low|key \S+ |arch topology|lock held|Invalid wait context)`)
)

// mildWords are those of the mild ones that noise may have hit.
var mildWords = [...]pattern{
	newPattern("sleeping function called from invalid context"),
	newPattern("scheduling while atomic"),
	newPattern("using smp_processor_id() in preemptible"),
}

// crashKernel is on the command line of a kernel that runs because another one
// crashed (kernel Documentation/admin-guide/kdump); a healthy one has crashkernel=.
var crashKernel = regexp.MustCompile(`\belfcorehdr=(?:0x)?[0-9a-fA-F]+K?(?: |$)`)

var (
	// A printk prefix: level, time, and with CONFIG_PRINTK_CALLER the caller; some
	// vendors' kernels add the CPU.
	printkPrefix = regexp.MustCompile(`(?:<\d+>)?\[\s*(\d+\.\d{5,7})(?:@\d+)?\]\s?(?:\[\s*[TC]\d+\]\s?|\(\d\)\s?|c\d\s+)?`)
	damagedTime  = regexp.MustCompile(`^(?:\[[ \d.]{5,18}\]? ?|[ \d.]{7,18}\] ?)`)
	syslogPrefix = regexp.MustCompile(`^(?:<\d+>)?(?:\w{3} [ \d]\d [\d:]{8} \S+ )?(?:kern\.\w+ )?(?:kernel: )?`)
	banner       = regexp.MustCompile(`(?:^\W*(?:L[inux]{2,5}|inux) ?v?[ersion]{4,7} ?|Linux version )(\d\S*)(.*)$`)
	buildNumber  = regexp.MustCompile(`\s(#\d+)\b`)
	goingDown    = regexp.MustCompile(`^(?:reboot: )?(?:Restarting system(?: with command .*)?|machine restart|Power down|System halted)\.*$`)
	recordHead   = regexp.MustCompile(`\b(?:Panic|Oops|Emergency|Shutdown|Unknown)#\d+ Part\d+$`) // fs/pstore/platform.c
	rebooting    = regexp.MustCompile(`^Rebooting in \d+ seconds`)
	initRun      = regexp.MustCompile(`^(?:Run \S+ as init process|init started:|systemd\[1\]: |procd: |Please press Enter to activate this console)`)
)

// Survivable stages are lived through by some machines: an emulator on a busy host.
func Survivable(stage string) bool {
	return stage == StageLockup || stage == StageHungTask || stage == StageRCU
}

// guestLine is one that Xen or a program ("qemu[vm1]: [    0.000000] ...") passes
// on for another kernel than the target's.
var guestLine = regexp.MustCompile(`^(?:\(d[1-9]\d*\) |[\w./@-]{1,40}\[\w{1,20}\]: (?:<\d+>)?\[ *\d+\.\d{5,7}\] )`)

// message is one writer's part of a console line.
type message struct {
	text    string
	timed   bool
	leveled bool    // with the level that a console leaves out
	sec     float64 // printk time, when timed
	damaged bool    // noise has hit the printk time
}

// messages splits a line where printk prefixes stand in it: a kernel's words
// often begin in the middle of a program's line.
func messages(line string) []message {
	line = plain(line)
	if guestLine.MatchString(line) {
		return nil
	}
	var out []message
	add := func(m message) {
		if m.text = strings.TrimRight(strings.TrimLeft(m.text, " \t]"), " \t"); m.text != "" {
			out = append(out, m)
		}
	}
	var at [][]int
	if strings.IndexByte(line, '[') >= 0 {
		at = printkPrefix.FindAllStringSubmatchIndex(line, -1)
	}
	if len(at) == 0 {
		if rest := line[len(damagedTime.FindString(line)):]; len(rest) < len(line) {
			add(message{text: rest, damaged: true})
		} else {
			add(message{text: syslogPrefix.ReplaceAllString(line, "")})
		}
		return out
	}
	add(message{text: syslogPrefix.ReplaceAllString(line[:at[0][0]], "")})
	for i, m := range at {
		end := len(line)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sec, _ := strconv.ParseFloat(line[m[2]:m[3]], 64) // digits and a point
		add(message{text: line[m[1]:end], timed: true, sec: sec, leveled: line[m[0]] == '<'})
	}
	return out
}

// plain leaves out what no kernel prints: the bytes of a wrong line speed. The
// quotation marks of other languages become those of ASCII.
func plain(line string) string {
	if !strings.ContainsFunc(line, func(r rune) bool { return r > '~' }) {
		return line
	}
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("„“”‚‘’«»‹›", r):
			return '"'
		case r > '~':
			return -1
		}
		return r
	}, line)
}

// kernelTime returns the printk time of a line in seconds, and the message after
// the last prefix; ok is false for a line without one.
func kernelTime(line string) (seconds float64, msg string, ok bool) {
	all := messages(line)
	if len(all) == 0 {
		return 0, "", false
	}
	m := all[len(all)-1]
	return m.sec, m.text, m.timed
}

// badSign names what a kernel's line complains of; "" is nothing.
func badSign(line string) string {
	for _, m := range messages(line) {
		if f := kernelSign(m.text); f.stage != "" {
			return f.stage
		}
	}
	return ""
}

// kernelSign reads one message of a kernel or its user space.
func kernelSign(msg string) finding {
	if strings.Contains(msg, "elfcorehdr=") && crashKernel.MatchString(msg) {
		return finding{stage: StagePanic, what: "the crash kernel runs, so the kernel before it crashed: " + msg, rank: rankCertain}
	}
	for _, s := range kernelSigns {
		if s.begin.MatchString(msg) || slices.ContainsFunc(s.words, func(w string) bool { return says(msg, w) }) {
			return finding{stage: s.stage, rank: ranks(s.stage)}
		}
	}
	if strings.Contains(msg, "[#") && dieCounter.MatchString(msg) {
		return finding{stage: StageOops, rank: rankTrouble}
	}
	if bugLine.MatchString(msg) {
		mild := mildBugs.MatchString(msg) || slices.ContainsFunc(mildWords[:], func(p pattern) bool { return p.in(msg, 0) })
		return finding{stage: StageOops, rank: rankTrouble, mild: mild}
	}
	return finding{}
}

// says finds words in a message, unless they are quoted.
func says(msg, words string) bool { return strings.Contains(msg, words) && !quoted(msg, words) }

// quoted says that words stand in a message behind a quotation mark.
func quoted(msg, words string) bool {
	before, _, ok := strings.Cut(msg, words)
	return ok && before != "" && strings.ContainsRune("'\"`", rune(before[len(before)-1]))
}

// bannerOf returns the identity in a kernel banner: "6.9.3-ks #41".
func bannerOf(msg string) (string, bool) {
	id, _, ok := readBanner(msg)
	return id, ok
}

// readBanner also returns all of the banner from the release on.
func readBanner(msg string) (id, whole string, ok bool) {
	m := banner.FindStringSubmatch(msg)
	if m == nil {
		return "", "", false
	}
	id = m[1]
	if b := buildNumber.FindStringSubmatch(m[2]); b != nil {
		id += " " + b[1]
	}
	return id, m[1] + m[2], true
}

// sameKernel compares two identities; a build number cut off by noise is no
// difference.
func sameKernel(a, b string) bool {
	ra, na, okA := strings.Cut(a, " ")
	rb, nb, okB := strings.Cut(b, " ")
	return ra == rb && (!okA || !okB || na == nb)
}
