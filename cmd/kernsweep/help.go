package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// partOfDay is a part of a day with kernsweep, and what helps then.
type partOfDay struct {
	title string
	rows  []usedFor
}

// usedFor is a line of the overview: commands that belong together.
type usedFor struct{ commands, what string }

// uses is the order in which the commands are shown. Every command is in one row.
func uses() []partOfDay {
	return []partOfDay{
		{"Tonight", []usedFor{
			{"plan", "what the night will be, and what stands against it"},
			{"run", "run a sweep; it says when it is safe to leave"},
			{"watch", "the run as it goes on, live"},
			{"lane stop", "pause, skip or give up a lane; stop the run"},
		}},
		{"The morning", []usedFor{
			{"status", "how it ended, what needs you, the command for it"},
			{"report open log", "what was measured; the story of one target"},
			{"compare", "with an earlier run, or over many"},
			{"rerun resume", "measure again what failed; go on after a crash"},
			{"serve", "all of it as a web page"},
		}},
		{"By hand", []usedFor{
			{"exec", "a command on one target or on many"},
			{"push pull", "copy files there and back"},
			{"shell console", "log in; watch the console, or type on it"},
			{"boot power", "boot a kernel and prove it; switch the power"},
		}},
		{"A new device", []usedFor{
			{"target", "add, probe, doctor: its block, and a rehearsal"},
			{"validate fmt", "check testbeds.hcl; lay it out"},
			{"testbeds schema", "every block and attribute; the same for editors"},
		}},
		{"Other", []usedFor{
			{"import", "other people's logs, for report and compare"},
			{"prune", "remove old runs and images"},
			{"notify", "try the messages of a sweep"},
			{"completion man", "completion for a shell; man pages"},
			{"help version", "help COMMAND has flags, examples, exit statuses"},
		}},
	}
}

// overview groups the commands by their use and makes the root's help an overview
// of them that fits on a terminal.
func overview(root *cobra.Command) {
	for _, u := range uses() {
		root.AddGroup(&cobra.Group{ID: u.title, Title: u.title + ":"})
		for _, r := range u.rows {
			for _, name := range strings.Fields(r.commands) {
				if c := child(root, name); c != nil {
					c.GroupID = u.title
				}
			}
		}
	}
	if c := child(root, "completion"); c != nil {
		completionHelp(c)
	}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := overviewText(root)
		if c != root {
			text = helpText(c)
		}
		fmt.Fprint(c.OutOrStdout(), text)
	})
}

func overviewText(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", root.Short)
	for _, u := range uses() {
		title := u.title
		for _, r := range u.rows {
			var there []string
			for _, name := range strings.Fields(r.commands) {
				if child(root, name) != nil {
					there = append(there, name)
				}
			}
			if len(there) > 0 {
				fmt.Fprintf(&b, "%-13s %-15s %s\n", title, strings.Join(there, " "), r.what)
				title = ""
			}
		}
	}
	b.WriteString(`
Everywhere: -f FILE|DIR (testbeds.hcl), --runs DIR (runs), --var name=value,
            --json, --no-color, -v; kernsweep help COMMAND says what they do.
`)
	return b.String()
}

func child(root *cobra.Command, name string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// completionHelp says for each shell where its script goes, and no more.
func completionHelp(c *cobra.Command) {
	for shell, path := range map[string]string{
		"bash": "~/.local/share/bash-completion/completions/kernsweep",
		"zsh":  "~/.zfunc/_kernsweep   # with fpath+=~/.zfunc before compinit in ~/.zshrc",
		"fish": "~/.config/fish/completions/kernsweep.fish",
	} {
		if sub := child(c, shell); sub != nil {
			sub.Short = "Print the completion script for " + shell
			sub.Long = sub.Short + ". A new shell then completes commands, flags, and the names of targets,\nkernels, sweeps, workloads and runs."
			sub.Example = "  kernsweep completion " + shell + " >" + path
		}
	}
	bashAlone(child(c, "bash"))
	if sub := child(c, "powershell"); sub != nil {
		c.RemoveCommand(sub) // kernsweep is not built for Windows
	}
}
