package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// Oldest kernel that Go programs run on (Go 1.24 release notes, "Linux").
const oldestMajor, oldestMinor = 3, 2

// tooOldForGo says why a release glob names a kernel that is too old for a Go
// program, "" when it does not or cannot be told.
func tooOldForGo(release string) string {
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return ""
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return ""
	}
	digits := strings.TrimRight(parts[1], "*?")
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	minor, err := strconv.Atoi(digits)
	if err != nil {
		return ""
	}
	if major > oldestMajor || major == oldestMajor && minor >= oldestMinor {
		return ""
	}
	return fmt.Sprintf("%s is older than %d.%d", strings.TrimRight(release, "*"), oldestMajor, oldestMinor)
}
