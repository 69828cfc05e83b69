package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kernsweep/orchestrator/config"
)

const dateVar = "SOURCE_DATE_EPOCH" // reproducible-builds.org: seconds since 1970

func (a *app) manCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages into a folder: one for each command, and testbeds.hcl(5)",
		Long: `Write the man pages into a folder, in the sections man1 and man5: one for each command, and testbeds.hcl(5).
They have the date that SOURCE_DATE_EPOCH gives, else today's.`,
		Example: "  kernsweep man ~/.local/share/man   # then: man kernsweep-run",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			date := time.Now()
			if s, ok := a.env(dateVar); ok && s != "" {
				n, err := strconv.ParseInt(s, 10, 64)
				if err != nil {
					return usage(fmt.Errorf("%s=%s: want seconds since 1970", dateVar, s))
				}
				date = time.Unix(n, 0)
			}
			return writeManual(c.Root(), args[0], date.UTC().Format(time.DateOnly))
		},
	}
}

// writeManual writes a page for each command that help shows, and that of the file.
func writeManual(root *cobra.Command, dir, date string) error {
	for _, section := range []string{"man1", "man5"} {
		if err := os.MkdirAll(filepath.Join(dir, section), 0o777); err != nil {
			return err
		}
	}
	var errs []error
	for _, c := range all(root) {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() || c == root {
			errs = append(errs, os.WriteFile(filepath.Join(dir, "man1", pageName(c)+".1"), manPage(c, date), 0o666))
		}
	}
	return errors.Join(append(errs, os.WriteFile(filepath.Join(dir, "man5", "testbeds.hcl.5"), filePage(date), 0o666))...)
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the page of a command, in the macros of man(7).
func manPage(c *cobra.Command, date string) []byte {
	p := newManText(pageName(c), "1", date, c.Short)
	p.section("SYNOPSIS")
	if c.Runnable() && !c.HasAvailableSubCommands() {
		p.macro("B", c.CommandPath())
		p.text(strings.TrimSpace(strings.TrimPrefix(c.UseLine(), c.CommandPath())))
	} else {
		p.macro("B", c.CommandPath())
		p.text("[flags] COMMAND …")
	}
	p.section("DESCRIPTION")
	if c.Long != "" {
		p.prose(c.Long)
	} else {
		p.text(c.Short + ".")
	}
	p.commands(c)
	if c.LocalFlags().HasAvailableFlags() {
		p.section("OPTIONS")
		p.flags(c.LocalFlags())
	}
	if c.Example != "" {
		p.section("EXAMPLES")
		p.verbatim(c.Example)
	}
	if !c.HasParent() {
		p.root()
	}
	p.section("SEE ALSO")
	p.seeAlso(c)
	return p.bytes()
}

// commands lists what is below a command, the root's by their use.
func (p *manText) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	p.section("COMMANDS")
	list := func(group string) {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == group {
				p.item(pageName(sub)+"(1)", sub.Short)
			}
		}
	}
	for _, g := range c.Groups() {
		p.subsection(strings.TrimSuffix(g.Title, ":"))
		list(g.ID)
	}
	if len(c.Groups()) == 0 {
		list("")
	}
}

func (p *manText) flags(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + strings.ToUpper(strings.TrimSuffix(value, "Array"))
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += " (default " + f.DefValue + ")"
		}
		p.item(name, usage)
	})
}

// root is what only the page of kernsweep itself says.
func (p *manText) root() {
	p.section("EXIT STATUS")
	for _, s := range [][2]string{
		{"0", "all trials are well, or the command did what was asked"},
		{"1", "a kernel or a workload failed, or a comparison shows a regression"},
		{"2", "wrong usage or configuration; nothing was contacted"},
		{"3", "infrastructure: a target was lost, or the controller has trouble of its own"},
		{"4", "inconclusive (compare)"},
		{"130", "interrupted"},
	} {
		p.item(s[0], s[1])
	}
	p.section("ENVIRONMENT")
	p.item("KERNSWEEP_VAR_name", "the value of a variable of the configuration, as --var gives it")
	p.item("KERNSWEEP_LEASES", "the folder of the leases, by which several users and controllers share targets")
	p.section("FILES")
	p.item("testbeds.hcl", "the configuration; see testbeds.hcl(5)")
	p.item("runs/", "the run directories")
	p.item("store/", "beside runs: the images that they booted, by their hash")
}

func (p *manText) seeAlso(c *cobra.Command) {
	var list []string
	if c.HasParent() {
		list = append(list, pageName(c.Parent())+"(1)")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			list = append(list, pageName(sub)+"(1)")
		}
	}
	p.references(append(list, "testbeds.hcl(5)"))
}

// filePage is testbeds.hcl(5), of the descriptions that the decoder uses.
func filePage(date string) []byte {
	p := newManText("testbeds.hcl", "5", date, "the lab that kernsweep runs its sweeps over")
	p.section("DESCRIPTION")
	p.prose(config.Introduction)
	for _, b := range config.Blocks() {
		p.section(b.Heading())
		if b.Doc != "" {
			p.text(b.Doc + ".")
		}
		if b.Example != "" {
			p.verbatim(b.Example)
		}
		for _, at := range b.Attributes {
			need := ""
			if at.Required {
				need = "required; "
			}
			p.item(at.Name+" ("+at.Type+")", need+at.Doc)
		}
		for _, name := range b.Inner {
			p.item(name+" { … }", "a block; see its section")
		}
	}
	p.section("FUNCTIONS")
	p.text(strings.Join(config.Functions(), ", "))
	p.section("SEE ALSO")
	p.references([]string{"kernsweep(1)", "kernsweep-validate(1)", "kernsweep-fmt(1)"})
	return p.bytes()
}
