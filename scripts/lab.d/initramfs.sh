# shellcheck shell=bash disable=SC2154 # lab, here and tmp are set by scripts/lab
# The segments of a guest's initial RAM disk: a base to log in to and the tools
# of workloads, equal for all kernels of an architecture, and one kernel's
# modules. Uncompressed: an emulated CPU unpacks slowly, while QEMU loads
# megabytes in no time.

# archive DIR OUT packs a folder; owners and times do not depend on this machine.
archive() {
	find "$1" -exec touch -h -d @0 {} +
	(cd "$1" && find . -print0 | LC_ALL=C sort -z | cpio --null -o -H newc -R 0:0 --reproducible --quiet) >"$2"
}

# userland ARCH TRIPLET LOADER DEBS makes base-ARCH.cpio and tools-ARCH.cpio.
userland() {
	local triplet=$2 loader=$3 w=$tmp/u-$1 t=$tmp/t-$1 root=$tmp/root-$1 f
	mkdir -p "$root" "$w" "$t/usr/bin"
	for f in "$4"/*.deb; do
		case $f in */linux-image-*) ;; *) dpkg-deb -x "$f" "$root" ;; esac
	done
	skeleton "$w"
	cp "$root/bin/busybox" "$w/bin/busybox"
	cp "$root/usr/sbin/dropbear" "$w/usr/sbin/"
	cp "$root/usr/lib/openssh/sftp-server" "$w/usr/lib/sftp-server"
	mkdir -p "$w/$(dirname "$loader")"
	cp -L "$root/lib/$triplet/$(basename "$loader")" "$w/$loader"
	libraries "$root" "$triplet" "$w" libc.so.6 libcrypt.so.1 libz.so.1 libtomcrypt.so.1 libtommath.so.1 libgmp.so.10
	archive "$w" "$tmp/img/base-$1.cpio"
	for f in iperf iperf3; do
		[ ! -e "$root/usr/bin/$f" ] || cp "$root/usr/bin/$f" "$t/usr/bin/"
	done
	libraries "$root" "$triplet" "$t" libm.so.6 libstdc++.so.6 libgcc_s.so.1 libiperf.so.0 libsctp.so.1 libcrypto.so.3 libssl.so.3
	archive "$t" "$tmp/img/tools-$1.cpio"
	rm -rf "$w" "$t" "$root"
}

# libraries ROOT TRIPLET TO NAME... copies those shared libraries that ROOT has.
libraries() {
	local from=$1 triplet=$2 to=$3/lib/$2 l d
	shift 3
	mkdir -p "$to"
	for l; do
		for d in "$from/lib/$triplet" "$from/usr/lib/$triplet"; do
			[ ! -e "$d/$l" ] || cp -L "$d/$l" "$to/$l"
		done
	done
}

# skeleton DIR makes what every userland has: folders, accounts, keys, init.
skeleton() {
	local w=$1
	mkdir -p "$w"/{bin,sbin,usr/bin,usr/sbin,usr/lib,etc/dropbear,root/.ssh,dev,proc,sys,tmp,run,lib/modules}
	chmod 700 "$w/root" "$w/root/.ssh"
	chmod 1777 "$w/tmp"
	install -m 600 "$lab/keys/id_ed25519.pub" "$w/root/.ssh/authorized_keys"
	dropbear_key "$lab/keys/host_ed25519" >"$w/etc/dropbear/host_ed25519"
	chmod 600 "$w/etc/dropbear/host_ed25519"
	echo 'root:x:0:0:root:/root:/bin/sh' >"$w/etc/passwd"
	echo 'root:*:19000:0:99999:7:::' >"$w/etc/shadow"
	echo 'root:x:0:' >"$w/etc/group"
	echo '/bin/sh' >"$w/etc/shells"
	echo '127.0.0.1 localhost' >"$w/etc/hosts"
	install -m 755 "$here/init" "$w/init"
	ln -s busybox "$w/bin/sh"
}

# dropbear_key FILE prints an OpenSSH ed25519 key the way Dropbear stores it: the
# key's type and its private part, both at fixed places of an unencrypted file.
dropbear_key() {
	local raw=$tmp/hostkey
	grep -v -- '-----' "$1" | base64 -d >"$raw"
	tail -c +107 "$raw" | head -c 15
	tail -c +158 "$raw" | head -c 68
	rm -f "$raw"
}

# module_segment KERNELDIR OUT MODULE... packs modules in the order to load them.
module_segment() {
	local k=$1 out=$2 m w
	shift 2
	w=$k/segment
	# newer Debian packages have /usr/lib/modules
	modules=$(find "$k" -maxdepth 4 -path '*/lib/modules/*' -prune -print -quit)
	[ -n "$modules" ] || die "no modules in $k"
	mkdir -p "$w/lib/modules"
	: >"$w/lib/modules/order"
	for m; do
		add_module "$m" "$w/lib/modules"
	done
	# /boot/config-RELEASE, so that the kernels' configurations can be compared
	find "$k" -maxdepth 2 -path '*/boot/config-*' -exec install -D -m 644 -t "$w/boot" {} +
	archive "$w" "$out"
}

# add_module NAME DIR adds what a module depends on, then the module itself.
add_module() {
	local name=${1//-/_} dir=$2 file dep
	if grep -qx "$name.ko" "$dir/order"; then
		return 0
	fi
	file=$(find "$modules" \( -name "$name.ko*" -o -name "${name//_/-}.ko*" \) -print -quit)
	if [ -z "$file" ]; then
		grep -qE "/(${name}|${name//_/-})\.ko" "$modules/modules.builtin" || die "the kernel has no module $name"
		return 0
	fi
	case $file in
	*.xz) xz -dc "$file" ;;
	*) cat "$file" ;;
	esac >"$dir/$name.ko"
	for dep in $(tr '\0' '\n' <"$dir/$name.ko" | sed -n 's/^depends=//p' | tr ',' ' '); do
		add_module "$dep" "$dir"
	done
	echo "$name.ko" >>"$dir/order"
}
