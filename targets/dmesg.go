package targets

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// KernelLog is a kernel's log at one moment: the mark before a trial, and what
// it is compared with after.
type KernelLog struct {
	Text    []byte
	Taint   string // /proc/sys/kernel/tainted; "" unknown
	Missing string // why there is no text (law 6); "" when there is
	// Uptime of the target in seconds, 0 when it is not known: it was read between
	// Asked and Answered.
	Uptime          float64
	Asked, Answered time.Time
}

// Elapsed is how many seconds passed on the target since an earlier look, and the
// least and the most that passed here meanwhile. Of the two clocks here the
// monotonic one leaves out a suspension, and the time of day may be set: both
// bound the time. ok is false when a look did not tell the uptime.
func (l KernelLog) Elapsed(before KernelLog) (there, least, most float64, ok bool) {
	if l.Uptime == 0 || before.Uptime == 0 || before.Answered.IsZero() || l.Asked.IsZero() {
		return 0, 0, 0, false
	}
	wall := func(a, b time.Time) float64 { return b.Round(0).Sub(a.Round(0)).Seconds() }
	least = min(l.Asked.Sub(before.Answered).Seconds(), wall(before.Answered, l.Asked))
	most = max(l.Answered.Sub(before.Asked).Seconds(), wall(before.Asked, l.Answered))
	return l.Uptime - before.Uptime, max(0, least), most, true
}

// LogDelta is what a kernel said between two moments.
type LogDelta struct {
	New         []string  // new lines, oldest first
	Signs       []LogSign // those of them that complain
	TaintBefore string
	TaintAfter  string
	Notes       []string // what makes the delta incomplete
}

const logScript = `up=
read -r up rest </proc/uptime
echo "$up"
cat /proc/sys/kernel/tainted 2>/dev/null || echo
dmesg 2>&1`

// ReadKernelLog reads the log and the taint with one exec; nothing is cleared.
// Its error is the link's; a log that may not be read is Missing.
func ReadKernelLog(ctx context.Context, conn Conn) (KernelLog, error) {
	var out bytes.Buffer
	asked := time.Now()
	e, err := conn.Run(ctx, Cmd{Argv: []string{"sh", "-c", logScript}, Stdout: limited(&out, maxProbe)})
	if err != nil {
		return KernelLog{}, err
	}
	up, rest, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	taint, text, _ := bytes.Cut(rest, []byte("\n"))
	l := KernelLog{Taint: strings.TrimSpace(string(taint)), Text: text, Asked: asked, Answered: time.Now()}
	if s, err := strconv.ParseFloat(string(bytes.TrimSpace(up)), 64); err == nil && s > 0 && s < 1e10 {
		l.Uptime = s
	}
	if !e.OK() || len(bytes.TrimSpace(text)) == 0 {
		l.Missing = strings.TrimSpace(fmt.Sprintf("dmesg %s: %s", e, firstLine(text)))
		l.Text = nil
	}
	return l, nil
}

// Since compares a log with an earlier one of the same boot. New lines are told
// by their times, so a log that overflowed in between invents nothing.
func (l KernelLog) Since(before KernelLog) LogDelta {
	d := LogDelta{TaintBefore: before.Taint, TaintAfter: l.Taint}
	for _, k := range []KernelLog{before, l} {
		if k.Missing != "" {
			d.Notes = append(d.Notes, "kernel log: n/a ("+k.Missing+")")
			return d
		}
	}
	old, now := logLines(before.Text), logLines(l.Text)
	if len(old) > 0 && len(now) > 0 && old[0] != now[0] {
		d.Notes = append(d.Notes, "the begin of the kernel log was overwritten")
	}
	d.New = newLines(old, now)
	d.Signs = LogSigns(d.New)
	return d
}

func logLines(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// newLines returns the lines of now that are later than the last of old. Lines
// of the same time are new when old has not got them; without times, what
// follows the last line of old is new.
func newLines(old, now []string) []string {
	last, timed, have := -1.0, false, map[string]bool{}
	for _, line := range old {
		if s, _, ok := kernelTime(line); ok {
			last, timed = max(last, s), true
		}
		have[line] = true
	}
	if len(old) > 0 && !timed {
		for i := len(now) - 1; i >= 0; i-- {
			if now[i] == old[len(old)-1] {
				return now[i+1:]
			}
		}
		return now
	}
	var out []string
	fresh := false // a continuation line without a time belongs to the one before
	for _, line := range now {
		if s, _, ok := kernelTime(line); ok {
			fresh = s > last || s == last && !have[line]
		}
		if fresh {
			out = append(out, line)
		}
	}
	return out
}

// firstComplaint returns the first line of a kernel log that complains.
func firstComplaint(log []byte) string {
	for line := range strings.Lines(string(log)) {
		if complains(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// complains is badSign, and a WARNING at the head of a message.
func complains(line string) bool {
	if badSign(line) != "" {
		return true
	}
	_, msg, _ := kernelTime(line)
	return strings.HasPrefix(msg, "WARNING: ")
}
