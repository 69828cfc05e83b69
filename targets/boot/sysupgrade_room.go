package boot

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
)

// What an earlier boot left is removed before anything is measured.
const roomScript = `rm -f "$1"/kernsweep-sysupgrade.* || exit 1
command -v sysupgrade >/dev/null || { echo "no program sysupgrade" >&2; exit 1; }
cat /proc/mounts
echo @@mem; cat /proc/meminfo
echo @@df; df -P -k "$1" 2>/dev/null || df -k "$1"`

// makeRoom refuses an image that does not fit, with the numbers. df of a folder
// in memory counts half of the RAM as free whatever is in use, so the memory that
// is really there is compared too.
func (s *Sysupgrade) makeRoom(ctx context.Context, conn targets.Conn, exec time.Duration, size int64) error {
	ctx, stop := context.WithTimeout(ctx, exec)
	defer stop()
	out, err := shell(ctx, conn, roomScript, s.dir())
	var link *targets.LinkError
	switch {
	case errors.As(err, &link):
		return err
	case err != nil:
		return fmt.Errorf("is this OpenWrt, is its user root? %w", err)
	}
	table, rest, _ := strings.Cut(out, "@@mem\n")
	mem, df, _ := strings.Cut(rest, "@@df\n")
	return s.room(mountTable(table), meminfo(mem), dfFree(df), (size+1023)>>10)
}

// room compares what is needed with what is there; all in KiB.
func (s *Sysupgrade) room(all mounts, mem map[string]int64, free, size int64) error {
	reserve := int64(s.Reserve) << 10
	if reserve == 0 {
		reserve = 4 << 10
	}
	holds := all.of(s.dir())
	need, parts := unpackKB+reserve, fmt.Sprintf("unpacking %s + reserve %s", mib(unpackKB), mib(reserve))
	if inMemory(holds) != "" {
		need, parts = need+size, "image "+mib(size)+" + "+parts
	}
	available, how, ok := availableKB(mem)
	switch {
	case sealed(holds):
		return fmt.Errorf("no room: %s (%s) is read-only on the target; dir names another folder", holds.dir, holds.fstype)
	case free < 0:
		return fmt.Errorf("how much room %s has cannot be told: df of the target prints no number", s.dir())
	case free < size:
		return fmt.Errorf("no room in %s: the image has %s, df says %s are free; dir names another folder", s.dir(), mib(size), mib(free))
	case !ok:
		return errors.New("how much memory is free cannot be told: /proc/meminfo of the target has no number")
	case available < need:
		return fmt.Errorf("no room in memory: needed are %s (%s), %s is %s of %s, although df says %s are free in %s: stop services, take a smaller image, or put it on a disk with dir",
			mib(need), parts, how, mib(available), mib(mem["MemTotal"]), mib(free), s.dir())
	}
	return nil
}

func mib(kb int64) string { return fmt.Sprintf("%.1f MiB", float64(kb)/1024) }

// meminfo reads the numbers of /proc/meminfo.
func meminfo(text string) map[string]int64 {
	m := map[string]int64{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		if f := strings.Fields(rest); ok && len(f) > 0 {
			if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				m[name] = n
			}
		}
	}
	return m
}

// availableKB is MemAvailable. Kernels before 3.14 do not have it; there half of
// the caches count, without what tmpfs holds in them.
func availableKB(mem map[string]int64) (kb int64, how string, ok bool) {
	if n, ok := mem["MemAvailable"]; ok {
		return n, "MemAvailable", true
	}
	free, ok := mem["MemFree"]
	caches := max(0, mem["Cached"]+mem["Buffers"]-mem["Shmem"])
	return free + caches/2, "MemFree and half of the caches (this kernel has no MemAvailable)", ok
}

// dfFree reads the free KiB of df's last line, -1 when there is none. BusyBox
// breaks long lines, so the number before the percentage counts.
func dfFree(text string) int64 {
	free := int64(-1)
	f := strings.Fields(text)
	for i := 1; i < len(f); i++ {
		if strings.HasSuffix(f[i], "%") {
			if n, err := strconv.ParseInt(f[i-1], 10, 64); err == nil {
				free = n
			}
		}
	}
	return free
}

// compareSums reads the file on the target again: a flash is not written with an
// image that lost bytes on its way.
func compareSums(ctx context.Context, conn targets.Conn, there, here string) error {
	out, err := shell(ctx, conn, `for p in sha256sum md5sum; do
	command -v $p >/dev/null && { echo $p; exec $p "$1"; }
done
echo none`, there)
	if err != nil {
		return fmt.Errorf("the sum of the image on the target: %w", err)
	}
	f := strings.Fields(out)
	if len(f) < 2 {
		return errors.New("the target has neither sha256sum nor md5sum: whether the image arrived whole cannot be told, and flash is not written without that")
	}
	var h hash.Hash = sha256.New()
	if f[0] == "md5sum" {
		h = md5.New() // against damage, not against malice: old devices have no other
	}
	in, err := os.Open(here)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.Copy(h, in); err != nil {
		return fmt.Errorf("%s: %w", here, err)
	}
	if want := hex.EncodeToString(h.Sum(nil)); f[1] != want {
		return fmt.Errorf("the image arrived damaged: its %s on the target is %s, sent was %s", strings.TrimSuffix(f[0], "sum"), f[1], want)
	}
	return nil
}
