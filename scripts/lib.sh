# shellcheck shell=bash disable=SC2034
# Shared by the scripts: what they need of a Debian machine, and how to get it.
# Sourced, from the project's root.

# What the virtual lab and a quick sweep need.
LAB_PACKAGES=(qemu-system-x86 qemu-system-mips cpio xz-utils iperf iperf3 openssh-client ca-certificates)
# What the tests need on top: real servers and shells to test against.
TEST_PACKAGES=(openssh-server openssh-sftp-server dropbear-bin busybox-static dash tcsh fish qemu-user procps make gcc libc6-dev shellcheck git
	ser2net conserver-server conserver-client socat telnet openipmi ipmitool snmpd snmp curl tftp-hpa tftpd-hpa dnsmasq-base
	u-boot-qemu u-boot-tools libubootenv-tool grub-pc-bin grub-common grub2-common grub-efi-amd64-bin e2fsprogs mtools dosfstools ovmf systemd-boot-efi extlinux
	syslinux syslinux-common pxelinux ipxe-qemu kexec-tools binutils-mips-linux-gnu iproute2 python3-aiosmtpd util-linux mount tmux zsh bash-completion mandoc chromium)

step() { printf '\n== %s\n' "$*" >&2; }

stop() {
	echo "$*" >&2
	exit 1
}

# as_root COMMAND…: runs it as root, through sudo where that is needed.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		stop "packages must be installed, and this is neither root nor a machine with sudo"
	fi
}

# apt_install PKG…: asks nothing, and says nothing unless it fails. A fresh
# machine may be busy with its own first upgrade: wait for that.
apt_install() {
	local out status=0
	out=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o DPkg::Lock::Timeout=300 \
		--no-install-recommends "$@" 2>&1) || status=$?
	[ $status = 0 ] || printf '%s\n' "$out" >&2
	return $status
}

# need_packages PKG…: installs those that are missing.
need_packages() {
	local missing=() p
	for p; do
		[[ $(dpkg-query -W -f='${Status}\n' "$p" 2>/dev/null) == *"install ok installed"* ]] || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	echo "installing Debian packages, which may take some minutes: ${missing[*]}" >&2
	as_root apt-get update -qq
	without_daemons apt_install "${missing[@]}"
}

# without_daemons COMMAND…: the tests start servers of their own, on ports of
# their own. A system daemon is not wanted, so policy-rc.d forbids it meanwhile.
without_daemons() (
	policy=/usr/sbin/policy-rc.d
	if [ ! -e $policy ]; then
		trap 'as_root rm -f $policy' EXIT
		trap 'exit 130' INT TERM HUP
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
		as_root chmod 755 $policy
	fi
	"$@"
)

# need_go: a Go of at least 1.21, which fetches the toolchain go.mod names
# through the module proxy. Debian 12's own 1.19 is too old: backports have 1.23.
need_go() {
	local d
	for d in "$(command -v go 2>/dev/null || true)" /usr/local/go/bin/go /usr/lib/go-1.2[1-9]/bin/go /usr/lib/go/bin/go; do
		[ -x "$d" ] || continue
		if go_is_new "$d"; then
			use_go "$(dirname "$d")"
			return 0
		fi
	done
	echo "installing golang-1.23-go from bookworm-backports" >&2
	has_backports || as_root apt-get update -qq
	has_backports || add_backports
	apt_install -t bookworm-backports golang-1.23-go
	use_go /usr/lib/go-1.23/bin
}

has_backports() {
	[[ $(apt-cache policy golang-1.23-go 2>/dev/null) == *bookworm-backports* ]]
}

# go_is_new GO: is it 1.21 or newer? GOTOOLCHAIN=local asks for its own version.
go_is_new() {
	local v
	v=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	v=${v#go1.}
	v=${v%%[!0-9]*}
	[ -n "$v" ] && [ "$v" -ge 21 ]
}

# use_go DIR: the scripts' Go is the one in DIR.
use_go() {
	export PATH=$1:$PATH
	# An older Go may fetch the newer one that go.mod names, also where the
	# environment forbids it.
	GOTOOLCHAIN=local go list -m >/dev/null 2>&1 || export GOTOOLCHAIN=auto
	# Where git cannot read this clone (no git, or another user's files), a build
	# would fail over the commit it wants to note.
	if ! git rev-parse HEAD >/dev/null 2>&1; then
		GOFLAGS="$(go env GOFLAGS) -buildvcs=false"
		export GOFLAGS
	fi
	go version >/dev/null # fetches the toolchain, and says so
}

# add_backports: the suite, from the archive that the machine already uses,
# found and trusted as the lab does it.
# shellcheck source=/dev/null
add_backports() {
	local codename mirror keyring
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
	[ "$codename" = bookworm ] || stop "this machine has no Go of 1.21 or newer, and is no Debian 12: install Go, then run this again"
	. scripts/lab.d/common.sh
	. scripts/lab.d/apt.sh
	find_archive
	echo "deb ${keyring:+[signed-by=$keyring] }$mirror bookworm-backports main" |
		as_root tee /etc/apt/sources.list.d/kernsweep-backports.list >/dev/null
	as_root apt-get update -qq
}
