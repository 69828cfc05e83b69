#!/usr/bin/env bash
# Builds what Debian does not offer ready-made, from Debian's sources and with
# Debian's cross compilers: tiny Malta kernels for guests of 16 to 32 MB, and a
# big-endian userland (BusyBox and Dropbear, static). scripts/lab --mips runs it;
# it takes some 10 minutes of two processors. Each image is kept once made.
set -eu
shopt -s inherit_errexit
lab=$1
here=$(dirname "$0")
# shellcheck source=scripts/lab.d/common.sh
. "$here/common.sh"
# shellcheck source=scripts/lab.d/apt.sh
. "$here/apt.sh"
# shellcheck source=scripts/lab.d/initramfs.sh
. "$here/initramfs.sh"
suite=bookworm
jobs=$(nproc)
export KBUILD_BUILD_USER=lab KBUILD_BUILD_HOST=kernsweep KBUILD_BUILD_TIMESTAMP='2026-01-01 00:00:00'
# Architectures whose files a MIPS build does not need: half of the tree. (A
# makefile of fs/ reads one of um.)
others="alpha arc arm arm64 csky hexagon ia64 loongarch m68k microblaze nios2 openrisc parisc powerpc riscv s390 sh sparc x86 xtensa"

# sources VERSION SUITE unpacks Debian's kernel source of a version.
sources() {
	local version=$1 from=$2 dir=$lab/src/linux-$1 skip=() a
	[ ! -e "$dir/.complete" ] || return 0
	say "fetching the source of Linux $version"
	find_archive
	apt_root "$from" amd64
	fetch "$from" amd64 "src-$version" "linux-source-$version"
	for a in $others; do skip+=("--exclude=*/arch/$a/*"); done
	rm -rf "$dir"
	mkdir -p "$dir"
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

# build_kernel VERSION be|le VARIANT leaves lab/img/vmlinux-ARCH-VERSION-VARIANT.
# Variants of one version and byte order share a folder, so that the second one
# costs little.
build_kernel() {
	local version=$1 order=$2 variant=$3 cross=mipsel arch=mipsel
	[ "$order" = le ] || cross=mips arch=mips
	local image=vmlinux-$arch-$version-$variant out=$lab/src/build-$order-$version recipe
	recipe=$(cat "$here/malta-tiny.config" "$here/$order.config" "$here/$variant.config" "$lab/deb/src-$version/complete" | sha256sum)
	if [ -s "$lab/img/$image" ] && [ "$(cat "$lab/src/$image.recipe" 2>/dev/null || true)" = "$recipe" ]; then
		return 0
	fi
	say "building $image"
	mkdir -p "$out"
	cat "$here/malta-tiny.config" "$here/$order.config" "$here/$variant.config" >"$out/wanted"
	local make=(make -s -C "$lab/src/linux-$version" "O=$out" ARCH=mips "CROSS_COMPILE=$cross-linux-gnu-")
	KCONFIG_ALLCONFIG="$out/wanted" "${make[@]}" allnoconfig >"$out/log" 2>&1 || build_failed "$image" "$out/log"
	"${make[@]}" -j"$jobs" vmlinux >>"$out/log" 2>&1 || build_failed "$image" "$out/log"
	"$cross-linux-gnu-strip" -o "$out/$image" "$out/vmlinux"
	mv "$out/$image" "$lab/img/$image"
	echo "$recipe" >"$lab/src/$image.recipe"
}

build_failed() {
	tail -n 20 "$2" >&2
	die "building $1 failed; all of it: $2"
}

# source_of PACKAGE unpacks the upstream part of a Debian source package into
# lab/src/PACKAGE. Debian's patches are for Debian's own build; the tools here
# run in a guest that nobody but this machine reaches.
source_of() {
	local package=$1 dir=$lab/src/$1 d=$lab/deb/src-$1
	[ ! -e "$dir/.complete" ] || return 0
	say "fetching the source of $package"
	find_archive
	apt_root $suite source
	mkdir -p "$d"
	(cd "$d" && apt_run "$lab/apt/$suite-source" apt-get source -qq --download-only "$package" >/dev/null)
	rm -rf "$dir"
	mkdir -p "$dir"
	tar -xf "$(echo "$d/$package"_*.orig.tar.*[!c])" -C "$dir" --strip-components=1
	touch "$dir/.complete"
}

# build_busybox makes a static big-endian BusyBox.
build_busybox() {
	local dir=$lab/src/busybox out=$lab/src/busybox/busybox
	[ ! -x "$lab/src/mips-root/busybox" ] || return 0
	source_of busybox
	say "building BusyBox for big-endian MIPS"
	local make=(make -s -C "$dir" ARCH=mips CROSS_COMPILE=mips-linux-gnu-)
	"${make[@]}" defconfig >"$dir/log" 2>&1 || build_failed BusyBox "$dir/log"
	# tc does not build against newer kernel headers; nothing here asks for it.
	sed -i -e 's/^# CONFIG_STATIC is not set/CONFIG_STATIC=y/' -e 's/^CONFIG_TC=y/# CONFIG_TC is not set/' "$dir/.config"
	yes '' | "${make[@]}" oldconfig >>"$dir/log" 2>&1 || build_failed BusyBox "$dir/log"
	"${make[@]}" -j"$jobs" busybox >>"$dir/log" 2>&1 || build_failed BusyBox "$dir/log"
	mv "$out" "$lab/src/mips-root/busybox"
}

# build_dropbear makes a static big-endian Dropbear server.
build_dropbear() {
	local dir=$lab/src/dropbear
	[ ! -x "$lab/src/mips-root/dropbear" ] || return 0
	source_of dropbear
	say "building Dropbear for big-endian MIPS"
	# Log-in is by key; the cross compiler's C library has no crypt().
	echo '#define DROPBEAR_SVR_PASSWORD_AUTH 0' >"$dir/localoptions.h"
	(cd "$dir" && ./configure --host=mips-linux-gnu --disable-zlib --enable-static --enable-bundled-libtom --disable-pam \
		--disable-lastlog --disable-utmp --disable-utmpx --disable-wtmp --disable-wtmpx >log 2>&1) || build_failed Dropbear "$dir/log"
	make -s -C "$dir" -j"$jobs" PROGRAMS=dropbear STATIC=1 >>"$dir/log" 2>&1 || build_failed Dropbear "$dir/log"
	mips-linux-gnu-strip -o "$lab/src/mips-root/dropbear.new" "$dir/dropbear"
	mv "$lab/src/mips-root/dropbear.new" "$lab/src/mips-root/dropbear"
}

# mips_userland packs the big-endian userland: no sftp-server, no libraries.
mips_userland() {
	local w recipe
	recipe=$(cat "$here/initramfs.sh" "$here/init" "$lab"/keys/*.pub "$lab"/src/mips-root/* | sha256sum)
	if [ -s "$lab/img/base-mips.cpio.gz" ] && [ "$(cat "$lab/src/base-mips.recipe" 2>/dev/null || true)" = "$recipe" ]; then
		return 0
	fi
	tmp=$lab/tmp-mips
	w=$tmp/mips
	rm -rf "$tmp"
	mkdir -p "$w"
	skeleton "$w"
	cp "$lab/src/mips-root/busybox" "$w/bin/"
	cp "$lab/src/mips-root/dropbear" "$w/usr/sbin/"
	archive "$w" "$tmp/base-mips.cpio"
	# Packed, because a guest of 16 MB has to hold both forms for a moment.
	gzip -9n "$tmp/base-mips.cpio"
	mv "$tmp/base-mips.cpio.gz" "$lab/img/"
	rm -rf "$tmp"
	echo "$recipe" >"$lab/src/base-mips.recipe"
}

need mips-linux-gnu-gcc:gcc-mips-linux-gnu mipsel-linux-gnu-gcc:gcc-mipsel-linux-gnu make:make gcc:gcc flex:flex bison:bison bc:bc perl:perl
[ -e /usr/mips-linux-gnu/lib/libc.a ] || die "missing tools; install them with: apt-get install libc6-dev-mips-cross"
start=$SECONDS
mkdir -p "$lab/src/mips-root"
exec 9>"$lab/.lock-mips"
flock 9 # another scripts/lab --mips may be at it
sources 6.1 $suite
build_kernel 6.1 be hz100-none
build_kernel 6.1 be hz1000-preempt
build_busybox
build_dropbear
mips_userland
build_kernel 6.1 le hz100-none
sources 6.12 $suite-backports
build_kernel 6.12 le hz100-none
say "MIPS images are in lab/img, after $((SECONDS - start)) s"
