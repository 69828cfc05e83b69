# Says what a night will need of a machine, and changes nothing there. Arguments:
# tools and paths to look for, then --, then folders whose room counts. POSIX sh.
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin:/bin
LC_ALL=C
export PATH LC_ALL
echo "clock $(date +%s 2>/dev/null)"
while [ $# -gt 0 ]; do
	t=$1
	shift
	case $t in
	--) break ;;
	/*) [ -e "$t" ] && echo "tool $t" ;;
	*) command -v "$t" >/dev/null 2>&1 && echo "tool $t" ;;
	esac
done
room() { df -kP "$1" 2>/dev/null </dev/null | while read -r line; do echo "df $line"; done; }
for d in "$@"; do
	[ -d "$d" ] || continue
	echo "folder $d"
	room "$d"
done
while read -r dev dir type opts rest; do echo "mount $type $dir $opts"; done </proc/mounts
for d in /dev/shm /tmp /var/tmp /run "$HOME" /root /var/run /mnt /opt; do
	if [ -z "$d" ] || [ ! -d "$d" ] || [ ! -w "$d" ]; then continue; fi
	echo "dir $d"
	room "$d"
done
: "$dev" "$rest"
echo "done"
