package targets

import (
	"strings"
	"testing"
)

// What each kind of complaint looks like in the kernels that are measured, and
// what merely looks like one.
func TestLogSigns(t *testing.T) {
	for kind, lines := range map[string]string{
		LogFlash: `jffs2: error: (512) jffs2_get_inode_nodes: wrong node header CRC 0x1 != 0x2
JFFS2 notice: (512) check_node_data: wrong data CRC in data node at 0x00112c50: read 0x1, calculated 0x2.
JFFS2 error: (1) jffs2_link_node_ref: Adding new ref failed
jffs2_scan_eraseblock(): Magic bitmask 0x1985 not found at 0x00020000: 0xe41e instead
Node CRC 29a74be6 != calculated CRC 0ce8d3c1 for node at 00000040
Write of 68 bytes at 0x00310044 failed. returned -5, retlen 0
Erase at 0x00310000 failed immediately: errno -5
mtd->read(0x44 bytes from 0x310044) returned ECC error
MTD do_write_buffer(): software timeout
ubi0 error: ubi_io_read: error -74 (ECC error) while reading 126976 bytes from PEB 12:4096
UBI error: ubi_io_write: error -5 while writing 2048 bytes to PEB 3:0, written 0 bytes
ubi0 warning: ubi_io_read: error -74 (ECC error) while reading 64 bytes from PEB 9:0, read only 64 bytes, retry
UBIFS error (ubi0:1 pid 411): ubifs_check_node: bad CRC: calculated 0x1, read 0x2
UBIFS error (pid 1): ubifs_read_node: bad node type
SQUASHFS error: xz decompression failed, data probably corrupt
spi-nor spi0.0: Erase operation failed.
m25p80 spi0.0: flash operation timed out`,
		LogIO: `blk_update_request: I/O error, dev sda, sector 12345 op 0x0:(READ) flags 0x0
end_request: I/O error, dev mtdblock3, sector 48
I/O error, dev nvme0n1, sector 12 op 0x1:(WRITE)
critical medium error, dev sdb, sector 77 op 0x0:(READ)
Buffer I/O error on device sda1, logical block 0
Buffer I/O error on dev dm-0, logical block 3, lost async page write
EXT4-fs error (device sda1): ext4_lookup:1601: inode #2: comm ls: deleted inode
XFS (sda1): metadata I/O error in "xfs_trans_read_buf_map" at daddr 0x1 len 1 error 5
ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen
sd 0:0:0:0: [sda] tag#3 Sense Key : Medium Error [current]
hda: dma_intr: error=0x40 { UncorrectableError }, LBAsect=1234
mmcblk0: error -110 transferring data, sector 100, nr 8
mmc0: error -110 whilst initialising SD card
nvme nvme0: I/O 12 QID 3 timeout, aborting`,
		LogHung:   "INFO: task kworker/0:1:23 blocked for more than 120 seconds.",
		LogRCU:    "rcu: INFO: rcu_sched self-detected stall on CPU\nINFO: rcu_preempt detected stalls on CPUs/tasks: { 1}",
		LogLockup: "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [iperf:91]",
		LogOops: `BUG: scheduling while atomic: iperf3/912/0x00000002
BUG: unable to handle page fault for address: ffff88
Oops: 0002 [#1] SMP
Unable to handle kernel paging request at virtual address 00000004
Unhandled kernel unaligned access[#1]:`,
		LogOOM: `Out of memory: Killed process 312 (cc1) total-vm:1kB
Out of Memory: Killed process 55 (iperf).
Out of memory: Kill process 3 (x) score 1 or sacrifice child
Memory cgroup out of memory: Killed process 9 (x)
cc1 invoked oom-killer: gfp_mask=0x201da, order=0
oom_reaper: reaped process 312 (cc1)`,
		LogHardware: `mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: be00
{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1
mce: [Hardware Error]: Machine check events logged
EDAC MC0: 1 UE memory read error on CPU_SrcID#0`,
		LogClock: `clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is too large:
Clocksource tsc unstable (delta = 4398029 ns)
tsc: Marking TSC unstable due to clocksource watchdog`,
		LogThrottled: `CPU2: Core temperature above threshold, cpu clock throttled (total events = 1)
mce: CPU0: Package temperature above threshold, cpu clock throttled (total events = 7)
hwmon hwmon1: Undervoltage detected!
CPU0: Temperature/speed above threshold, cpu clock throttled`,
		LogOther: `WARNING: CPU: 0 PID: 88 at drivers/net/foo.c:120 foo_init+0x40/0x90
BUG: KCSAN: data-race in a / b
BUG: using smp_processor_id() in preemptible [00000000] code: x/1
BUG: MAX_LOCKDEP_CHAINS too low!
swapper/0: page allocation failure: order:2, mode:0x20
EDAC MC0: 1 CE memory read error`,
		"": `random: WARNING is only a word here, as is BUG in this sentence
systemd[1]: backup.service: read error, I/O error, dev was not there
JFFS2 version 2.2 (NAND) (c) 2001-2006 Red Hat, Inc.
jffs2: version 2.2. (NAND) (SUMMARY)
ubi0: attached mtd5 (name "ubi", size 126 MiB)
UBIFS (ubi0:1): recovery needed
my-app: an error of out of memory: Killed was said
clocksource: Switched to clocksource tsc
tsc: Refined TSC clocksource calibration: 2999.9 MHz
thermal thermal_zone0: failed to read out thermal zone (-61)
CPU0: Core temperature/speed normal
CPU0: Thermal monitoring enabled (TM1)
EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro
EDAC MC: Ver: 3.0.0
mmc0: new high speed SDHC card at address 0001
no I/O errors, no flash errors
watchdog: kernel said: "BUG: soft lockup"
rcu: Hierarchical RCU implementation.
nand: device found, Manufacturer ID: 0xec
spi-nor spi0.0: w25q128 (16384 Kbytes)
MTD: 4 partitions`,
	} {
		for i, line := range strings.Split(lines, "\n") {
			for _, prefix := range []string{"[  141.700312] ", "<3>[  141.700312] ", "", "Jan  2 03:04:05 ap kernel: [  141.700312] "} {
				signs := LogSigns([]string{prefix + line})
				got := ""
				if len(signs) > 0 {
					got = signs[0].Kind
				}
				if got != kind {
					t.Errorf("%s %d: %q is %q, want %q", kind, i, prefix+line, got, kind)
					break
				}
			}
		}
	}
}

func FuzzLogSigns(f *testing.F) {
	f.Add("[    1.000000] jffs2: error: x\nBUG: x\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		if n := len(LogSigns(lines)); n > len(lines) {
			t.Errorf("%d signs in %d lines", n, len(lines))
		}
		KernelLog{Text: []byte(text)}.Since(ParseMark([]byte(text)))
	})
}
