package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// timeslice says how a scheduler's time slice is set.
type timeslice struct {
	paths  []string // the first that is there is used
	also   []string // set to the same value, where it is there
	unit   time.Duration
	lo, hi time.Duration
	reason string // why there is none
}

const (
	sysKernel  = "/proc/sys/kernel/"
	debugSched = "/sys/kernel/debug/sched/"
)

// timesliceOf maps a scheduler to its knob. A fair scheduler that shares a
// period among its tasks runs each for max(period/n, granularity): with both
// set to the wanted slice, two tasks or more get just that.
func timesliceOf(scheduler string) timeslice {
	fair := timeslice{unit: 1, lo: 100 * time.Microsecond, hi: time.Second}
	rr := timeslice{unit: time.Millisecond, lo: time.Millisecond, hi: time.Second, paths: []string{sysKernel + "rr_interval"}}
	switch NormalScheduler(scheduler) {
	case "cfs":
		fair.paths = []string{sysKernel + "sched_min_granularity_ns", sysKernel + "sched_granularity_ns", debugSched + "min_granularity_ns"}
		fair.also = []string{sysKernel + "sched_latency_ns", "", debugSched + "latency_ns"}
		return fair
	case "eevdf":
		fair.paths = []string{debugSched + "base_slice_ns"}
		return fair
	case "bore":
		fair.paths = []string{debugSched + "min_base_slice_ns"}
		return fair
	case "bfs", "muqss", "sd":
		return rr
	case "o1":
		return timeslice{reason: "the O(1) scheduler has no time slice that can be set"}
	case "pds", "bmq":
		return timeslice{reason: "the time slice of PDS and BMQ is fixed at boot (sched_timeslice= on the kernel command line)"}
	case "sched_ext":
		return timeslice{reason: "the time slice belongs to the scheduler loaded by sched_ext, which has its own options"}
	case "":
		return timeslice{reason: "it is not known which scheduler runs"}
	}
	return timeslice{reason: "no time slice of the scheduler " + scheduler + " is known here"}
}

// TimesliceReason says why a declared scheduler has no time slice that can be
// set; "" when it has one, or when any scheduler may run.
func TimesliceReason(scheduler string) string {
	if scheduler == "" {
		return ""
	}
	return timesliceOf(scheduler).reason
}

// SetTimeslice sets the running scheduler's time slice to d by its own knob. The
// error is an *UnavailableError with the reason where that cannot be.
func SetTimeslice(ctx context.Context, conn Conn, s Scheduler, d time.Duration) (Knob, error) {
	ts := timesliceOf(s.Name)
	switch {
	case ts.reason != "":
		return Knob{}, &UnavailableError{ts.reason}
	case d < ts.lo || d > ts.hi || d%ts.unit != 0:
		return Knob{}, &UnavailableError{fmt.Sprintf("a time slice of %s: %s takes %s to %s in steps of %s", d, s.Name, ts.lo, ts.hi, ts.unit)}
	}
	value := fmt.Sprint(int64(d / ts.unit))
	var why []string
	for i, p := range ts.paths {
		k, err := SetKnob(ctx, conn, p, value)
		var ue *UnavailableError
		if errors.As(err, &ue) {
			why = append(why, ue.Reason)
			continue
		}
		if err != nil {
			return k, err
		}
		if i >= len(ts.also) || ts.also[i] == "" {
			return k, nil
		}
		also, err := SetKnob(ctx, conn, ts.also[i], value)
		if err != nil {
			if rerr := k.Restore(ctx, conn); rerr != nil {
				return k, fmt.Errorf("%w; %w", err, rerr)
			}
			return Knob{}, err
		}
		k.Also = []Knob{also}
		return k, nil
	}
	return Knob{}, &UnavailableError{"time slice: " + strings.Join(why, "; ")}
}
