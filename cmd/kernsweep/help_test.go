package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

func helpRoot() *cobra.Command { return new(app).root() }

// shown says that a command is one that people type, and not the library's.
func shown(c *cobra.Command) bool { return !c.Hidden && c.Name() != "help" }

func TestEveryCommandHasHelp(t *testing.T) {
	root := helpRoot()
	for _, c := range all(root) {
		if !shown(c) {
			continue
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.Contains(c.Short, "\n") {
			t.Errorf("%s: its short help is one line without a full stop, not %q", c.CommandPath(), c.Short)
		}
		if c == root || c.HasSubCommands() || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
			continue
		}
		if err := examples(root, c); err != "" {
			t.Errorf("%s: %s", c.CommandPath(), err)
		}
	}
}

// examples checks that each line of an example names a command with flags that it
// has, and the number of arguments that it takes.
func examples(root, c *cobra.Command) string {
	found := false
	for line := range strings.SplitSeq(c.Example, "\n") {
		_, command, ok := strings.Cut(line, "kernsweep ")
		if !ok {
			continue
		}
		if before, _, ok := strings.Cut(command, " | "); ok {
			command = before
		}
		words, ok := shellWords(command)
		if !ok {
			return "its example cannot be taken apart: " + line
		}
		got, rest, err := helpRoot().Find(words)
		if err != nil {
			return "its example does not work: " + err.Error()
		}
		found = found || got.CommandPath() == c.CommandPath()
		if got.DisableFlagParsing {
			continue
		}
		if err := got.ParseFlags(rest); err != nil {
			return "its example does not work: " + err.Error()
		}
		if err := got.ValidateArgs(got.Flags().Args()); err != nil {
			return "its example does not work: " + err.Error()
		}
	}
	if !found {
		return "its example is of other commands"
	}
	return ""
}

// shellWords takes a command line apart as a shell does that expands nothing; what
// is behind # or > is no argument.
func shellWords(line string) (words []string, ok bool) {
	var quote rune
	word, in := "", false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == '#' && !in || r == '>' || r == '&' && !in:
			return words, true
		case r == ' ':
			if in {
				words = append(words, word)
			}
			word, in = "", false
		default:
			word, in = word+string(r), true
		}
	}
	return words, quote == 0
}

func TestOverviewNamesEveryCommandOnce(t *testing.T) {
	root := helpRoot()
	count := map[string]int{}
	for _, u := range uses() {
		for _, r := range u.rows {
			for _, name := range strings.Fields(r.commands) {
				count[name]++
			}
		}
	}
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		if n := count[c.Name()]; n != 1 {
			t.Errorf("kernsweep %s is in %d rows of the overview (uses in help.go), not in one", c.Name(), n)
		}
		if c.GroupID == "" {
			t.Errorf("kernsweep %s has no group", c.Name())
		}
	}
}

// Help of every command fits, but for command lines, which are copied.
func TestHelpFitsOnATerminal(t *testing.T) {
	for _, c := range all(helpRoot()) {
		if c.Parent() == nil {
			continue
		}
		text := helpText(c)
		for l := range strings.SplitSeq(text, "\n") {
			if ansi.StringWidth(l) > 80 && !strings.Contains(l, "kernsweep ") {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), ansi.StringWidth(l), l)
			}
		}
		words := c.Long
		if words == "" {
			words = c.Short
		}
		if got := strings.Fields(text); !slices.Equal(got[:len(strings.Fields(words))], strings.Fields(words)) {
			t.Errorf("%s: other words than its own:\n%s", c.CommandPath(), text)
		}
	}
}

func TestOverviewFitsOnATerminal(t *testing.T) {
	text := overviewText(helpRoot())
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > 28 {
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
	for _, l := range lines {
		if len(l) > 80 {
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
}
