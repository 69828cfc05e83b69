package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command line that the documents show exists, with its flags and about as
// many arguments.
func TestDocumentedCommands(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	if parses([]string{"report", "--no-such"}) == nil || parses([]string{"no-such"}) == nil || parses([]string{"stop"}) == nil {
		t.Fatal("anything passes")
	}
	shown := 0
	for _, file := range append(files, "../../README.md", "../../.github/CONTRIBUTING.md") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range documentedLines(string(b)) {
			shown++
			if err := parses(line); err != nil {
				t.Errorf("%s shows %q: %v", file, strings.Join(line, " "), err)
			}
		}
	}
	if shown < 40 {
		t.Errorf("only %d commands found", shown)
	}
}

// documentedLines are the words of the lines of shell blocks that call kernsweep.
func documentedLines(text string) [][]string {
	call := regexp.MustCompile(`(?m)^(?:bin/)?kernsweep (.*)$`)
	var out [][]string
	for i, block := range strings.Split(text, "```") {
		if i%2 == 0 || !strings.HasPrefix(block, "sh\n") {
			continue
		}
		for _, m := range call.FindAllStringSubmatch(block, -1) {
			line, _, _ := strings.Cut(m[1], " #")
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " >")
			var words []string
			for _, w := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
				words = append(words, strings.Trim(w, `'"`))
			}
			out = append(out, words)
		}
	}
	return out
}

// parses says what the command line would be refused for before it does anything.
func parses(words []string) error {
	root := new(app).root()
	for _, c := range all(root) {
		c.RunE = func(*cobra.Command, []string) error { return nil }
		c.Run, c.PersistentPreRunE = nil, nil
	}
	root.SetArgs(words)
	root.SetOut(&strings.Builder{})
	root.SetErr(&strings.Builder{})
	return root.Execute()
}
