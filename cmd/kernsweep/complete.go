package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/importer"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

// words gives the names that may stand in a place of a command line.
type words func() []string

// completions makes the names of runs, sweeps, targets, kernels and workloads
// complete in the shell. A configuration that cannot be read completes nothing.
func (a *app) completions(root *cobra.Command) {
	runs := func() []string {
		names, err := results.List(a.runs)
		if err != nil || len(names) == 0 {
			return nil
		}
		slices.Reverse(names) // the newest is the likeliest
		return append([]string{"latest"}, names...)
	}
	targets := a.labWords(func(l *config.Lab) []string { return named(l.Targets, func(t *config.Target) string { return t.Name }) })
	kernels := a.labWords(func(l *config.Lab) []string { return named(l.Kernels, func(k *config.Kernel) string { return k.Name }) })
	sweeps := a.labWords(func(l *config.Lab) []string { return named(l.Sweeps, func(s *config.Sweep) string { return s.Name }) })
	workloads := a.labWords(func(l *config.Lab) []string { return named(l.Workloads, (*config.Workload).ID) })
	fixed := func(list ...string) words { return func() []string { return list } }
	// By the command's path without "kernsweep".
	places := map[string][]words{
		"plan": {sweeps}, "run": {sweeps}, "resume": {runs}, "rerun": {runs}, "report": {runs}, "status": {runs}, "stop": {runs}, "watch": {runs}, "open": {runs}, "log": {targets, runs},
		"exec": {targets}, "shell": {targets}, "console": {targets}, "boot": {targets, kernels}, "power": {targets, fixed("on", "off", "cycle")},
		"target add": {}, "target probe": {targets}, "target doctor": {targets}, "notify test": {sweeps}, "prune": {}, "serve": {}, "compare": {runs, runs}, "validate": {}, "lane": {a.laneWords, laneActions}, "version": {}, "target list": {},
	}
	classes := a.labWords(classNames)
	flags := map[string]words{"class": classes, "target": targets, "kernel": kernels, "workload": workloads, "run": runs}
	if c, _, err := root.Find([]string{"report"}); err == nil {
		// The error says only that it has completions already.
		_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(report.Formats(), cobra.ShellCompDirectiveNoFileComp))
	}
	if c, _, err := root.Find([]string{"fmt"}); err == nil {
		c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"hcl"}, cobra.ShellCompDirectiveFilterFileExt
		}
	}
	if c, _, err := root.Find([]string{"help"}); err == nil {
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return subcommands(root, args), cobra.ShellCompDirectiveNoFileComp
		}
	}
	// The errors say only that there is no such flag.
	_ = root.MarkPersistentFlagFilename("file", "hcl")
	_ = root.MarkPersistentFlagDirname("runs")
	if c, _, err := root.Find([]string{"import"}); err == nil {
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return importer.Formats(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault // files
		}
	}
	for _, c := range all(root) {
		if w := places[strings.TrimPrefix(c.CommandPath(), root.Name()+" ")]; w != nil && c.ValidArgsFunction == nil {
			c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				if len(args) >= len(w) {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return typable(w[len(args)]()), cobra.ShellCompDirectiveNoFileComp
			}
		}
		for name, w := range flags {
			if f := c.Flags().Lookup(name); f != nil {
				// The error says only that it has completions already.
				_ = c.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
					return typable(w()), cobra.ShellCompDirectiveNoFileComp
				})
			}
		}
	}
}

// labWords reads the configuration for one completion, without a word about
// what is wrong with it.
func (a *app) labWords(of func(*config.Lab) []string) words {
	return func() []string {
		quiet := *a
		quiet.err = io.Discard
		lab, _, err := quiet.loadAll()
		if err != nil {
			return nil
		}
		return of(lab)
	}
}

// typable are the words that mean themselves in every shell: its script would put
// another one on the command line as it is.
func typable(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" || paste.Word(s) != s })
}

func named[T any](list []T, name func(T) string) []string {
	var out []string
	for _, x := range list {
		out = append(out, name(x))
	}
	return out
}

// classNames are the classes that targets have.
func classNames(l *config.Lab) []string {
	var names []string
	for _, t := range l.Targets {
		if t.Class != "" && !slices.Contains(names, t.Class) {
			names = append(names, t.Class)
		}
	}
	return names
}

// subcommands names what is below a path of commands.
func subcommands(c *cobra.Command, path []string) []string {
	c, rest, err := c.Find(path)
	if err != nil || len(rest) > 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name()+"\t"+sub.Short)
		}
	}
	return names
}
