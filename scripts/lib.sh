# shellcheck shell=bash disable=SC2034
# Shared by the scripts: what they need of a Debian machine, and how to get it.
# Sourced, from the project's root.

# What the virtual lab and a quick sweep need.
LAB_PACKAGES=(qemu-system-x86 qemu-system-mips cpio xz-utils iperf iperf3 openssh-client ca-certificates)
# What the tests need on top: real servers and shells to test against.
TEST_PACKAGES=(openssh-server openssh-sftp-server dropbear-bin busybox-static dash tcsh fish qemu-user make gcc libc6-dev shellcheck git)

# need_packages PKG…: installs those that are missing.
need_packages() {
	local missing=() p
	for p; do
		dpkg-query -W -f='${Status}\n' "$p" 2>/dev/null | grep -q '^install ok installed' || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	local sudo=()
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || { echo "missing packages, and neither root nor sudo: ${missing[*]}" >&2; exit 1; }
		sudo=(sudo)
	fi
	echo "installing ${missing[*]}" >&2
	"${sudo[@]}" apt-get update -qq
	# Test servers are started by the tests, on ports of their own; a system
	# daemon is not wanted, so policy-rc.d forbids it for this one call.
	local policy=/usr/sbin/policy-rc.d made=0
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee $policy >/dev/null
		"${sudo[@]}" chmod 755 $policy
		made=1
	fi
	local status=0
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || status=$?
	[ $made = 0 ] || "${sudo[@]}" rm -f $policy
	return $status
}

# need_go: a Go of at least 1.21, which fetches the toolchain go.mod names
# through the module proxy. Debian 12's own 1.19 is too old: backports have 1.23.
need_go() {
	local d
	for d in "$(command -v go 2>/dev/null || true)" /usr/local/go/bin/go /usr/lib/go-1.2[1-9]/bin/go /usr/lib/go/bin/go; do
		[ -x "$d" ] || continue
		if go_is_new "$d"; then
			PATH=$(dirname "$d"):$PATH
			export PATH
			fetch_toolchain
			return 0
		fi
	done
	local sudo=()
	[ "$(id -u)" = 0 ] || sudo=(sudo)
	if ! apt-cache policy golang-1.23-go 2>/dev/null | grep -q bookworm-backports; then
		add_backports "${sudo[@]}"
	fi
	echo "installing golang-1.23-go from bookworm-backports" >&2
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -t bookworm-backports golang-1.23-go >/dev/null
	PATH=/usr/lib/go-1.23/bin:$PATH
	export PATH
	fetch_toolchain
}

# fetch_toolchain: an older Go may fetch the newer one that go.mod names, also
# where the environment forbids it.
fetch_toolchain() {
	GOTOOLCHAIN=local go list -m >/dev/null 2>&1 || export GOTOOLCHAIN=auto
}

# go_is_new GO: is it 1.21 or newer? GOTOOLCHAIN=local asks for its own version.
go_is_new() {
	local v
	v=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	v=${v#go1.}
	v=${v%%[!0-9]*}
	[ -n "$v" ] && [ "$v" -ge 21 ]
}

# add_backports: the suite on the mirror that the machine already uses.
add_backports() {
	local mirror
	# shellcheck disable=SC2016 # the format is apt's
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
	[ -n "$mirror" ] || { echo "no Debian mirror in this machine's apt sources; install Go 1.21 or newer by hand" >&2; exit 1; }
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main" |
		"$@" tee /etc/apt/sources.list.d/kernsweep-backports.list >/dev/null
	"$@" apt-get update -qq
}
