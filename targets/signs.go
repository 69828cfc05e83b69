package targets

import (
	"regexp"
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
	StageLockup    = "soft lockup"
	StageHungTask  = "hung task"
	StageRCU       = "rcu stall"
	StageRestart   = "unexpected restart"
	StageLoop      = "restart loop"
	StageLoader    = "boot loader"
	StageHang      = "hang"
	StageEnded     = "machine ended"
)

// Stages of a BootError that the probe names.
const (
	StageUnreachable    = "unreachable"
	StageWrongKernel    = "wrong kernel"
	StageWrongScheduler = "wrong scheduler"
	StageNotRebooted    = "not rebooted"
)

var (
	// A printk prefix: level, time, and with CONFIG_PRINTK_CALLER the caller.
	printkPrefix = regexp.MustCompile(`(?:<\d+>)?\[\s*(\d+\.\d{6})\]\s?(?:\[\s*[TC]\d+\]\s?)?`)
	banner       = regexp.MustCompile(`\bLinux version (\d\S*)(.*)$`)
	buildNumber  = regexp.MustCompile(`\s(#\d+)\b`)
	loaderBanner = regexp.MustCompile(`^(?:U-Boot(?: SPL)? \d|CFE version |RedBoot\(tm\)|SeaBIOS \(|iPXE |GNU GRUB |GRUB loading|Welcome to GRUB|Starting kernel \.\.\.|## Booting |Hit any key to stop autoboot|PMON|BIOS Date:|Uncompressing Linux|Decompressing )`)
	goingDown    = regexp.MustCompile(`(?:reboot: )?(?:Restarting system|machine restart|Power down|System halted)\b`)
	initRun      = regexp.MustCompile(`Run \S+ as init process|^init started:|^systemd\[1\]: |Rebooting in \d+ seconds|^procd: `)
	loaderPrompt = regexp.MustCompile(`^(?:=> ?|(?:U-Boot|CFE|RedBoot|grub|ar7\w*|ath|uboot|[A-Za-z0-9_-]{2,16} ?#)> ?|grub rescue> ?|MT\d+ ?# ?|iPXE> ?|Shell> ?|\*\*\* Invalid CFE command \*\*\*)$`)
)

// badSigns in order of rank: the first that matches a line names the stage. An
// expression with ^ must begin a kernel message, so that a sentence with the
// word BUG in it is none.
var badSigns = [...]struct {
	stage string
	re    *regexp.Regexp
}{
	{StageNoRoot, regexp.MustCompile(`Unable to mount root fs|^VFS: Cannot open root device|Gave up waiting for root|does not exist\.\s+Dropping to a shell|^\(initramfs\)`)},
	{StageNoInit, regexp.MustCompile(`No working init found|No init found|Requested init \S+ failed`)},
	{StagePanic, regexp.MustCompile(`Kernel panic - not syncing|^Kernel panic`)},
	{StageLockup, regexp.MustCompile(`^(?:NMI )?(?:watchdog: )?BUG: (?:soft|workqueue) lockup|^(?:NMI )?[Ww]atchdog.* hard LOCKUP`)},
	{StageHungTask, regexp.MustCompile(`^INFO: task .+ blocked for more than \d+ seconds`)},
	{StageRCU, regexp.MustCompile(`^(?:rcu: )?INFO: rcu\w* (?:self-)?detected (?:expedited )?stall|^rcu: .*kthread starved`)},
	{StageOops, regexp.MustCompile(`^(?:Internal error: )?Oops\b|^BUG: |^kernel BUG at |^Kernel bug detected|^(?:CPU \d+ )?Unable to handle kernel|^general protection fault|^Unhandled (?:kernel|fault)|^double fault|^divide error|^invalid opcode:`)},
	{StageEmergency, regexp.MustCompile(`You are in emergency mode|^Entering emergency mode|^Give root password for maintenance`)},
}

// Survivable stages are lived through by some machines: an emulator on a busy host.
func Survivable(stage string) bool {
	return stage == StageLockup || stage == StageHungTask || stage == StageRCU
}

// kernelTime returns the printk time of a line in seconds, and the message after
// the last prefix; ok is false for a line without one.
func kernelTime(line string) (seconds float64, msg string, ok bool) {
	all := printkPrefix.FindAllStringSubmatchIndex(line, -1)
	if len(all) == 0 {
		return 0, strings.TrimSpace(line), false
	}
	m := all[len(all)-1]
	seconds, _ = strconv.ParseFloat(line[m[2]:m[3]], 64)
	return seconds, strings.TrimSpace(line[m[1]:]), true
}

// badSign names what a kernel's line complains of; "" is nothing.
func badSign(line string) string {
	_, msg, _ := kernelTime(line)
	for _, s := range badSigns {
		if s.re.MatchString(msg) {
			return s.stage
		}
	}
	return ""
}

// bannerOf returns the identity in a kernel banner: "6.9.3-ks #41".
func bannerOf(msg string) (string, bool) {
	m := banner.FindStringSubmatch(msg)
	if m == nil {
		return "", false
	}
	id := m[1]
	if b := buildNumber.FindStringSubmatch(m[2]); b != nil {
		id += " " + b[1]
	}
	return id, true
}

// sameKernel compares two identities; a build number cut off by noise is no
// difference.
func sameKernel(a, b string) bool {
	ra, na, okA := strings.Cut(a, " ")
	rb, nb, okB := strings.Cut(b, " ")
	return ra == rb && (!okA || !okB || na == nb)
}
