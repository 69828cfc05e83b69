package boot

import (
	"context"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"kernsweep/targets"
)

// ownName is the shell pattern of the files that install writes; nothing else
// on a target is ever removed.
const (
	ownName = "kernsweep-" + hex12 + ".[kid]"
	hex12   = hex4 + hex4 + hex4
	hex4    = "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]"
)

// reserve is what stays free beside the files, in KiB.
const reserve = 4 << 10

// installed are the paths of a kernel's files on the target; "" is none.
type installed struct{ Kernel, Initrd, DTB string }

// roomError says that the files do not fit. Older ones may make room.
type roomError struct {
	where          string // what is short: "/boot", "memory"
	needKB, freeKB int64
}

func (e *roomError) Error() string {
	return fmt.Sprintf("%s has %d KiB free, and the kernel's files need %d KiB, %d KiB of that as a reserve: make room there, or use a smaller initrd",
		e.where, e.freeKB, e.needKB, reserve)
}

// payload is one file of a kernel, here and there.
type payload struct {
	from, name string // path on the controller; name in the target's folder
	size       int64  // bytes
	sum        string // SHA-256
}

// install puts k's image files into dir on the target, which is made when it is
// missing: all of them or none. A file that is there whole is not sent again.
// With persist it refuses a folder that a restart empties. Too little room is a
// *roomError, before anything is sent.
func install(ctx context.Context, conn targets.Conn, dir string, k targets.Kernel, persist bool) (installed, error) {
	files, drop, err := payloads(k.Image)
	if err != nil {
		return installed{}, err
	}
	defer drop()
	at, err := surveyFolder(ctx, conn, dir, files)
	if err != nil {
		return installed{}, err
	}
	missing := files[:0:0]
	need := int64(0)
	for _, f := range files {
		if !at.whole[f.name] {
			missing = append(missing, f)
			need += f.size
		}
	}
	if persist {
		if err := persistent(ctx, conn, at.real); err != nil {
			return installed{}, err
		}
	}
	if err := at.check(dir, need); err != nil {
		return installed{}, err
	}
	if err := send(ctx, conn, dir, missing); err != nil {
		return installed{}, err
	}
	var in installed
	for _, f := range files {
		switch p := path.Join(dir, f.name); f.name[len(f.name)-1] {
		case 'k':
			in.Kernel = p
		case 'i':
			in.Initrd = p
		case 'd':
			in.DTB = p
		}
	}
	return in, nil
}

// payloads are the files of an image; drop removes what was made for them.
func payloads(i targets.Image) (files []payload, drop func(), err error) {
	drop = func() {}
	for _, f := range []struct{ path, kind string }{{i.Kernel, "k"}, {i.Initrd, "i"}, {i.DTB, "d"}} {
		if f.path == "" {
			continue
		}
		if f.kind == "i" {
			if f.path, drop, err = joinInitrd(i); err != nil {
				return nil, drop, err
			}
		}
		sum, err := hashFile(f.path)
		if err != nil {
			drop()
			return nil, func() {}, err
		}
		info, err := os.Stat(f.path)
		if err != nil {
			drop()
			return nil, func() {}, err
		}
		files = append(files, payload{f.path, "kernsweep-" + sum[:12] + "." + f.kind, info.Size(), sum})
	}
	return files, drop, nil
}

// folder is what the target says of a directory.
type folder struct {
	real   string // the folder's path without symbolic links
	mounts mounts
	freeKB int64
	memKB  int64 // MemAvailable, or what comes near it on kernels before 3.14
	whole  map[string]bool
}

// The sum of a file is asked for only when its size is right. Where nothing can
// make SHA-256 sums the file counts as missing, and is sent again.
const surveyScript = `d=$1; shift
LC_ALL=C; export LC_ALL
mkdir -p "$d" 2>&1 || exit 9
echo "real $(cd "$d" && pwd -P)"
cat /proc/self/mountinfo
df -kP "$d" | while read -r l; do echo "df $l"; done
while read -r k v u; do case $k in MemAvailable:|MemFree:|Buffers:|Cached:) echo "mem $k $v" ;; esac; done </proc/meminfo
while [ $# -gt 0 ]; do
	f=$d/$1
	if [ -f "$f" ] && [ "$(wc -c <"$f")" -eq "$2" ]; then
		s=$(sha256sum "$f" 2>/dev/null) && [ "${s%% *}" = "$3" ] && echo "whole $1"
	fi
	shift 3
done
t=$d/kernsweep-try.$$
if ( : >"$t" ) 2>/dev/null; then rm -f "$t"; echo "writable yes"; else echo "writable no"; fi`

// surveyFolder looks at dir, which it makes when it is missing.
func surveyFolder(ctx context.Context, conn targets.Conn, dir string, files []payload) (*folder, error) {
	args := []string{dir}
	for _, f := range files {
		args = append(args, f.name, strconv.FormatInt(f.size, 10), f.sum)
	}
	said, err := shell(ctx, conn, surveyScript, args...)
	if err != nil {
		return nil, fmt.Errorf("%s on the target: %w", dir, err)
	}
	at := &folder{real: dir, mounts: parseMounts(said), freeKB: -1, memKB: -1, whole: map[string]bool{}}
	mem := map[string]int64{}
	for line := range strings.SplitSeq(said, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch {
		case f[0] == "real":
			at.real = strings.TrimPrefix(line, "real ")
		case f[0] == "whole":
			at.whole[f[1]] = true
		case f[0] == "mem" && len(f) == 3:
			mem[f[1]], _ = strconv.ParseInt(f[2], 10, 64) // a word that is no number counts nothing
		case f[0] == "df" && len(f) >= 7 && f[1] != "Filesystem":
			// Counted from the end, for a file system's name may hold a blank.
			if kb, err := strconv.ParseInt(f[len(f)-3], 10, 64); err == nil {
				at.freeKB = kb
			}
		case f[0] == "writable" && f[1] == "no":
			why := "its user may not write there"
			if m := at.mounts.of(at.real); m.readOnly() {
				why = fmt.Sprintf("%s is mounted read-only (%s)", m.dir, m.fstype)
			}
			return nil, fmt.Errorf("%s on the target is not writable: %s", dir, why)
		}
	}
	if kb, ok := mem["MemAvailable:"]; ok {
		at.memKB = kb
	} else if kb, ok := mem["MemFree:"]; ok {
		at.memKB = kb + (mem["Buffers:"]+mem["Cached:"])/2 // half of it may be in use
	}
	return at, nil
}

// check refuses a folder that has no room for need bytes.
func (at *folder) check(dir string, need int64) error {
	if need == 0 {
		return nil
	}
	kb := (need+1023)>>10 + reserve
	ram := inMemory(at.mounts.of(at.real))
	if ram != "" && (at.freeKB < 0 || at.freeKB == 0 && ram != "tmpfs") {
		at.freeKB = at.memKB // df says nothing of a ramfs, which has no limit of its own
	}
	if at.freeKB < 0 {
		return fmt.Errorf("%s on the target: df says nothing of its free room", dir)
	}
	if at.freeKB < kb {
		return &roomError{dir, kb, at.freeKB}
	}
	// df of a RAM disk tells its limit, not what memory is left (half of all by
	// default, used or not).
	if ram != "" && at.memKB >= 0 && at.memKB < kb {
		return &roomError{fmt.Sprintf("the memory that %s lies in (%s)", dir, ram), kb, at.memKB}
	}
	return nil
}

// send writes every file under a temporary name, makes sure that they are whole
// on the disk, and only then gives them their names.
func send(ctx context.Context, conn targets.Conn, dir string, files []payload) error {
	if len(files) == 0 {
		return nil
	}
	args := []string{dir}
	for _, f := range files {
		args = append(args, f.name, strconv.FormatInt(f.size, 10), f.sum)
		if err := put(ctx, conn, path.Join(dir, f.name+".part"), f.from); err != nil {
			dropParts(ctx, conn, args)
			return err
		}
	}
	if _, err := shell(ctx, conn, commitScript, args...); err != nil {
		dropParts(ctx, conn, args)
		return fmt.Errorf("%s on the target: %w", dir, err)
	}
	return nil
}

const commitScript = `d=$1; shift
n=$#
sync -f "$d" 2>/dev/null || sync
for pass in check name; do
	i=0
	for a; do
		case $i in 0) f=$a ;; 1) size=$a ;; 2)
			p=$d/$f.part
			if [ $pass = name ]; then
				mv "$p" "$d/$f" || exit 1
			else
				[ "$(wc -c <"$p")" -eq "$size" ] || { echo "$f arrived with $(wc -c <"$p") bytes of $size" >&2; exit 1; }
				if s=$(sha256sum "$p" 2>/dev/null); then
					[ "${s%% *}" = "$a" ] || { echo "$f arrived damaged: its SHA-256 is ${s%% *}, sent was $a" >&2; exit 1; }
				fi
			fi ;;
		esac
		i=$(( (i + 1) % 3 ))
	done
done
sync -f "$d" 2>/dev/null || sync`

// dropParts removes what a failed send left. args are those of commitScript.
func dropParts(ctx context.Context, conn targets.Conn, args []string) {
	ctx, stop := targets.Afterwards(ctx, cleanTime)
	defer stop()
	script := `d=$1; shift; while [ $# -gt 0 ]; do rm -f "$d/$1.part"; shift 3; done`
	_, _ = shell(ctx, conn, script, args...) // the failure that led here is the one that matters; prune finds the rest
}

func put(ctx context.Context, conn targets.Conn, to, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return conn.Put(ctx, to, 0o600, f)
}

// prune removes the files that earlier installs put into dir, but for keep, and
// what an interrupted one left. It never touches anything else.
func prune(ctx context.Context, conn targets.Conn, dir string, keep installed) error {
	script := `d=$1; shift
for f in "$d"/` + ownName + ` "$d"/` + ownName + `.part "$d"/` + ownName + `.part.kernsweep-????????; do
	[ -f "$f" ] || continue
	for k; do [ "$f" = "$k" ] && continue 2; done
	rm -f "$f" || exit 1
done`
	if _, err := shell(ctx, conn, script, path.Clean(dir), keep.Kernel, keep.Initrd, keep.DTB); err != nil {
		return fmt.Errorf("removing older kernels of ours from %s on the target: %w", dir, err)
	}
	return nil
}
