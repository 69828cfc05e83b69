package main

import (
	"slices"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
)

// completeHands completes targets, and the words that choose several, as often as
// they are wanted, and what may end the command after the first of them. After
// "--" come files, if files is set.
func (a *app) completeHands(files bool, last ...words) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if n := len(a.args); n > 0 && slices.Contains(a.args[:n-1], "--") { // which the library does not tell
			if files {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []string
		for _, w := range last {
			if len(args) > 0 {
				list = append(list, w()...)
			}
		}
		return typable(append(list, a.labWords(targetWords)()...)), cobra.ShellCompDirectiveNoFileComp
	}
}

// targetWords are the names of targets, and the classes and labels they have.
func targetWords(l *config.Lab) []string {
	var names, kinds []string
	for _, t := range l.Targets {
		names = append(names, t.Name)
		if t.Class != "" {
			kinds = append(kinds, "class:"+t.Class)
		}
		for _, s := range t.Labels {
			kinds = append(kinds, "label:"+s)
		}
	}
	slices.Sort(kinds)
	return append(append(names, slices.Compact(kinds)...), "all")
}
