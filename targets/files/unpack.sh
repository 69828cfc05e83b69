# Moves what was unpacked in the folder $1 to its place in $2. Standard input:
# "t NAME" for what is new as a whole, "d NAME" folders, "f NAME" files.
tmp=$1 dest=${2%/}
trap 'rm -rf "$tmp"' EXIT
[ -e "$tmp/.complete" ] || { echo "the archive did not arrive whole" >&2; exit 1; }
while IFS= read -r line; do
	n=${line#? }
	from=$tmp/$n to=$dest/$n
	case $line in
	t*)
		if [ -e "$from" ] && [ ! -e "$to" ] && [ ! -h "$to" ]; then
			mv "$from" "$to" || exit 1
		fi
		;;
	d*)
		if [ -d "$from" ] && [ ! -d "$to" ]; then mkdir -p "$to" || exit 1; fi
		;;
	f*)
		if [ -e "$from" ] || [ -h "$from" ]; then
			if [ -d "$to" ] && [ ! -h "$to" ]; then
				echo "$to is a folder there, and a file here" >&2
				exit 1
			fi
			mv -f "$from" "$to" || exit 1
		fi
		;;
	esac
done
