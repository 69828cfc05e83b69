#!/bin/sh
# The agent for machines that cannot run the Go agent: the same spool from a
# POSIX shell, for the task "exec". Figures that a shell cannot have (context
# switches, memory) are left out, and so missing. Times have the resolution of
# /proc/uptime; intervals and deadlines are whole seconds.
LC_ALL=C
export LC_ALL
umask 077
trap '' HUP
nl='
'

die() {
	echo "kernsweep-agent: $*" >&2
	exit 2
}

# clock sets now (nanoseconds, as text) and sec (whole seconds) since boot.
clock() {
	read -r up _ </proc/uptime
	sec=${up%.*}
	now=$sec${up#*.}0000000
}

# secs turns 1h2m3.5s into whole seconds, rounded up, in $n.
secs() {
	v=$1 n=0
	case $v in
	0 | 0s) return ;;
	*ms | *us | *µs | *ns) n=1; return ;;
	esac
	case $v in *h*) n=$((n + ${v%%h*} * 3600)) v=${v#*h} ;; esac
	case $v in *m*) n=$((n + ${v%%m*} * 60)) v=${v#*m} ;; esac
	v=${v%s}
	case $v in
	*.*) n=$((n + ${v%.*} + 1)) ;;
	?*) n=$((n + v)) ;;
	esac
}

# rec TYPE NAME BODY appends a record with the time in $now; a spool that was
# removed meanwhile is not made anew: nobody would come for it.
rec() {
	[ -f "$spool" ] || return 0
	body=$3$nl
	printf '%s %s %s%s\n%s\n' "$1" "$now" "${#body}" "${2:+ $2}" "$body" >>"$spool"
}

# outrec TYPE FILE NAME appends a record with the first bytes of a file.
outrec() {
	[ -s "$2" ] && [ -f "$spool" ] || return 0
	len=$(wc -c <"$2")
	pass='cat'
	if [ -n "$k1" ] && [ "$len" -gt "$cap" ]; then
		len=$cap pass="head -c $cap"
		notes="${notes}$3 truncated at $cap bytes$nl"
	fi
	{
		printf '%s %s %s\n' "$1" "$now" "$((len))"
		[ "$len" = 0 ] || $pass <"$2"
		echo
	} >>"$spool"
}

# startof PID sets start to field 22 of its stat, "" when it is gone.
startof() {
	start='' line=''
	[ -r "/proc/$1/stat" ] && read -r line <"/proc/$1/stat" 2>/dev/null
	[ -n "$line" ] || return 0
	# shellcheck disable=SC2086 # the fields are wanted one by one
	set -- ${line##*) }
	[ "$1" = Z ] || start=${20}
}

sample() {
	[ "$used" -lt "$limit" ] || { full=1; return 0; }
	clock
	stat=$(sed -e 's/^\(intr [0-9]*\) .*/\1/' /proc/stat 2>/dev/null)
	vm=$(sed -n -e '/^pgpg\(in\|out\) /p' -e '/^pswp\(in\|out\) /p' /proc/vmstat 2>/dev/null)
	mem=$(sed -n -e '/^Mem\(Total\|Free\|Available\):/p' -e '/^Buffers:/p' -e '/^Cached:/p' \
		-e '/^SReclaimable:/p' -e '/^Swap/p' /proc/meminfo 2>/dev/null)
	load=
	read -r load </proc/loadavg
	[ -n "$stat" ] && rec stat '' "$stat"
	[ -n "$vm" ] && rec vmstat '' "$vm"
	[ -n "$mem" ] && rec mem '' "$mem"
	[ -n "$load" ] && rec load '' "$load"
	used=$((used + ${#stat} + ${#vm} + ${#mem} + ${#load} + 150))
}

# state keeps what two looks tell, one before the task and one after it.
state() {
	[ "$used" -lt "$limit" ] || return 0
	text="" f=/proc/schedstat
	[ ! -r $f ] || text="$f=$(sed -e '/^domain/d' $f | tr '\n' ';')$nl"
	for f in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor \
		/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_*_freq \
		/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count; do
		v=
		[ ! -r "$f" ] || read -r v <"$f"
		[ -z "$v" ] || text="$text$f=$v$nl"
	done
	for f in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/stats/time_in_state; do
		[ ! -r "$f" ] || text="$text$f=$(tr '\n' ';' <"$f")$nl"
	done
	[ -z "$text" ] || rec state '' "${text%"$nl"}"
	used=$((used + ${#text}))
}

# mark sets the words by which the task's processes are known wherever they went.
mark() {
	mark=${spool%.spool}
	mark=KERNSWEEP_TASK=${mark##*-}
}

# marked sends a signal to what carries the mark, if it can be told from others.
marked() {
	[ ${#mark} -ge 27 ] || return 0
	grep -l "$mark" /proc/[0-9]*/environ 2>/dev/null | while read -r p; do
		p=${p#/proc/}
		kill "$1" "${p%/environ}" 2>/dev/null
	done
}

# endtask ends the task's process group in good order.
endtask() {
	kill -TERM "$group" 2>/dev/null
	( exec </dev/null >/dev/null; sleep 2; kill -KILL "$group"; marked -KILL ) &
}

# ticker samples and keeps the deadlines until it gets TERM.
ticker() {
	over=0 s=
	# KILL, since a child that has not become sleep yet would catch TERM.
	trap 'over=1; [ -n "$s" ] && kill -KILL "$s" 2>/dev/null' TERM
	clock
	begun=$sec next=$((sec + interval))
	while [ $over = 0 ]; do
		step=3600
		[ "$interval" -gt 0 ] && [ $((next - sec)) -lt $step ] && step=$((next - sec))
		for due in "$deadline" "$stopafter"; do
			[ "$due" -gt 0 ] && [ $((begun + due - sec)) -lt $step ] && step=$((begun + due - sec))
		done
		[ $step -gt 0 ] || step=1
		sleep $step &
		s=$!
		[ $over = 0 ] || kill -KILL $s # TERM came before its pid was known
		wait $s
		s=
		[ $over = 0 ] || break
		startof $$
		if [ -z "$start" ]; then # the agent was killed: its task must not go on for ever
			endtask
			break
		fi
		clock
		if [ "$interval" -gt 0 ] && [ "$sec" -ge "$next" ]; then
			sample
			while [ "$next" -le "$sec" ]; do next=$((next + interval)); done
		fi
		if [ "$deadline" -gt 0 ] && [ "$sec" -ge $((begun + deadline)) ]; then
			: >"$d/timeout"
			deadline=0
			endtask
		fi
		if [ "$stopafter" -gt 0 ] && [ "$sec" -ge $((begun + stopafter)) ]; then
			: >"$d/stopped"
			stopafter=0
			endtask
		fi
	done
	[ -z "$full" ] || : >"$d/full"
}

# keeper FILE BYTES keeps the first bytes of its input and drains the rest. It
# gets one more than the cap, which tells a cut stream from a full one.
# shellcheck disable=SC2016
keeper='head -c "$2" >"$1"; cat >/dev/null'

# inodes PORT sets inodes to the sockets that hold it.
inodes() {
	inodes='' hex=$(printf '%04X' "$1")
	files='/proc/net/tcp /proc/net/tcp6'
	[ -z "$udp" ] || files='/proc/net/udp /proc/net/udp6'
	for f in $files; do
		[ -r "$f" ] || continue
		while read -r _ loc _ st _ _ _ _ _ ino _; do
			case $loc in *:"$hex") ;; *) continue ;; esac
			if [ -n "$udp" ] || [ "$st" = 0A ]; then inodes="$inodes $ino"; fi
		done <"$f"
	done
}

# holder sets who to "PID GROUP NAME" of the process that holds an inode.
holder() {
	who=
	for p in /proc/[0-9]*; do
		list=$(ls -l "$p/fd" 2>/dev/null) # it fails for one descriptor that was closed meanwhile
		for ino in $inodes; do
			case $list in *"socket:[$ino]"*) ;; *) continue ;; esac
			line=
			read -r line <"$p/stat" 2>/dev/null
			name=${line#*\(}
			name=${name%)*}
			# shellcheck disable=SC2086
			set -- ${line##*) }
			who="${p#/proc/} $3 $name"
			return
		done
	done
}

# taken sets reason when somebody outside the task holds the port.
taken() {
	inodes "$listen"
	[ -n "$inodes" ] || return 0
	holder
	# shellcheck disable=SC2086
	set -- $who
	if [ -z "$who" ]; then
		reason="port $listen is already taken by a process that cannot be seen (another user's, or the kernel's)"
	elif [ "$2" != "${1:+$pid}" ]; then
		owner=$1
		shift 2
		reason="port $listen is already taken by pid $owner ($*): end it, or choose another port"
	else
		owned=1
	fi
}

# await waits until the task owns its port and says so on stdout.
await() {
	owned='' tries=0
	while [ -z "$owned$reason" ]; do
		taken
		[ -z "$owned$reason" ] || break
		startof "$pid"
		[ -n "$start" ] || { reason="the task ended before port $listen was open"; break; }
		tries=$((tries + 1))
		[ $tries -le 20 ] || { reason="port $listen was not opened within 20s"; break; }
		sleep 1
	done
	if [ -n "$owned" ]; then ( echo ready ); else endtask; fi
}

# centis FILE sets cu and cs: the children's user and system time of `times`.
centis() {
	{ read -r _; read -r a b; } <"$1"
	for x in "$a" "$b"; do
		m=${x%%m*} x=${x#*m}
		x=${x%s}
		f=${x#*.}00
		f=${f%"${f#??}"}
		cu=$cs cs=$(((m * 60 + ${x%%.*}) * 100 + 1$f - 100))
	done
}

perform() {
	[ "$1" = exec ] || { reason="the shell agent has no task $1"; return; }
	shift
	[ "${1-}" != -- ] || shift
	[ $# -gt 0 ] || { reason='exec: no command given'; return; }
	pid=
	if [ "$listen" != 0 ]; then
		taken
		[ -z "$reason" ] || return
	fi
	so=$d/out se=$d/err k1='' k2=''
	if [ "$(echo xyz | head -c 1 2>/dev/null)" = x ] && mkfifo "$d/o" "$d/e" 2>/dev/null; then
		$setsid sh -c "$keeper" sh "$d/out" $((cap + 1)) <"$d/o" &
		k1=$!
		$setsid sh -c "$keeper" sh "$d/err" $((cap + 1)) <"$d/e" &
		k2=$!
		so=$d/o se=$d/e
	else
		notes="${notes}output is kept whole: this machine has no mkfifo, or no head -c$nl"
	fi
	times >"$d/t0"
	clock
	begun=$now
	KERNSWEEP_TASK=${mark#*=} $setsid "$@" </dev/null >"$so" 2>"$se" &
	pid=$!
	group=$pid
	[ -z "$setsid" ] || group=-$pid
	echo "$group" >"$d/group"
	[ "$listen" = 0 ] || await
	# A redirected function would keep a copy of stdout open, and so the link.
	( exec </dev/null >/dev/null; ticker ) &
	tick=$!
	wait "$pid"
	code=$?
	clock
	ended=$now
	times >"$d/t1"
	kill -TERM "$tick" 2>/dev/null
	wait "$tick"
	[ ! -f "$d/full" ] || notes="${notes}the spool is full: later samples were dropped$nl"
	finish
}

# finish writes what the task left.
finish() {
	if kill -0 "-$pid" 2>/dev/null; then
		notes="${notes}ended what the task left running$nl"
		kill -TERM "-$pid"
		sleep 1
		kill -KILL "-$pid" 2>/dev/null
	fi
	marked -KILL # what has left the group
	if [ -n "$k1" ]; then
		(
			exec </dev/null >/dev/null
			trap 'kill -KILL $!' TERM
			sleep 2 &
			wait $!
			kill -KILL "${setsid:+-}$k1" "${setsid:+-}$k2"
		) &
		late=$!
		wait "$k1"
		wait "$k2"
		kill "$late" 2>/dev/null
	fi
	centis "$d/t0"
	u0=$cu s0=$cs
	centis "$d/t1"
	how="exit=$code"
	[ "$code" -le 128 ] || [ "$code" -gt 192 ] || how="signal=$((code - 128))"
	[ ! -f "$d/timeout" ] || how="$how${nl}timeout=1"
	[ ! -f "$d/stopped" ] || how="$how${nl}stopped=1"
	used=0
	sample
	state
	now=$ended
	outrec out "$d/out" stdout
	outrec err "$d/err" stderr
	rec task exec "pid=$pid$nl$how${nl}start_ns=$begun${nl}end_ns=$ended${nl}utime_us=$((cu - u0))0000${nl}stime_us=$((cs - s0))0000"
	if [ -n "$reason" ]; then :; elif [ -f "$d/timeout" ]; then
		status=timeout reason="still running after $limitwords"
	elif [ -f "$d/stopped" ]; then
		status=stopped
	elif [ "$code" = 0 ]; then
		status=ok
	elif [ "$code" = 127 ]; then
		reason="exec: not found in PATH, or not runnable (status 127)"
	else
		reason="exec: ${how%%"$nl"*}"
	fi
}

run() {
	spool='' interval=0 deadline=0 stopafter=0 cap=1048576 limit=16777216 listen=0 udp='' keep=''
	limitwords='' used=0 full='' reason='' status=failed notes=''
	while [ $# -gt 0 ]; do
		case $1 in
		-keep) keep=1; shift; continue ;;
		-udp) udp=1; shift; continue ;;
		-*) [ $# -gt 1 ] || die "$1 needs a value" ;;
		*) break ;;
		esac
		case $1 in
		-spool) spool=$2 ;;
		-sample) secs "$2"; interval=$n ;;
		-deadline) secs "$2"; deadline=$n limitwords=$2 ;;
		-stop-after) secs "$2"; stopafter=$n ;;
		-cap) cap=$2 ;;
		-limit) limit=$2 ;;
		-listen) listen=$2 ;;
		-env) export "${2?}" ;;
		*) die "unknown flag $1" ;;
		esac
		shift 2
	done
	[ -n "$spool" ] || die '-spool is needed'
	[ $# -gt 0 ] || die 'no task given'
	d=$spool.d
	mark
	mkdir "$d" || die "$d: cannot be created"
	# A shell reports killed jobs on stderr; with the link gone that, and any
	# builtin's output, would end it by SIGPIPE.
	exec 2>/dev/null
	setsid=
	if command -v setsid >/dev/null 2>&1; then setsid=setsid; fi
	startof $$
	echo "$$ $start" >"$d/self"
	printf 'kernsweep-spool 1\n' >"$spool" || die "$spool: cannot be written"
	clock
	boot='' auto='' words=$(printf '%s ' "$@" | tr '\n' ' ')
	read -r boot </proc/sys/kernel/random/boot_id
	[ ! -r /proc/sys/kernel/sched_autogroup_enabled ] || read -r auto </proc/sys/kernel/sched_autogroup_enabled
	rec begin '' "pid=$$${nl}start=$start${nl}boot_id=$boot${nl}wall=$(date +%s)000000000${nl}argv=${words% }${nl}agent=shell${auto:+${nl}autogroup=$auto}"
	sleep 0.3 || sleep 1 # the log-in that started this is over then
	clock
	state
	sample
	perform "$@"
	clock
	while [ -n "$notes" ]; do
		rec note '' "${notes%%"$nl"*}"
		notes=${notes#*"$nl"}
	done
	rec end '' "status=$status${reason:+${nl}reason=$reason}${nl}wall=$(date +%s)000000000"
	echo "ended $status${reason:+: $(printf '%s' "$reason" | tr '\n' ' ')}" >"$d/end.new"
	mv "$d/end.new" "$d/end"
	( cat "$d/end" )
	cat "$spool" || exit 2
	[ -n "$keep" ] || rm -rf "$spool" "$d"
}

# detached reads the flags of collect and stop, and who wrote the spool.
detached() {
	spool='' limit=0 within=0
	while [ $# -gt 0 ]; do
		case $1 in
		-spool) spool=$2; shift ;;
		-wait) secs "$2"; limit=$n; shift ;;
		-within) secs "$2"; within=$n; shift ;;
		-keep) ;;
		*) die "unknown flag $1" ;;
		esac
		shift
	done
	d=$spool.d
	mark
	self='' born='' boot='' at=''
	if [ -r "$spool" ]; then
		{
			read -r _
			read -r _ at _
			while read -r line; do
				case $line in
				pid=*) self=${line#*=} ;;
				start=*) born=${line#*=} ;;
				boot_id=*) boot=${line#*=} ;;
				'') break ;;
				esac
			done
		} <"$spool"
	fi
	case $self$born in
	'' | *[!0-9]*) die "$spool: no spool of a run (it never began, or was collected already)" ;;
	esac
	now=
	read -r now </proc/sys/kernel/random/boot_id
	[ "$now" = "$boot" ] || born=other # no process of this boot wrote it
}

running() {
	startof "$self"
	[ -n "$start" ] && [ "$start" = "$born" ]
}

# whole says whether the run has written its end. One of the Go agent has no
# folder: an end record is the last thing in its spool.
whole() {
	if [ -d "$d" ]; then [ -f "$d/end" ]; else tail -n 12 "$spool" | grep -q '^end [0-9]* [0-9]*$'; fi
}

collect() {
	detached "$@"
	clock
	until=$((sec + limit)) at=${at%?????????}
	while ! whole && running; do
		clock
		[ "$limit" = 0 ] || [ "$sec" -lt $until ] || break
		[ "$within" = 0 ] || [ "$sec" -lt $((${at:-0} + within)) ] || break
		sleep 1
	done
	if whole; then
		lives=
		! running || lives=1
		[ ! -s "$d/end" ] || cat "$d/end"
		cat "$spool" || exit 2
		[ -z "$lives" ] || kill -KILL "$self"
		return 0
	fi
	cat "$spool" || exit 2
	if running; then echo "kernsweep-agent: the run goes on: pid $self" >&2; fi
}

stop() {
	detached "$@"
	if running; then kill -CONT "$self"; fi # a stopped agent would never write its end
	if [ -r "$d/group" ] && read -r group <"$d/group" && running; then
		kill -TERM "$group" 2>/dev/null
		for _ in 1 2; do
			[ ! -f "$d/end" ] || break
			sleep 1
		done
		[ -f "$d/end" ] || kill -KILL "$group" 2>/dev/null
	elif ! running; then
		marked -TERM
		sleep 1
	fi
	marked -KILL
	return 0
}

selftest() {
	for t in sed cat wc sleep mkdir rm tr date; do
		command -v $t >/dev/null 2>&1 || die "self-test: this machine has no $t"
	done
	clock
	startof $$
	[ -n "$start" ] || die 'self-test: /proc cannot be read'
	[ -n "$(sed -n -e '/^cpu /p' /proc/stat)" ] || die 'self-test: /proc/stat cannot be read'
	echo 'ok kernsweep-agent shell resumable'
}

cmd=${1-}
[ $# = 0 ] || shift
case $cmd in
run) run "$@" ;;
collect) collect "$@" ;;
stop) stop "$@" ;;
--self-test) selftest ;;
*) die "unknown command $cmd" ;;
esac
