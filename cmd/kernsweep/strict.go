package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// strict makes every wrong command line an error with status 2 that says what
// would be right. The library's own groups and its help print something and
// exit with 0.
func strict(root *cobra.Command) {
	root.SetHelpCommand(helpCmd(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range all(root) {
		if c.HasSubCommands() && !c.Runnable() {
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			c.Args = cobra.NoArgs
		}
		if old := c.Args; old != nil {
			c.Args = func(c *cobra.Command, args []string) error {
				if err := old(c, args); err != nil {
					return usage(wrongArgs(c, args, err))
				}
				return nil
			}
		}
	}
}

// all lists c and the commands below it.
func all(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		list = append(list, all(sub)...)
	}
	return list
}

// wrongArgs says what a command takes, or which command may be meant.
func wrongArgs(c *cobra.Command, args []string, err error) error {
	switch {
	case c.HasAvailableSubCommands() && len(args) > 0:
		text := fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath())
		if do := meantBy(args[0]); do != "" && !c.HasParent() {
			return fmt.Errorf("%s; did you mean %s?", text, do)
		}
		if hint := meantByTarget(args[0]); hint != "" && c.Name() == "target" {
			return fmt.Errorf("%s; %s", text, hint)
		}
		c.SuggestionsMinimumDistance = 2 // letters
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("%s; did you mean %s?", text, strings.Join(near, " or "))
		}
		return fmt.Errorf("%s; %s --help lists them", text, c.CommandPath())
	case len(args) == 0 || tooFew(err):
		return fmt.Errorf("%s needs more; usage: %s", c.CommandPath(), c.UseLine())
	case strings.Contains(err.Error(), "arg(s)") || strings.HasPrefix(err.Error(), "unknown command"):
		return fmt.Errorf("%s does not take %q; usage: %s", c.CommandPath(), strings.Join(args, " "), c.UseLine())
	}
	return err
}

// tooFew reads cobra's message.
func tooFew(err error) bool {
	for _, form := range []string{"accepts %d arg(s), received %d", "requires at least %d arg(s), only received %d"} {
		var want, got int
		if n, _ := fmt.Sscanf(err.Error(), form, &want, &got); n == 2 && got < want {
			return true
		}
	}
	return false
}

func helpCmd(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage(wrongArgs(root, args, errors.New("unknown topic")))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// checked remembers the first error of writing, which commands that print line
// by line do not look at.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("standard output: %w", err)
	}
	return n, err
}

// wrongFlag says where the flags of a command are listed.
func wrongFlag(c *cobra.Command, err error) error {
	if !strings.HasPrefix(err.Error(), "unknown ") {
		return err
	}
	return fmt.Errorf("%w; %s --help lists them", err, c.CommandPath())
}
