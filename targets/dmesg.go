package targets

import "strings"

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
