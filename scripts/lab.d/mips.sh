#!/usr/bin/env bash
# Builds what Debian does not offer ready-made, from Debian's sources and with
# Debian's cross compilers: tiny Malta kernels for guests of 16 to 32 MB, and a
# big-endian userland (BusyBox and Dropbear, static). scripts/lab --mips runs it;
# it takes some 10 minutes of two processors. Each image is kept once made.
set -eu
shopt -s inherit_errexit
lab=$1
here=$(dirname "$0")
. "$here/common.sh"
. "$here/apt.sh"
. "$here/initramfs.sh"
suite=bookworm
jobs=$(nproc)
export KBUILD_BUILD_USER=lab KBUILD_BUILD_HOST=kernsweep KBUILD_BUILD_TIMESTAMP='2026-01-01 00:00:00'
# Architectures whose files a MIPS build does not need: half of the tree.
others="alpha arc arm arm64 csky hexagon ia64 loongarch m68k microblaze nios2 openrisc parisc powerpc riscv s390 sh sparc um x86 xtensa"

# sources VERSION SUITE unpacks Debian's kernel source of a version.
sources() {
	local version=$1 from=$2 dir=$lab/src/linux-$1 skip=() a
	[ ! -e "$dir/.complete" ] || return 0
	say "fetching the source of Linux $version"
	apt_root "$from" amd64
	fetch "$from" amd64 "linux-source-$version" src
	for a in $others; do skip+=("--exclude=*/arch/$a/*"); done
	rm -rf "$dir"
	mkdir -p "$dir" "$lab/src/deb"
	dpkg-deb --fsys-tarfile "$lab/deb/src-$version"/*.deb | tar -xO "./usr/src/linux-source-$version.tar.xz" |
		tar -xJ -C "$dir" --strip-components=1 "${skip[@]}" --exclude='*/Documentation/*/*' \
			--exclude='*/drivers/gpu/drm/amd/include/asic_reg/*' --exclude='*/tools/testing/*' --exclude='*/tools/perf/*'
	# Kconfig files that common ones name must exist; empty ones do.
	(cd "$dir" && grep -rhoE '^[[:space:]]*source "arch/[a-z0-9]+/[^"$]+"' --include='Kconfig*' . | grep -oE 'arch/[^"]+' | sort -u |
		while read -r a; do
			mkdir -p "$(dirname "$a")"
			[ -e "$a" ] || : >"$a"
		done)
	touch "$dir/.complete"
}
