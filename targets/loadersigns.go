package targets

import (
	"regexp"
	"time"
)

// How long a sign that may still turn out well waits for what comes next: the
// loader may have another way to the kernel, and what comes up after a restart
// names what fell back.
const (
	refusedWait = 3 * time.Second
	restartWait = 20 * time.Second
)

// loaderBanner is the first line of a firmware or boot loader that starts.
var loaderBanner = regexp.MustCompile(`^(?:U-Boot(?: SPL| TPL)? \d|CFE(?:,| version | for )|Broadcom CFE|RedBoot\(tm\)|Ethernet eth\d: MAC address |YAMON ROM|PMON\d*[ *]|Adam2|SeaBIOS \(|iPXE (?:\(|\d|initialising)|` +
	`GNU GRUB |GRUB loading|GRUB Loading|Welcome to GRUB|LILO \d|SYSLINUX |ISOLINUX |PXELINUX |EXTLINUX |barebox \d|coreboot-|SLOF \*+|zIPL v\d|Open Firmware|OpenBIOS \d|OpenBoot |` +
	`BIOS Date:|American Megatrends|AMIBIOS|Phoenix - AwardBIOS|UEFI Interactive Shell|UEFI firmware|BdsDxe: loading |EDK II|NOTICE:  BL\d+: v|systemd-boot |Hit any key to stop autoboot|\+?RedBoot.*version|Boot version: |---RealTek\()`)

// handover is a loader's last word before the kernel's first.
var handover = regexp.MustCompile(`^(?:Starting kernel(?: ?\.\.| at\b|[ @(]*0x|\s*$)|Starting application at|## (?:Booting kernel|Transferring control to Linux|Starting application)|Transferring control to|Starting program at 0x|Now booting linux kernel|Now, booting the kernel|Booting the kernel|Uncompressing Linux|Decompressing Linux|Jumping to (?:Linux|kernel)|Entering kernel|Loading initial ramdisk|Loading ramdisk|EFI stub: |early console in |L4 console|zImage starting|Booting kernel from|OF stdout device is)`)

// loaderSign is how a boot loader says that it has no kernel to start.
type loaderSign struct {
	stage   string
	wait    time.Duration // 0: it is over at once
	re, not *regexp.Regexp
}

// grubOwn are files that GRUB can do without.
var grubOwn = regexp.MustCompile(`/grub/|\.(?:mod|mo|gz|lst|pf2|png|jpg|tga|cfg)'`)

// loaderSigns hold only while no kernel runs.
var loaderSigns = [...]loaderSign{
	// U-Boot's bootm, bootz and booti.
	{StageRefused, refusedWait, regexp.MustCompile(`^(?:Wrong Image (?:Format|Type) for \w+ command|(?:## )?(?:Bad|Unknown) (?:Magic Number|Header Checksum|Data CRC|FIT kernel image format|Linux ARM(?:64|_EFI)? \w*[Ii]mage)|Verifying (?:Checksum|Hash Integrity) \.\.\. .*(?:Bad|error|BAD)|Bad (?:Linux|data hash|FIT)|ERROR: can't get kernel image|(?:ERROR: )?Unsupported Architecture|(?:Uncompressing|GUNZIP|LZMA|LZO|gunzip|lzma|BZIP2)\b.*(?:must RESET board|error)|Image too large|ERROR: Did not find a cmdline Flattened Device Tree|FDT and ATAGS support not compiled in|kernel image .*(?:bad|invalid)|SPL: failed to boot|Could not find configuration node)`), nil},
	{StageRefused, refusedWait, regexp.MustCompile(`^(?:TFTP error: |TFTP server died|Retry (?:count|time) exceeded|ARP Retry count exceeded|\*\* (?:Unable to read file|Bad device|Unrecognized filesystem))`), regexp.MustCompile(`\.(?:scr|env|uimg|txt|conf)\b|extlinux`)},
	// CFE and RedBoot.
	{StageRefused, refusedWait, regexp.MustCompile(`^(?:Could not load \S+: |\*\*\* command status = -|Can't load |Unrecognized image type|No image '?\S+'? found|\*\* Error: (?:No|Can't|Image)|Can't boot|No entry point known)`), nil},
	// GRUB, LILO, syslinux, iPXE, barebox, systemd-boot and EFI.
	{StageRefused, refusedWait, regexp.MustCompile(`^(?:error: .*(?:file \x60[^']*' not found|invalid magic number|bad shim signature|invalid signature|you need to load the kernel first|premature end of file|unknown filesystem|symbol \x60\w+' not found|not a regular file|unrecognized number|out of memory|invalid arch-(?:dependent|independent) ELF)|Error \d+: (?:File not found|Invalid or unsupported executable|Unknown boot failure|Kernel must be loaded))`), grubOwn},
	{StageRefused, refusedWait, regexp.MustCompile(`^(?:(?:Could not find|Invalid or corrupt) kernel image|Could not find ramdisk image|No DEFAULT or UI configuration directive|Could not boot(?: image)?: |Could not start download: |Nothing to boot|(?:Error loading|Failed to execute|Failed to load) \S*(?:\\|Linux|/boot|vmlinu)|EFI stub: ERROR: (?:efi_main|Failed|exit_boot)|(?:exit_boot|efi_main)\(\) failed|handler for .* failed|could not open .*: No such file)`), nil},
	{StageLoader, restartWait, regexp.MustCompile(`^(?:PXE-[EM][0-9A-F]+: |No more network devices|BdsDxe: failed to (?:load|start) |Failed to load image|boot: ?$)`), regexp.MustCompile(`^PXE-M0F`)},
	// It has given up.
	{StageLoader, 0, regexp.MustCompile(`^(?:No bootable (?:device|option)|BdsDxe: No bootable|Operating [Ss]ystem not found|Missing operating system|Non-[Ss]ystem disk|Reboot and [Ss]elect proper [Bb]oot device|(?:ERROR: )?No boot (?:disk|device)|NTLDR is missing|BOOTMGR is missing|E340\d: |(?:\d\d: )?HCPGIR450W CP entered|L(?: [0-9A-F]{2}){3,}|LI\??$|### ERROR ### Please RESET|Entering rescue mode|Minimal BASH-like line editing)`), nil},
	// A loader that crashes.
	{StageLoader, refusedWait, regexp.MustCompile(`^(?:Resetting CPU|"Synchronous Abort" handler|(?:data|prefetch) abort$|PANIC at PC|\*\*\*\* Exception \d+|\$?\*+ ?CFE exception|ERROR:   BL\d+: Failed)`), nil},
}

// loaderPrompt is a prompt that only a boot loader has.
var loaderPrompt = regexp.MustCompile(`^(?:(?:=> ?|(?:U-Boot|uboot|CFE|RedBoot|DD-WRT|grub|grub rescue|PMON|YAMON|iPXE|Shell|FS\d:\\?|ar\d+\w*|ath|hornet|Marvell|Adam2\w*|db12x|barebox(?:[@:]\S*)?)> {0,2}|barebox(?:@[^:]*)?:/\S* ?|(?:MT|RTL|IPQ|RT)\w+ ?# ?|\(IPQ\) ?# ?|\(psbl\) ?|0 > ?|\{[0-9a-f]{1,3}\} ok ?|>>> ?|\*\*\* Invalid CFE command \*\*\*) ?)+$`)

// anyPrompt is one where a boot loader is known to be at work; a progress bar is none.
var (
	anyPrompt  = regexp.MustCompile(`^[A-Za-z][\w().@/-]{1,31} ?[#>]{1,2} ?$`)
	shellNames = regexp.MustCompile(`^(?:ba|da|a)?sh\b`)
)

// loaderMenu is what a loader prints again each time it shows its menu or counts down.
var loaderMenu = regexp.MustCompile(`^GNU GRUB |^iPXE \(|^Hit any key to stop autoboot|^BdsDxe: loading `)

// earlyWords follow a kernel's banner, where a program that prints /proc/version
// says something else.
var earlyWords = regexp.MustCompile(`^(?:Command line|Kernel command line|CPU|BIOS-provided|x86/|KERNEL supported cpus|Machine|Memory|Zone|On node|bootconsole|printk: bootconsole|Booting Linux|Built 1 zonelists|ACPI|DMI|MIPS|prom|PROM|SoC|Board|Determined physical RAM|Detected|Linux version |Kernel is|OF: |efi: |Using .* machine description|random: get_random)`)

// loaderComplaint reads one message of a boot loader.
func loaderComplaint(msg string) finding {
	for _, s := range loaderSigns {
		if s.re.MatchString(msg) && (s.not == nil || !s.not.MatchString(msg)) {
			return finding{stage: s.stage, wait: s.wait, rank: ranks(s.stage)}
		}
	}
	return finding{}
}
