# Sends $1: first a line that says what it is, then it. $2 is 1 where a folder may
# come as an archive, $3 is 1 where only a file is wanted.
p=$1
if [ ! -e "$p" ]; then
	echo "no such file or folder on the target" >&2
	exit 1
fi
if [ -d "$p" ]; then
	if [ "$3" = 1 ]; then
		echo "it is a folder" >&2
		exit 1
	fi
	cd "$p" || exit 1
	if [ "$2" = 1 ] && command -v tar >/dev/null; then
		echo "archive"
		exec tar -cf - .
	fi
	echo "names"
	exec find . -type f -print
fi
facts=$(stat -L -c '%a %Y' "$p" 2>/dev/null) || facts="- -"
exec 3<"$p" || exit 1
echo "file $facts"
exec cat <&3
