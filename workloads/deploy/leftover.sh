# Ends tasks that an earlier run left behind and removes their spools. Arguments:
# pairs of a word and the path of a spool; "end" ends the task, "idle" does
# nothing while its agent lives. Prints a line for each pair, beginning with its
# number, for the controller to read.
LC_ALL=C
export LC_ALL
trap '' HUP
read -r up _ </proc/uptime
boot='' here=''
read -r here </proc/sys/kernel/random/boot_id

# field PID sets state, ppid, group and start; it fails when there is no such
# process, or a dead one.
field() {
	line=''
	{ read -r line <"/proc/$1/stat"; } 2>/dev/null
	# shellcheck disable=SC2086 # the fields are wanted one by one
	set -- ${line##*) }
	[ $# -ge 20 ] || return 1
	state=$1 ppid=$2 group=$3 start=${20}
	[ "$state" != Z ] && [ "$state" != X ]
}

# begin FILE reads who wrote a spool; it fails when the file is no spool.
begin() {
	magic='' type='' at='' agent='' born='' boot='' argv='' words=''
	{
		read -r magic
		read -r type at _
		while IFS= read -r line; do
			case $line in
			pid=*) agent=${line#*=} ;;
			start=*) born=${line#*=} ;;
			boot_id=*) boot=${line#*=} ;;
			argv=*) argv=${line#*=} ;;
			'') break ;;
			esac
		done
	} <"$1"
	[ "$magic:$type" = 'kernsweep-spool 1:begin' ] || return 1
	case $agent in '' | *[!0-9]*) return 1 ;; esac
	case $born in '' | *[!0-9]*) return 1 ;; esac
	[ "$agent" -gt 1 ]
}

# lives says whether the agent still runs: not another process with its number.
lives() { field "$agent" && [ "$start" = "$born" ]; }

# members sets pids to the processes of the task: the agent's children, all of
# their groups, and what carries the task's mark wherever it went.
members() {
	pids=' ' groups=' ' own=''
	if lives; then
		own=$group
		for p in /proc/[0-9]*; do
			p=${p#/proc/}
			if field "$p" && [ "$ppid" = "$agent" ]; then
				pids="$pids$p "
				[ "$group" = "$own" ] || groups="$groups$group "
			fi
		done
		for p in /proc/[0-9]*; do
			p=${p#/proc/}
			field "$p" || continue
			case $groups in *" $group "*) ;; *) continue ;; esac
			case $pids in *" $p "*) ;; *) pids="$pids$p " ;; esac
		done
	fi
	for p in $(marked); do
		case $pids in *" $p "*) continue ;; esac
		if [ "$p" != "$agent" ] && field "$p"; then pids="$pids$p "; fi
	done
}

# marked lists what was started with the task's mark in its environment.
marked() {
	[ ${#mark} -ge 27 ] || return 0
	# shellcheck disable=SC2013 # paths without blanks
	for f in $(grep -l "$mark" /proc/[0-9]*/environ 2>/dev/null); do
		f=${f#/proc/}
		echo "${f%/environ}"
	done
}

# stop ends the task, in good order at first, and then its agent.
stop() {
	for s in TERM TERM KILL KILL KILL KILL; do
		members
		[ "$pids" != ' ' ] || break
		found=1
		# shellcheck disable=SC2086 # numbers
		kill -$s $pids 2>/dev/null
		sleep 1
	done
	for _ in 1 2 3; do
		lives || break
		found=1
		kill -KILL "$agent" 2>/dev/null
		sleep 1
	done
	members
}

n=0
while [ $# -gt 1 ]; do
	n=$((n + 1)) how=$1 spool=$2
	shift 2
	mark=${spool%.spool}
	mark=KERNSWEEP_TASK=${mark##*-}
	found='' pids=' ' what=none
	for f in "$spool" "$spool.reserve" "$spool.d"; do
		[ ! -e "$f" ] || what=removed
	done
	for _ in 1 2; do # an agent may just be writing its first words
		if [ ! -f "$spool" ] || [ -s "$spool" ]; then break; fi
		sleep 1
	done
	agent=0 born=none words=''
	if [ -s "$spool" ]; then
		if ! begin "$spool"; then
			echo "$n alien"
			continue
		fi
		# No process of another boot is left.
		[ "$boot" = "$here" ] || agent=0
		if [ "$how" = idle ] && lives; then
			echo "$n busy"
			continue
		fi
		at=${at%?????????}
		words="$agent $((${up%.*} - ${at:-0})) $argv"
	fi
	stop
	if [ "$pids" != ' ' ] || lives; then
		echo "$n stuck $words"
		continue
	fi
	rm -rf "$spool" "$spool.reserve" "$spool.d" || continue
	[ -z "$found" ] || what=ended
	echo "$n $what $words"
done
echo "done"
