// Package timefmt reads what the time commands print: GNU time (default, -p,
// -v), BSD time, the keyword of bash, ksh, mksh and zsh, the builtin of csh and
// tcsh, BusyBox, and the layout of POSIX. It
// accepts a decimal comma where that is the only reading, and refuses to guess
// where it is not.
package timefmt

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Times of one command, in seconds.
type Times struct {
	Elapsed, User, System float64
	Resolution            float64 // step of the coarsest of the three, s
	Status                int     // exit status that GNU time tells of; 0 when it does not
	Signal                int     // signal that GNU time tells of
}

// Failed says how the command failed, "" when the text does not say that it did.
func (t Times) Failed() string {
	switch {
	case t.Signal != 0:
		return fmt.Sprintf("the command was killed by signal %d", t.Signal)
	case t.Status != 0:
		return fmt.Sprintf("the command exited with status %d", t.Status)
	}
	return ""
}

var (
	keyword  = regexp.MustCompile(`^(real|user|sys)\s+(\S.*)$`)                        // POSIX, bash, busybox
	gnu      = regexp.MustCompile(`^(\S+?)user\s+(\S+?)system\s+(\S+?)elapsed\b`)      // GNU time, dash
	spread   = regexp.MustCompile(`^real\s+(\d\S*)\s+user\s+(\d\S*)\s+sys\s+(\d\S*)$`) // POSIX on one line
	bsd      = regexp.MustCompile(`^(\d\S*)\s+real\s+(\d\S*)\s+user\s+(\d\S*)\s+sys`)  // BSD time, mksh
	zsh      = regexp.MustCompile(`(?:^|\s)(\d\S*)s user\s+(\d\S*)s system\s+\d+% cpu\s+(\d\S*) total$`)
	csh      = regexp.MustCompile(`^(\d\S*)u\s+(\d\S*)s\s+(\d+:\d\S*)\s+\d[\d.,]*%`)    // csh, tcsh
	verbose  = regexp.MustCompile(`^(User|System|Elapsed)\b.*\btime \([^)]*\): (\S+)$`) // GNU time -v
	nonzero  = regexp.MustCompile(`^Command exited with non-zero status (\d+)$`)        // GNU time
	signal   = regexp.MustCompile(`^Command terminated by signal (\d+)$`)               // GNU time
	exitLine = regexp.MustCompile(`^Exit status: (\d+)$`)                               // GNU time -v
	minutes  = regexp.MustCompile(`^(?:(\d+)h ?)?(\d+)m ?(\d{1,2})(?:[.,](\d+))?s$`)    // 2m3.407s, 2m 3.40s
	colons   = regexp.MustCompile(`^(?:(\d+):)?(\d+):(\d\d)(?:[.,](\d+))?$`)            // 2:03.40, 2:03:17
	plain    = regexp.MustCompile(`^(\d+)(?:([.,])(\d+))?s?$`)                          // 123.40
)

// Read finds the times in text, which may hold other output before them: the
// last of each counts. It fails when one of the three is not there or cannot be
// placed; the error quotes the text.
func Read(text string) (Times, error) {
	t := Times{}
	found := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		maps.Copy(found, parts(line))
		t.failure(line)
	}
	for _, c := range []struct {
		name string
		to   *float64
	}{{"real", &t.Elapsed}, {"user", &t.User}, {"sys", &t.System}} {
		line, ok := found[c.name]
		if !ok {
			return Times{}, fmt.Errorf("no %s time in %s", c.name, quote(text))
		}
		seconds, step, err := Seconds(strings.TrimSpace(strings.TrimPrefix(line, c.name)))
		if err != nil {
			return Times{}, fmt.Errorf("%w in %q", err, line)
		}
		*c.to, t.Resolution = seconds, max(t.Resolution, step)
	}
	return t, nil
}

// Says are the times that a line tells of: real, user, sys.
func Says(line string) []string { return slices.Sorted(maps.Keys(parts(strings.TrimSpace(line)))) }

// parts are the times of a line, each as "real 2m3.4s".
func parts(line string) map[string]string {
	for _, x := range []struct {
		layout *regexp.Regexp
		order  [3]string
	}{
		{spread, [3]string{"real", "user", "sys"}}, {bsd, [3]string{"real", "user", "sys"}},
		{gnu, [3]string{"user", "sys", "real"}}, {zsh, [3]string{"user", "sys", "real"}}, {csh, [3]string{"user", "sys", "real"}},
	} {
		if m := x.layout.FindStringSubmatch(line); m != nil {
			all := map[string]string{}
			for i, name := range x.order {
				all[name] = name + " " + m[i+1]
			}
			return all
		}
	}
	if m := keyword.FindStringSubmatch(line); m != nil && looksTime(m[2]) {
		return map[string]string{m[1]: line}
	}
	if m := verbose.FindStringSubmatch(line); m != nil {
		name := map[string]string{"User": "user", "System": "sys", "Elapsed": "real"}[m[1]]
		return map[string]string{name: name + " " + m[2]}
	}
	return nil
}

func (t *Times) failure(line string) {
	for _, c := range []struct {
		pattern *regexp.Regexp
		to      *int
	}{{nonzero, &t.Status}, {exitLine, &t.Status}, {signal, &t.Signal}} {
		if m := c.pattern.FindStringSubmatch(line); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				*c.to = n
			}
		}
	}
}

// looksTime tells a time from prose that begins with "user".
func looksTime(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

var errAmbiguous = errors.New("ambiguous: the comma may be a decimal or a thousands separator")

// Seconds reads one time: 2m3.407s, 2m 3.40s, 2:03.40 (minutes), 2:03:17
// (hours), 123.40. Step is what the last digit is worth. A comma counts as a
// decimal one unless three digits follow it in a plain number.
func Seconds(s string) (seconds, step float64, err error) {
	hours, mins, secs, frac := "", "", "", ""
	if m := minutes.FindStringSubmatch(s); m != nil {
		hours, mins, secs, frac = m[1], m[2], m[3], m[4]
	} else if m := colons.FindStringSubmatch(s); m != nil {
		hours, mins, secs, frac = m[1], m[2], m[3], m[4]
	} else if m := plain.FindStringSubmatch(s); m != nil {
		if m[2] == "," && len(m[3]) == 3 {
			return 0, 0, errAmbiguous
		}
		secs, frac = m[1], m[3]
	} else {
		return 0, 0, fmt.Errorf("%q is no time", s)
	}
	for _, part := range []struct {
		text  string
		worth float64
	}{{hours, 3600}, {mins, 60}, {secs + "." + frac, 1}} {
		if part.text == "" {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSuffix(part.text, "."), 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%q is no time: %w", s, err)
		}
		seconds += f * part.worth
	}
	if mins != "" && (len(secs) > 2 || secs >= "60" && len(secs) == 2) || hours != "" && (len(mins) > 2 || mins >= "60" && len(mins) == 2) {
		return 0, 0, fmt.Errorf("%q is no time: more than 59 minutes or seconds beside a larger unit", s)
	}
	scale := math.Pow(10, float64(len(frac)))
	if exact := math.Round(seconds * scale); exact < 1<<53 { // 58.02 + 60 is not quite 118.02
		seconds = exact / scale
	}
	return seconds, 1 / scale, nil
}

func quote(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return strconv.Quote(text)
}
