package targets

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// RebootedError says that a machine is no longer in the boot it was in, or no
// longer runs the same scheduler.
type RebootedError struct{ What, Was, Is string }

func (e *RebootedError) Error() string {
	return fmt.Sprintf("%s changed from %q to %q: it is not the boot that was verified", e.What, e.Was, e.Is)
}

const recheckScript = `cat /proc/sys/kernel/random/boot_id || exit 9
read -r up rest </proc/uptime && echo "uptime $up"
for f in state root/ops enable_seq; do
	[ -r /sys/kernel/sched_ext/$f ] && read -r v </sys/kernel/sched_ext/$f && echo "$f $v"
done
[ -r /proc/sys/kernel/sched_bore ] && echo "bore $(cat /proc/sys/kernel/sched_bore)"
exit 0`

// Recheck is the cheap half of law 4, for before and after a trial: one small
// exec compares boot_id, uptime and what can switch the scheduler of a running
// kernel. A wall clock that jumps is no reboot. The error is a *RebootedError,
// or the link's, or says that nothing could be learnt.
func Recheck(ctx context.Context, conn Conn, rec BootRecord) error {
	var out bytes.Buffer
	e, err := conn.Run(ctx, Cmd{Argv: []string{"sh", "-c", recheckScript}, Stdout: limited(&out, 4096)})
	if err != nil {
		return err
	}
	id, err := bootIDFrom(e, out.Bytes())
	if err != nil {
		return err
	}
	if id != rec.BootID {
		return &RebootedError{"boot_id", rec.BootID, id}
	}
	now := map[string]string{}
	for line := range strings.Lines(out.String()) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			now[k] = v
		}
	}
	if up, err := strconv.ParseFloat(now["uptime"], 64); err == nil && up < rec.UptimeS {
		return &RebootedError{"uptime", fmt.Sprintf("%.2f s", rec.UptimeS), now["uptime"] + " s"}
	}
	return recheckScheduler(rec.Scheduler, now)
}

func recheckScheduler(was Scheduler, now map[string]string) error {
	ext := now["state"] == "enabled"
	switch {
	case ext != (was.Name == "sched_ext"):
		is := "sched_ext " + now["root/ops"]
		if !ext {
			is = "no sched_ext"
		}
		return &RebootedError{"the scheduler", was.Name, is}
	case ext && was.Detail != "" && now["root/ops"] != was.Detail:
		return &RebootedError{"the sched_ext scheduler", was.Detail, now["root/ops"]}
	case now["bore"] != "" && (now["bore"] == "1") != (was.Name == "bore") && !ext:
		return &RebootedError{"the scheduler", was.Name, "sched_bore = " + now["bore"]}
	}
	return nil
}
