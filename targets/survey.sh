# Prints what a machine is, for the one who adds it: more than a boot is judged
# by. POSIX sh only, and what is missing leaves its section out; sections as in
# probe.sh. It ends by trying places for a tiny program; a signal, or a link that
# is cut, takes that away again.
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin:/bin
LC_ALL=C
export PATH LC_ALL

try=
clean() { [ -z "$try" ] || rm -f "$try"; }
trap clean 0
# shellcheck disable=SC2172 # old shells know no names of signals
trap 'trap "" 1 2 3 13 15; exit 1' 1 2 3 13 15

section() { echo; echo "@@$M $1"; }
file() { [ -r "$2" ] && section "$1" && cat "$2" 2>/dev/null; }
# value prints NAME=the first line of a file.
value() {
	[ -r "$2" ] || return
	v=
	IFS= read -r v <"$2"
	echo "$1=$v"
}
have() {
	for t; do
		p=$(command -v "$t" 2>/dev/null) && echo "$t=$p"
	done
}

# place tries to write and to run a program in a folder.
place() {
	if [ -z "$1" ] || [ ! -d "$1" ] || [ -L "$1" ]; then return; fi
	w=no x=no
	if [ -w "$1" ]; then
		try=$1/.kernsweep-try-$$
		# Old shells have no printf. With -C nothing that somebody put there is followed.
		if (set -C && umask 077 && { echo '#!/bin/sh' && echo 'exit 42'; } >"$try") && [ -s "$try" ]; then
			w=yes
			chmod 700 "$try"
			"$try" </dev/null >/dev/null
			[ $? = 42 ] && x=yes
			rm -f "$try"
		elif [ -f "$try" ] && [ ! -L "$try" ]; then
			rm -f "$try" # a full disk holds an empty one
		fi
		try=
	fi
	echo "place $w $x $1"
	{ df -P -k "$1" || df -k "$1"; } 2>/dev/null | while IFS= read -r l; do echo "df $l"; done
}

loader() {
	file mtd /proc/mtd
	section boot
	n=0
	for f in /boot/* /boot/grub/* /boot/grub2/* /boot/extlinux/* /boot/syslinux/* /extlinux/* /boot/loader/* \
		/boot/efi/* /boot/efi/EFI/* /efi/* /efi/EFI/* /boot/EFI/* /boot/efi/loader/* /efi/loader/*; do
		[ -e "$f" ] && echo "$f" && n=$((n + 1))
		[ $n -lt 400 ] || break
	done
	section efi
	[ -d /sys/firmware/efi ] && echo "efi=yes"
	for f in /sys/firmware/efi/efivars/LoaderInfo-* /sys/firmware/efi/efivars/LoaderEntrySelected-* \
		/sys/firmware/efi/efivars/SecureBoot-*; do
		[ -e "$f" ] || continue
		b=${f##*/}
		echo "${b%%-*}=$(od -A n -v -t x1 "$f" 2>/dev/null | tr -d ' \n')"
	done
	section uboot
	value version /proc/device-tree/chosen/u-boot,version
	[ -e /etc/fw_env.config ] && echo "fw_env.config=yes"
	have fw_printenv fw_setenv
	section kexec
	value loaded /sys/kernel/kexec_loaded
	value disabled /proc/sys/kernel/kexec_load_disabled
	value lockdown /sys/kernel/security/lockdown
	section tools
	have kexec sysupgrade reboot grub-editenv grub2-editenv extlinux bootctl busybox
}

topology() {
	section topology
	for d in /sys/devices/system/cpu/cpu[0-9]*/topology; do
		[ -r "$d/core_id" ] || continue
		p='' c=''
		read -r p <"$d/physical_package_id"
		read -r c <"$d/core_id"
		echo "$p $c"
	done
	section nodes
	for d in /sys/devices/system/node/node[0-9]*; do
		[ -d "$d" ] && echo "${d##*/}"
	done
}

# daemons names the processes that keep the clock or feed a watchdog.
daemons() {
	section daemons
	n=0
	for d in /proc/[0-9]*; do
		[ -e "$d/exe" ] || continue # a thread of the kernel
		c=
		read -r c <"$d/comm" || read -r _ c _ <"$d/stat"
		case $c in
		*chronyd* | *ntpd* | *systemd-timesyn* | *ptp4l* | *phc2sys* | *sntp*) echo "clock $c" ;;
		*watchdog* | *wd_keepalive* | procd | \(procd\)) echo "watchdog $c" ;;
		esac
		n=$((n + 1))
		[ $n -lt 3000 ] || break
	done
	for d in /proc/1/fd/*; do
		case $(readlink "$d" 2>/dev/null) in /dev/watchdog*) echo "watchdog pid 1" ;; esac
	done
}

main() {
	section pid
	echo $$
	section clock
	date +%s
	[ -e /run/systemd/timesync/synchronized ] && echo "synchronised /run/systemd/timesync/synchronized"
	adjtimex 2>/dev/null | while IFS= read -r l; do
		case $l in *status:*) echo "adjtimex $l" ;; esac
	done
	section who
	echo "uid=$(id -u)"
	echo "home=$HOME"
	echo "hostname=$(uname -n)"
	value init /proc/1/comm
	[ -e /.dockerenv ] && echo "container=/.dockerenv"
	[ -e /run/.containerenv ] && echo "container=/run/.containerenv"
	while read -r k v _; do
		[ "$k" = CapBnd: ] && echo "capbnd=$v"
	done </proc/self/status
	file os-release /etc/os-release || file os-release /usr/lib/os-release
	file openwrt_release /etc/openwrt_release
	section versions
	for f in /etc/debian_version /etc/alpine-release /etc/redhat-release /etc/version /etc/issue; do
		value "$f" "$f"
	done
	section busybox
	busybox 2>&1 | {
		read -r l
		echo "$l"
	}
	topology
	loader
	section watchdog
	for d in /dev/watchdog /dev/watchdog[0-9]*; do
		[ -c "$d" ] && echo "device=$d"
	done
	for f in identity state timeout nowayout; do
		value $f /sys/class/watchdog/watchdog0/$f
	done
	daemons
	section places
	[ "$HOME" = /root ] || place "$HOME"
	for d in /dev/shm /tmp /run /var/run /var/tmp /root /opt /usr/local /overlay /jffs /data /mnt /srv; do
		place "$d"
	done
	section survey_end
}
main </dev/null 2>/dev/null
