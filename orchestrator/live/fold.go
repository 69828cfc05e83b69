package live

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Words breaks a line at its spaces, and nowhere else, so that its parts are at most
// width columns wide. A word that is wider stands alone.
func Words(line string, width int) []string {
	var out []string
	words := strings.Split(line, " ")
	now := words[0]
	for _, w := range words[1:] {
		switch {
		case strings.TrimSpace(now) == "" && len(out) > 0: // spaces at the break
			now = w
		case strings.TrimSpace(now) != "" && ansi.StringWidth(now)+1+ansi.StringWidth(w) > width:
			out = append(out, strings.TrimRight(now, " "))
			now = w
		default:
			now += " " + w
		}
	}
	return append(out, now)
}

// Fold breaks a line between words so that it is at most width columns wide; its
// later lines begin with indent. A command in it, of kernsweep or ssh, stays whole:
// half of a command that was copied would be another command.
func Fold(line string, width int, indent string) string {
	if ansi.StringWidth(line) <= width {
		return line
	}
	const space = "\u00a0"
	width = max(20, width-len(indent))
	whole := regexp.MustCompile("(?:kernsweep|ssh -i)(?: [^\\s,;()`]+){1,6}").ReplaceAllStringFunc(line, func(s string) string {
		if ansi.StringWidth(s) > width {
			return s
		}
		return strings.ReplaceAll(s, " ", space)
	})
	folded := strings.Join(Words(whole, width), "\n"+indent)
	return strings.ReplaceAll(folded, space, " ")
}
