package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/live"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
)

// added is what target add says.
type added struct {
	Name    string                    `json:"name"`
	File    string                    `json:"file"`
	Line    int                       `json:"line"` // where the block begins
	Written bool                      `json:"written"`
	Block   string                    `json:"block"`
	Facts   []targets.Fact            `json:"facts"`
	Lacks   []orchestrator.SweepLacks `json:"lacks"`
	Survey  *targets.Survey           `json:"survey"`
}

const factWidth = 80 // columns of the table

// printAddition says what was found, what is written, and what is missing.
func (a *app) printAddition(x added) error {
	if a.json {
		return a.printJSON(x)
	}
	printFacts(a.out, x.Facts)
	for _, n := range slices.Concat(x.Survey.Running.Notes, x.Survey.Notes) {
		wrap(a.out, "note", n)
	}
	fmt.Fprintln(a.out)
	for line := range strings.Lines(x.Block) {
		fmt.Fprintln(a.out, live.Safe(strings.TrimRight(line, "\r\n")))
	}
	fmt.Fprintln(a.out)
	for _, l := range x.Lacks {
		printLacks(a.out, l)
	}
	if x.Written {
		fmt.Fprintf(a.err, "written to %s:%d; next: %s target doctor %s\n", x.File, x.Line, a.kernsweep(), x.Name)
		return nil
	}
	fmt.Fprintf(a.err, "nothing is written; the same command with --name %s --write puts the block into %s\n", x.Name, x.File)
	return nil
}

func printFacts(w io.Writer, facts []targets.Fact) {
	for _, f := range facts {
		text := f.String()
		if short, ok := sshconn.Fingerprint(f.Value); ok && f.Name == "host key" {
			text = short // it can be compared, and fits
		}
		wrap(w, f.Name, text)
		if f.Evidence != "" && f.Value != "" {
			wrap(w, "", "by: "+f.Evidence)
		}
	}
}

func printLacks(w io.Writer, l orchestrator.SweepLacks) {
	name := "sweep " + l.Sweep
	if l.Sweep == "" {
		name = "every sweep"
	}
	if len(l.Lacks) == 0 {
		fmt.Fprintf(w, "%s: nothing more is missing\n", name)
		return
	}
	fmt.Fprintf(w, "%s:\n", name)
	for _, t := range l.Lacks {
		wrap(w, "  -", t)
	}
}

// wrap prints words behind a name, on as many lines as they take.
func wrap(w io.Writer, name, text string) {
	const nameWidth, most = 14, 4000
	indent := nameWidth
	if strings.HasPrefix(name, "  ") {
		indent = len(name) + 1
	}
	if len(text) > most { // a device may say anything
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	line, used := fmt.Sprintf("%-*s", indent, name), 0
	for _, word := range strings.Fields(live.Safe(text)) {
		if n := utf8.RuneCountInString(word); used > 0 && utf8.RuneCountInString(line)+1+n > factWidth {
			fmt.Fprintln(w, line)
			line, used = strings.Repeat(" ", indent), 0
		}
		if used > 0 {
			line += " "
		}
		line += word
		used++
	}
	fmt.Fprintln(w, line)
}
