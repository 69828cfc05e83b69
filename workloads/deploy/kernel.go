package deploy

import (
	"fmt"
	"strconv"
	"strings"
)

// The Go release that builds the agent needs this kernel on every architecture.
const needMajor, needMinor = 3, 2

// TooOld says why a kernel cannot run the Go agent, "" when it can, or when
// release is unknown: then the self-test decides. Release is uname -r.
func TooOld(release string) string {
	major, rest := number(release)
	minor := 0
	if strings.HasPrefix(rest, ".") {
		minor, _ = number(rest[1:])
	}
	if major < 0 || major > needMajor || major == needMajor && minor >= needMinor {
		return ""
	}
	version := release[:strings.IndexFunc(release+"-", func(r rune) bool { return r != '.' && (r < '0' || r > '9') })]
	return fmt.Sprintf("kernel %s is older than %d.%d, which the Go agent needs", version, needMajor, needMinor)
}

// number reads the digits s begins with; -1 when there are none.
func number(s string) (int, string) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return -1, s
	}
	return n, s[end:]
}
