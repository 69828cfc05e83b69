# shellcheck shell=bash
# Small things that every part of scripts/lab uses.

say() { echo "lab: $*" >&2; }

die() {
	say "$@"
	exit 1
}

# need COMMAND:PACKAGE... stops with the one line that installs what is missing.
need() {
	local missing=() pair
	for pair; do
		command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
	done
	[ ${#missing[@]} -eq 0 ] || die "missing tools; install them with: apt-get install ${missing[*]}"
}

# have_all DIR FILE... tells whether every file is there and not empty.
have_all() {
	local dir=$1 f
	shift
	for f; do
		[ -s "$dir/$f" ] || return 1
	done
}

# parallel FUNCTION... runs functions at once and fails when one of them fails.
parallel() {
	local f pids=() failed=
	for f; do
		(set -e; "$f") &
		pids+=($!)
	done
	for f in "${pids[@]}"; do
		wait "$f" || failed=1
	done
	[ -z "$failed" ] || die "a step failed (see above); run scripts/lab again to go on from there"
}
