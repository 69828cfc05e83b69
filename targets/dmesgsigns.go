package targets

import (
	"regexp"
	"strings"
)

// Kinds of LogSign.
const (
	LogIO        = "I/O errors"
	LogFlash     = "flash errors"
	LogHung      = "hung task"
	LogRCU       = "RCU stall"
	LogLockup    = "CPU lockup"
	LogOops      = "oops"
	LogOOM       = "out of memory"
	LogHardware  = "hardware error"
	LogClock     = "clock unstable"
	LogThrottled = "throttled"
	LogOther     = "complaint" // a WARNING, a corrected error, …: it may mean nothing
)

// LogSign is a line of a kernel's log that says that something is wrong.
type LogSign struct {
	Kind string
	Line string // without blanks around it
}

// LogSigns finds what complains in lines of a kernel's log. A line that merely
// has the words in it is none: each sign is known by how a message begins.
func LogSigns(lines []string) []LogSign {
	var out []LogSign
	for _, line := range lines {
		if kind := logSign(line); kind != "" {
			out = append(out, LogSign{kind, strings.TrimSpace(line)})
		}
	}
	return out
}

func logSign(line string) string {
	for _, m := range messages(line) {
		for i := range logWords {
			if logWords[i].begin.MatchString(m.text) {
				return logWords[i].kind
			}
		}
		if f := kernelSign(m.text); f.stage != "" {
			return kindOf(f.stage)
		}
	}
	return ""
}

// kindOf is what a console's sign means in the log of a machine that still runs.
func kindOf(stage string) string {
	switch stage {
	case StageHungTask:
		return LogHung
	case StageRCU:
		return LogRCU
	case StageLockup:
		return LogLockup
	case StageOops, StagePanic:
		return LogOops
	}
	return LogOther
}

// logWords are the beginnings of messages of Linux 2.4 to 6.x, the first that
// matches counts. Sources: the printk calls of block/, fs/, drivers/mtd,
// drivers/ata, drivers/mmc, mm/oom_kill.c, arch/x86/kernel/cpu/mce,
// kernel/time/clocksource.c, drivers/thermal/intel/therm_throt.c.
var logWords = [...]struct {
	kind  string
	begin *regexp.Regexp
}{
	{LogOther, regexp.MustCompile(`^(?:WARNING: |UBSAN: |BUG: (?:KCSAN|MAX_\w+ too low|key \S+ |arch topology|using \S*(?:smp_processor_id|this_cpu))|\S.{0,30}: page allocation failure|EDAC \S+: \d+ CE |\w+ [\da-f:.]+: AER: (?:Multiple )?Corrected)`)},
	{LogFlash, regexp.MustCompile(`^(?:(?i:jffs2)\b.*(?i:error|crc|fail|ecc|corrupt|magic bitmask)|jffs2_\w+\(\): .*(?i:error|crc|fail|ecc|magic bitmask)|(?:Data|Node|Header|Name) CRC \S.*(?:failed|!=)` +
		`|(?i:ubi(?:fs)?)\d*(?: \([^)]*\))?:? (?:(?i:error|assert)\b|(?i:warning).*(?:error -\d|ECC|fail))|(?:SQUASHFS|squashfs:) (?:SQUASHFS )?error` +
		`|(?:mtd->\w+|mtd\w*: |MTD ).*(?i:error|fail|ecc|time(?:d )?out)|Write of \d+ bytes at 0x[\da-f]+ failed|Erase at 0x[\da-f]+ (?:failed|finished, but)|(?:MTD )?do_(?:write|erase)\w*\(\): .*(?:timeout|error|fail)` +
		`|(?:\S+ )?(?:spi-nor|spi-nand|m25p80|nand\w*|cfi_cmdset\w*)[^:]*: .*(?i:uncorrectable|ecc error|fail|time(?:d )?out|error)|(?:\w+: )?[Uu]ncorrectable (?:ECC )?error\b)`)},
	{LogIO, regexp.MustCompile(`^(?:(?:\w+: )?(?:I/O|critical [\w ]+) error, dev |Buffer I/O error on dev|lost page write due to I/O error|EXT[234]-fs error|JBD2?: .*(?:IO|I/O) error|XFS \S+ .*(?:I/O error|[Cc]orruption)|BTRFS (?:error|critical)|FAT-fs \S+ error|F2FS-fs \S+ .*(?:I/O error|corrupt)` +
		`|ata\d+(?:\.\d+)?: (?:exception Emask|failed command: |error: \{)|sd [\d:]+ .*(?:Sense Key : (?:Medium|Hardware) Error|Unrecovered read error|Unhandled error code)|hd[a-z]: \w+: (?:error=|status=.*Error)` +
		`|mmc(?:blk)?\d\w*: (?:error -?\d|timed out |.*(?:I/O|timeout|unrecoverable|flush) error)|nvme\S*(?: \S+)?: (?:I/O .*timeout|.*I/O error|controller is down))`)},
	{LogOOM, regexp.MustCompile(`^(?:(?:Memory cgroup )?[Oo]ut of [Mm]emory(?: \([^)]*\))?: Kill|\S.{0,30} invoked oom-killer: |oom-kill:constraint=|oom_reaper: reaped |VM: killing process |lowmemorykiller: Kill)`)},
	{LogThrottled, regexp.MustCompile(`^(?:(?:mce: )?(?:CPU ?\d+: )?(?:Core |Package )?[Tt]emperature(?:/speed)? above threshold|(?:CPU ?\d+: )?Running in modulated clock mode|(?:\S+ )?\S+: (?i:under-?voltage detected)|(?i:under-?voltage detected)|thermal \S+: .*critical temperature)`)},
	{LogHardware, regexp.MustCompile(`^(?:(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: |(?:mce: )?Machine check events logged|(?:CPU ?\d+: )?(?:Machine [Cc]heck|Memory failure: 0x)|EDAC \S+: \d+ UE |\w+ [\da-f:.]+: AER: .*[Uu]ncorrect|Uhhuh\. NMI received|NMI: (?:PCI system error|IOCK error))`)},
	{LogClock, regexp.MustCompile(`^(?:(?:clocksource: )?timekeeping watchdog.*[Mm]arking clocksource|(?i:clocksource:? (?:marking clocksource )?\S+ (?:as )?unstable)|tsc: Marking TSC unstable|Marking TSC unstable)`)},
}
