package main

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"kernsweep/orchestrator/live"
)

const helpWidth = 80 // columns of the lowest usual terminal

// helpText is what help says of a command, no wider than a terminal. Examples and
// other command lines stay whole: they are to be copied.
func helpText(c *cobra.Command) string {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	text = filled(strings.TrimRight(text, " \n")) + "\n\n"
	if c.Runnable() || c.HasSubCommands() {
		text += c.UsageString()
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = hung(l)
	}
	return strings.Join(lines, "\n")
}

// filled fills the paragraphs that have a line too many columns wide.
func filled(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		wide, plain := false, true
		for l := range strings.SplitSeq(p, "\n") {
			wide = wide || ansi.StringWidth(l) > helpWidth
			plain = plain && !strings.HasPrefix(l, " ") && !strings.Contains(l, "  ")
		}
		if wide && plain {
			paragraphs[i] = strings.Join(live.Words(strings.ReplaceAll(p, "\n", " "), helpWidth), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// hung folds a line that is too wide; what it explains stays to the left.
func hung(line string) string {
	if ansi.StringWidth(line) <= helpWidth || strings.HasPrefix(strings.TrimSpace(line), "kernsweep ") {
		return line
	}
	left := regexp.MustCompile(`^ *\S.*?  +`).FindString(line)
	if left == "" || len(left) > helpWidth/2 {
		left = regexp.MustCompile(`^ *`).FindString(line)
	}
	indent := strings.Repeat(" ", ansi.StringWidth(left))
	return left + strings.Join(live.Words(line[len(left):], helpWidth-len(indent)), "\n"+indent)
}
