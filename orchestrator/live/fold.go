package live

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Fold breaks a line between words so that it is at most width columns wide; its
// later lines begin with indent. A command in it, of kernsweep or ssh, stays whole: half of a
// command that was copied would be another command.
func Fold(line string, width int, indent string) string {
	if ansi.StringWidth(line) <= width {
		return line
	}
	const space = "\u00a0"
	whole := regexp.MustCompile("(?:kernsweep|ssh -i)(?: [^\\s,;()`]+){1,6}").ReplaceAllStringFunc(line, func(s string) string {
		if ansi.StringWidth(s) > width-len(indent) {
			return s
		}
		return strings.ReplaceAll(s, " ", space)
	})
	folded := strings.Split(ansi.Wordwrap(whole, max(20, width-len(indent)), ""), "\n")
	for i, l := range folded {
		if i < len(folded)-1 { // a question ends with a space
			l = strings.TrimRight(l, " ")
		}
		folded[i] = strings.ReplaceAll(l, space, " ")
	}
	return strings.Join(folded, "\n"+indent)
}
