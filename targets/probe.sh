# Prints what a boot is judged by. POSIX sh only: it runs on BusyBox ash, on
# dash, on kernels of 2.6; whatever is missing leaves its section out. A section
# begins with a line "@@MARK NAME"; MARK is random, so no content can fake one.
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin:/bin
LC_ALL=C
export PATH LC_ALL

section() { echo; echo "@@$M $1"; }
file() { [ -r "$2" ] && section "$1" && cat "$2" 2>/dev/null; }
values() {
	for f; do
		[ -f "$f" ] || continue
		v=
		case $f in
		/proc/sys/*) v=$(cat "$f") ;; # these end after one read, and a shell reads byte by byte
		*) IFS= read -r v <"$f" ;;
		esac
		echo "$f=$v"
	done
}
# interface prints one network interface that is a device: where it is, its MAC
# address, where that comes from, and the bus.
interface() {
	mac=- assigned=- bus=$(cd -P "$1/device/subsystem" 2>/dev/null && pwd -P)
	read -r mac <"$1/address"
	[ -r "$1/addr_assign_type" ] && read -r assigned <"$1/addr_assign_type"
	case $bus in */bus/*) bus=${bus##*/} ;; *) bus=- ;; esac
	if [ -d "$1/bonding_slave" ] || [ -d "$1/master/bonding" ]; then bus=bonded; fi
	[ -d "$1/device/physfn" ] && bus=virtfn
	echo "net $at=$mac $assigned $bus"
}
version() { command -v "$1" >/dev/null 2>&1 && echo "$1=$("$@" 2>&1 | head -n 1)"; }

main() {
	section uname
	uname -s; uname -n; uname -r; uname -v; uname -m
	file boot_id /proc/sys/kernel/random/boot_id
	file uptime /proc/uptime
	file version /proc/version
	file cmdline /proc/cmdline
	file tainted /proc/sys/kernel/tainted
	file cpuinfo /proc/cpuinfo
	file online /sys/devices/system/cpu/online
	file meminfo /proc/meminfo
	file mounts /proc/mounts
	file loadavg /proc/loadavg
	file clocksource /sys/devices/system/clocksource/clocksource0/current_clocksource
	file numa /sys/devices/system/node/online
	section net
	values /sys/class/net/*/speed # in Mbit/s; an interface that is down has none

	section sched
	values /proc/sys/kernel/sched_* /proc/sys/kernel/rr_interval /proc/sys/kernel/iso_cpu \
		/proc/sys/kernel/yield_type /proc/sys/kernel/interactive \
		/sys/kernel/sched_ext/state /sys/kernel/sched_ext/switch_all /sys/kernel/sched_ext/enable_seq \
		/sys/kernel/sched_ext/nr_rejected /sys/kernel/sched_ext/root/ops
	for f in /sys/kernel/debug/sched/*; do
		case $f in */debug) ;; *) values "$f" ;; esac
	done
	values /sys/kernel/debug/sched_features
	file self_sched /proc/self/sched

	section cpufreq
	values /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor \
		/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_driver \
		/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_min_freq \
		/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_max_freq \
		/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq \
		/sys/devices/system/cpu/cpufreq/boost /sys/devices/system/cpu/intel_pstate/no_turbo \
		/sys/devices/system/cpu/smt/active

	section identity
	values /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/product_serial \
		/sys/class/dmi/id/product_uuid /sys/class/dmi/id/board_serial \
		/proc/device-tree/model /proc/device-tree/serial-number /etc/machine-id
	for n in /sys/class/net/*; do
		at=$(cd -P "$n/device" 2>/dev/null && pwd -P) && interface "$n"
	done

	section df
	df -P -k 2>/dev/null || df -k 2>/dev/null
	section client
	echo "$SSH_CONNECTION"
	section tools
	for t in iperf iperf3 make gcc; do
		case $t in iperf | iperf3) version $t -v ;; *) version $t --version ;; esac
	done
	for t in gunzip gzip tar time vmstat setsid taskset chrt cyclictest hackbench; do
		p=$(command -v $t 2>/dev/null) && echo "$t=$p"
	done
	for p in /usr/lib/openssh /usr/libexec/openssh /usr/lib/ssh /usr/libexec /usr/lib; do
		[ -x $p/sftp-server ] && echo "sftp-server=$p/sftp-server" && break
	done

	section elf
	for f in /proc/self/exe /bin/busybox /bin/sh; do
		if dd if=$f bs=64 count=1 2>/dev/null || head -c 64 $f 2>/dev/null; then break; fi
	done
	if ! command -v dd >/dev/null 2>&1; then
		section elf_hex
		od -A n -t x1 -N 64 /proc/self/exe 2>/dev/null ||
			hexdump -v -n 64 -e '1/1 "%02x "' /proc/self/exe 2>/dev/null
	fi

	if [ -r /proc/config.gz ]; then
		file config.gz /proc/config.gz
	else
		for f in "/boot/config-$(uname -r)" "/lib/modules/$(uname -r)/config" "/lib/modules/$(uname -r)/build/.config"; do
			file config "$f" && break
		done
	fi
	section dmesg
	if head -c 1 </dev/null >/dev/null 2>&1; then
		dmesg 2>&1 | head -c 262144
	else
		dmesg 2>&1
	fi
	section end
}
main </dev/null 2>/dev/null
