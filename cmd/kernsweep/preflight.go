package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/glance"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/store"
	"kernsweep/targets"
)

// preflight shows the night at a glance and what was found beforehand, and ends
// with whether anybody may go home. What is not fine goes into the journal, by note.
func (a *app) preflight(ctx context.Context, lab *config.Lab, p *plan.Plan, b beginning, run *results.Run, dial targets.DialFunc, serve targets.ServeFunc, note func(string)) {
	g := a.glance(lab, p, b.fits, "", true)
	if err := g.WriteText(a.err); err != nil {
		return // nobody looks
	}
	held, err := leases.List(leases.Find(a.env))
	if err != nil {
		held = nil // Claim has said it
	}
	begin := time.Now()
	found := (&orchestrator.Preflight{Lab: lab, Plan: p, Dial: dial, Serve: serve, Claims: a.claims, Held: held,
		Mine: mine, Quiet: b.resume, Kernsweep: a.kernsweep()}).Run(ctx)
	found = append(found, a.here(lab, p, g)...)
	if ctx.Err() != nil {
		return // what was cut off says nothing of the targets
	}
	fmt.Fprintf(a.err, "\npreflight, %s:\n", time.Since(begin).Round(100*time.Millisecond))
	for _, f := range found {
		writeFinding(a.err, f)
		if f.Level != orchestrator.Fine {
			note("preflight: " + plainFinding(f))
		}
	}
	last := leave(found, len(g.Things))
	note("preflight: " + last)
	fmt.Fprintln(a.err, live.Safe(last))
	for _, f := range found {
		if f.Level == orchestrator.Unsafe {
			fmt.Fprintln(a.err, "  "+short(live.Safe(of(f)+f.Text), screenWidth-2))
		}
	}
	if n := len(g.Lanes); n > 1 && strings.HasPrefix(last, "NOT") {
		fmt.Fprintln(a.err, "the lanes of which nothing is said go on meanwhile; "+a.command("stop", run)+" ends the run")
	}
}

const screenWidth = 80 // characters

// here is what the controller itself says: room, and who is told.
func (a *app) here(lab *config.Lab, p *plan.Plan, g glance.Glance) []orchestrator.Finding {
	var out []orchestrator.Finding
	if d := g.Disk; d.Short() {
		out = append(out, orchestrator.Finding{Level: orchestrator.Unsafe, Text: fmt.Sprintf("about %s are needed in %s, and %s are free", store.Bytes(d.Need+d.Images), a.runs, store.Bytes(d.Free)),
			Do: "choose another folder with --runs, or make room; what could go:", Command: a.kernsweep() + " prune --dry-run"})
	}
	if s := lab.Sweep(p.Sweep); s != nil {
		for _, b := range s.Notify {
			if err := b.Ready(); err != nil {
				out = append(out, orchestrator.Finding{Level: orchestrator.Warning, Text: fmt.Sprintf("%s cannot send: %v", b, err), Do: "set what is missing before the run begins; try it:", Command: a.kernsweep() + " notify test " + s.Name})
			}
		}
	}
	return out
}

func mine(r leases.Record) bool {
	host, err := os.Hostname()
	return err == nil && r.PID == os.Getpid() && r.Host == host
}

// leave is the last line of a preflight. things are those of the glance.
func leave(found []orchestrator.Finding, things int) string {
	unsafe := 0
	var but []string
	for _, f := range found {
		switch f.Level {
		case orchestrator.Unsafe:
			unsafe++
		case orchestrator.Warning:
			but = append(but, f.Target)
		}
	}
	switch {
	case unsafe == 1:
		return "NOT safe to leave: 1 thing"
	case unsafe > 1:
		return fmt.Sprintf("NOT safe to leave: %d things", unsafe)
	}
	var text []string
	if n := len(but); n > 0 {
		slices.Sort(but)
		names := strings.Join(slices.DeleteFunc(slices.Compact(but), func(s string) bool { return s == "" }), ", ")
		if names != "" {
			names = " (" + short(names, 40) + ")"
		}
		text = append(text, plural.Of(n, "warning")+names)
	}
	if things > 0 {
		text = append(text, plural.Of(things, "thing")+" to look at, above")
	}
	if text == nil {
		return "safe to leave"
	}
	return "safe to leave, but: " + strings.Join(text, "; ")
}

func of(f orchestrator.Finding) string {
	if f.Target == "" {
		return ""
	}
	return f.Target + ": "
}

func plainFinding(f orchestrator.Finding) string {
	return strings.ToLower(string(f.Level)) + ": " + of(f) + f.Text + "; do: " + strings.TrimSpace(f.Do+" "+f.Command)
}

// writeFinding prints a row: the level, the target, and what was seen, in as many
// lines as that takes.
func writeFinding(w io.Writer, f orchestrator.Finding) {
	const indent = 23 // of the text
	name := f.Target
	if name == "" {
		name = "controller"
	}
	head := fmt.Sprintf("  %-8s  %-10s ", f.Level, live.Safe(name))
	if utf8.RuneCountInString(head) > indent {
		fmt.Fprintln(w, strings.TrimRight(head, " "))
		head = strings.Repeat(" ", indent)
	}
	folded(w, head, indent, live.Safe(f.Text))
	if f.Do != "" {
		folded(w, strings.Repeat(" ", indent)+"do: ", indent+4, live.Safe(f.Do))
	}
	if f.Command != "" { // to be pasted, so it stays in one line
		fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", indent+4), live.Safe(f.Command))
	}
}

// folded prints words in lines of the screen's width.
func folded(w io.Writer, first string, indent int, text string) {
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > screenWidth {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", indent) + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

// short cuts a text to n characters.
func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
