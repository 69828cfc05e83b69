# shellcheck shell=bash disable=SC2154 # lab and tmp are set by scripts/lab
# A private apt folder per suite and architecture under $lab/apt. Signatures are
# checked; the machine's own apt is asked only where its archive and its keys are.

# find_archive sets mirror and keyring. The archive is known by what its Release
# file says (Origin and Label), because its address may be that of any mirror or
# proxy; without downloaded lists, by the name of its suite.
find_archive() {
	local line entry=
	mirror=${KERNSWEEP_DEBIAN_MIRROR-} keyring=
	if [ -z "$mirror" ]; then
		line=$(archive_line)
		mirror=${line%%|*} entry=${line#*|}
		[ -n "$mirror" ] || die "this machine's apt has no Debian archive among its sources; name one: KERNSWEEP_DEBIAN_MIRROR=URL scripts/lab"
		keyring=$(signed_by "$entry")
	fi
	# The source's own keys may be those of one suite; Debian's know the others.
	local standard=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -r "$keyring" ] || keyring=
	if [ -r $standard ] && [ "$keyring" != $standard ]; then
		keyring=${keyring:+$keyring,}$standard
	fi
}

# archive_line prints "ADDRESS|FILE:LINE" of the first source of Debian's main archive.
# shellcheck disable=SC2016 # $(SITE) and its like are for apt to fill in
archive_line() {
	local all
	all=$(apt-get indextargets --format '$(SITE)|$(SOURCESENTRY)|$(ORIGIN)|$(LABEL)|$(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
		awk -F'|' '$3 == "Debian" && $4 == "Debian" && $5 == "main" { print $1 "|" $2 }')
	[ -n "$all" ] || all=$(apt-get indextargets --no-release-info --format '$(SITE)|$(SOURCESENTRY)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
		awk -F'|' '$3 ~ /^(bookworm|trixie|forky|sid|stable|oldstable|testing|unstable)$/ && $4 == "main" { print $1 "|" $2 }')
	printf '%s\n' "${all%%$'\n'*}"
}

# signed_by FILE:LINE prints the keyring that a source entry names, if it names a file.
signed_by() {
	local file=${1%:*} at=${1##*:}
	[ -r "$file" ] || return 0
	case $file in
	*.sources) # LINE counts stanzas here, so take the first file that is named
		sed -n 's|^[Ss]igned-[Bb]y:[[:space:]]*\(/[^[:space:]]*\).*|\1|p' "$file" | head -n 1
		;;
	*) sed -n "${at}s|.*[[ ]signed-by=\(/[^] ,]*\).*|\1|p" "$file" ;;
	esac
}

# apt_root SUITE ARCH makes the folder and reads the archive's index into it.
apt_root() {
	local suite=$1 arch=$2 r=$lab/apt/$1-$2 options="arch=$2"
	mkdir -p "$r"/etc/{apt.conf.d,sources.list.d,preferences.d} "$r"/lists/partial "$r"/cache/archives/partial "$r"/log
	: >"$r/status"
	[ -z "$keyring" ] || options="$options signed-by=$keyring"
	echo "deb [$options] $mirror $suite main" >"$r/etc/sources.list"
	[ "$arch" != source ] || echo "deb-src [${options#arch=source}] $mirror $suite main" >"$r/etc/sources.list"
	[ "$arch" != source ] || arch=$(dpkg --print-architecture)
	apt_settings "$r" "$arch" >"$r/apt.conf"
	apt_run "$r" apt-get update -qq
}

# apt_settings DIR ARCH prints the apt.conf of a private folder: the machine's own
# way to the network (proxies, time-outs, log-ins) and nothing else of it.
apt_settings() {
	local r=$1 arch=$2 etc
	etc=$(apt-config shell d Dir::Etc/d | sed "s/^d='\(.*\)'$/\1/")
	apt-config dump | grep '^Acquire::' | grep -vE '^Acquire::(IndexTargets|Languages|GzipIndexes|CompressionTypes|Changelogs|cdrom)' || true
	cat <<-END
		APT::Architecture "$arch";
		APT::Architectures { "$arch"; };
		APT::Sandbox::User "$(id -un)";
		Dir::Etc "$r/etc";
		Dir::Etc::main "apt.conf";
		Dir::Etc::parts "$r/etc/apt.conf.d";
		Dir::Etc::sourcelist "$r/etc/sources.list";
		Dir::Etc::sourceparts "$r/etc/sources.list.d";
		Dir::Etc::preferences "$r/etc/preferences";
		Dir::Etc::preferencesparts "$r/etc/preferences.d";
		Dir::Etc::trusted "$etc/trusted.gpg";
		Dir::Etc::trustedparts "$etc/trusted.gpg.d";
		Dir::Etc::netrc "$etc/auth.conf";
		Dir::Etc::netrcparts "$etc/auth.conf.d";
		Dir::State "$r";
		Dir::State::lists "$r/lists";
		Dir::State::status "$r/status";
		Dir::Cache "$r/cache";
		Dir::Cache::archives "$r/cache/archives";
		Dir::Cache::pkgcache "";
		Dir::Cache::srcpkgcache "";
		Dir::Log "$r/log";
		Acquire::Languages "none";
		Acquire::GzipIndexes "true";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
	END
}

# apt_run DIR COMMAND... runs an apt command in a private folder.
apt_run() {
	local r=$1
	shift
	APT_CONFIG=$r/apt.conf "$@"
}

# kernel_package SUITE ARCH META prints the newest kernel behind a meta package.
kernel_package() {
	local name
	name=$(apt_run "$lab/apt/$1-$2" apt-cache depends --no-recommends "$3" | awk '/Depends: linux-image/ && !n++ { print $2 }')
	[ -n "$name" ] || die "$1 for $2 has no $3"
	echo "$name"
}

# fetch SUITE ARCH DIR PACKAGE... leaves exactly these packages in $lab/deb/DIR.
fetch() {
	local r=$lab/apt/$1-$2 d=$lab/deb/$3
	shift 3
	if [ "$(cat "$d/complete" 2>/dev/null || true)" = "$*" ]; then
		return 0
	fi
	mkdir -p "$d.new"
	(cd "$d.new" && apt_run "$r" apt-get download -qq "$@" >/dev/null)
	echo "$*" >"$d.new/complete"
	rm -rf "$d"
	mv "$d.new" "$d"
}
