package importer

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"kernsweep/workloads"
)

// absent is why a cell of a table has no figure, "" when it has one.
func absent(s string) string {
	switch strings.ToLower(s) {
	case "":
		return "the file leaves it empty"
	case "-", "--", "na", "n/a", "nan", "-nan", "none", "null", "nil", ".", "?", "inf", "+inf", "-inf", "infinity":
		return fmt.Sprintf("the file says %q", s)
	}
	return ""
}

// errWord is about text in the place of a number.
var errWord = errors.New("no number")

// number reads a figure and the step of its last digit. A comma is a decimal one
// unless exactly three digits follow it: nothing is guessed.
func number(s string) (v, step float64, err error) {
	digits := strings.TrimRight(strings.TrimSuffix(s, "%"), " \u00a0\u202f")
	if rest, ok := strings.CutPrefix(digits, "\u2212"); ok { // a typographer's minus
		digits = "-" + rest
	}
	if i := strings.IndexByte(digits, ','); i >= 0 {
		switch {
		case strings.ContainsAny(digits[i+1:], ",."):
			return 0, 0, fmt.Errorf("%s has separators between its digits: write it without", quote(s))
		case len(digits)-i-1 == 3 && i > 0 && i <= 4:
			return 0, 0, fmt.Errorf("%s is ambiguous: its comma may be a decimal or a thousands separator", quote(s))
		case strings.IndexByte(digits[:i], '.') >= 0:
			return 0, 0, fmt.Errorf("%s has separators between its digits: write it without", quote(s))
		}
		digits = digits[:i] + "." + digits[i+1:]
	}
	if !plainNumber(digits) {
		return 0, 0, fmt.Errorf("%s is %w", quote(s), errWord)
	}
	v, err = strconv.ParseFloat(digits, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, 0, fmt.Errorf("%s is too large a number", quote(s))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s is no number", quote(s))
	}
	mantissa, exponent, power := digits, 0, false
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		mantissa, power = digits[:i], true
		exponent, _ = strconv.Atoi(digits[i+1:]) // it was a number above
	}
	if i := strings.IndexByte(mantissa, '.'); i >= 0 {
		exponent -= len(mantissa) - i - 1
	} else if !power && exponent == 0 {
		return v, 1, nil
	}
	if step = math.Pow(10, float64(exponent)); math.IsInf(step, 0) || exponent < -12 {
		step = 0
	}
	return v, step, nil
}

// plainNumber leaves out what strconv reads beside decimal numbers.
func plainNumber(s string) bool {
	some := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			some = true
		case c == '+' || c == '-' || c == '.':
		case (c == 'e' || c == 'E') && some:
		default:
			return false
		}
	}
	return some
}

// metricByName makes a metric of a column's name: a known unit at its end is the
// unit, as in user_s, max_lat_ms, runtime_rel.
func metricByName(name string) workloads.Metric {
	i := strings.LastIndexAny(name, "_ .(")
	if i > 0 && i < len(name)-1 {
		if u, ok := unitBySuffix(strings.TrimSuffix(name[i+1:], ")")); ok {
			base := strings.TrimRight(name[:i], "_ .(")
			return workloads.Metric{Name: base, Unit: u, Better: direction(base, u)}
		}
	}
	if strings.EqualFold(name, "seconds") {
		return workloads.Metric{Name: name, Unit: "s", Better: workloads.LowerIsBetter}
	}
	return workloads.Metric{Name: name, Better: direction(name, "")}
}

func unitBySuffix(s string) (string, bool) {
	switch strings.ToLower(s) {
	case "s", "sec", "secs", "seconds":
		return "s", true
	case "ms", "msec":
		return "ms", true
	case "us", "usec":
		return "us", true
	case "ns", "nsec":
		return "ns", true
	case "pct", "percent", "%":
		return "%", true
	case "rel":
		return "% of the baseline", true
	case "bps":
		return "bit/s", true
	case "kbps", "kbit/s", "kbits":
		return "kbit/s", true
	case "mbps", "mbit/s", "mbits", "mbit":
		return "Mbit/s", true
	case "gbps", "gbit/s":
		return "Gbit/s", true
	case "mb/s", "mbytes/s":
		return "MB/s", true
	case "kb":
		return "kB", true
	case "mb":
		return "MB", true
	case "ops", "ops/s":
		return "ops/s", true
	case "hz", "per_s", "1/s":
		return "1/s", true
	case "count":
		return "count", true
	}
	return "", false
}

// direction of a metric by its unit and its name; what cannot be told is
// informative, and never compared.
func direction(name, unit string) workloads.Direction {
	low := strings.ToLower(name)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	u := strings.ToLower(unit)
	switch {
	case u == "s" || u == "ms" || u == "us" || u == "ns" || u == "µs" || u == "min" || strings.HasPrefix(u, "% of the base"):
		return workloads.LowerIsBetter
	case strings.HasSuffix(u, "bit/s") || strings.HasSuffix(u, "b/s") || strings.HasPrefix(u, "ops") || u == "fps":
		return workloads.HigherIsBetter
	case u == "" && has("throughput", "bandwidth", "score", "ops", "fps", "iops"):
		return workloads.HigherIsBetter
	case u == "" && has("latency", "runtime", "elapsed", "duration", "time", "seconds", "wall", "loss", "jitter"):
		return workloads.LowerIsBetter
	}
	return workloads.Informative
}

// Direction reads "lower", "higher" or "info".
func Direction(s string) (workloads.Direction, error) {
	switch d := workloads.Direction(strings.ToLower(strings.TrimSpace(s))); d {
	case workloads.HigherIsBetter, workloads.LowerIsBetter, workloads.Informative:
		return d, nil
	}
	return "", fmt.Errorf("%s is no direction: write lower, higher or info", quote(s))
}
