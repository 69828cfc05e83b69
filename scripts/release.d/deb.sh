# shellcheck shell=bash disable=SC2154
# A Debian package of a binary, with dpkg-deb alone. Sourced by scripts/release.

debian_arch() {
	case $1 in armv7) echo armhf ;; *) echo "$1" ;; esac
}

# debian_package ARCH DIR FILE: packs what is in DIR, the archive's folder.
debian_package() {
	local arch=$1 from=$2 file=$3 root=$tmp/deb-$1 doc f
	doc=$root/usr/share/doc/kernsweep
	mkdir -p "$root/DEBIAN" "$root/usr/bin" "$doc" "$root/etc/kernsweep" "$root/etc/default" "$root/usr/lib/systemd/system" \
		"$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d" \
		"$root/usr/share/lintian/overrides"
	install -m 755 "$from/kernsweep" "$root/usr/bin/kernsweep"
	cp -r "$from/man" "$root/usr/share/man"
	find "$root/usr/share/man" -type f -exec gzip -9n {} +
	cp "$from/completions/kernsweep.bash" "$root/usr/share/bash-completion/completions/kernsweep"
	cp "$from/completions/kernsweep.zsh" "$root/usr/share/zsh/vendor-completions/_kernsweep"
	cp "$from/completions/kernsweep.fish" "$root/usr/share/fish/vendor_completions.d/kernsweep.fish"
	install -m 644 packaging/kernsweep-serve.service "$root/usr/lib/systemd/system/kernsweep-serve.service"
	install -m 644 packaging/kernsweep-serve.default "$root/etc/default/kernsweep-serve"
	install -m 644 packaging/testbeds.hcl "$root/etc/kernsweep/testbeds.hcl"
	cp "$from/README.md" "$doc"
	cp -r "$from/examples" "$doc/examples"
	cp "$from/testbeds.hcl" "$doc/examples"
	debian_words "$doc"
	install -m 644 packaging/lintian-overrides "$root/usr/share/lintian/overrides/kernsweep"

	for f in postinst prerm postrm; do
		install -m 755 "packaging/$f" "$root/DEBIAN/$f"
	done
	printf '%s\n' /etc/default/kernsweep-serve /etc/kernsweep/testbeds.hcl >"$root/DEBIAN/conffiles"
	(cd "$root" && find . -path ./DEBIAN -prune -o -path ./etc -prune -o -type f -printf '%P\n' | sort | xargs -d '\n' md5sum >DEBIAN/md5sums)
	debian_control "$arch" "$(du -sk --exclude=DEBIAN --apparent-size "$root" | cut -f1)" >"$root/DEBIAN/control"
	chmod -R u=rwX,go=rX "$root"
	find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz --build "$root" "$file" >/dev/null
}

# debian_words DIR: the licence and the list of changes, as Debian wants them.
debian_words() {
	# Free-form: a package's licence as its authors wrote it.
	{ printf 'kernsweep, under the Expat licence:\n\n'; cat LICENSE; } >"$1/copyright"
	printf 'kernsweep (%s) unstable; urgency=medium\n\n  * Built from commit %s.\n\n -- %s  %s\n' "$version" "$commit$changes" \
		"$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$1/changelog.gz"
}

maintainer=${MAINTAINER:-the kernsweep authors <kernsweep@localhost>}

# debian_control ARCH KIB
debian_control() {
	cat <<EOF
Package: kernsweep
Version: $version
Architecture: $(debian_arch "$1")
Maintainer: $maintainer
Installed-Size: $2
Depends: adduser
Recommends: openssh-client
Suggests: qemu-system-x86, qemu-system-mips, iperf, iperf3, golang-go
Section: devel
Priority: optional
Description: kernel sweeps over a lab of machines, overnight
 kernsweep reads one file that describes a lab, takes each target through its
 kernels, proves each boot, runs the workloads, gathers everything into one
 run directory, and says in the morning what was measured and what follows
 from it.
 .
 The web page of kernsweep-serve.service is not started by itself.
EOF
}
