package paste

import (
	"os/exec"
	"strings"
	"testing"

	"kernsweep/targets/targetstest"
)

// What is pasted reaches the program as it was, and nothing of it is executed.
func TestWordInShells(t *testing.T) {
	words := []string{"", "latest", "20261130T220000Z-night-7f3a", "a b", "it's", `"`, `\`, "$(touch ran)", "`touch ran`", ";touch ran", "|touch ran", "&touch ran", "a\ttab",
		">ran", "=ls", "~root", "*", "?", "[a]", "{a,b}", "#x", "!!", "a!b", "^a", "ü 日本", "x\ny", "\x1b[2J", "\u202e", "\xff\xc0", "\x9b", "\u3164", "\u00a0", "'\x1b'", `\x` + "\x07" + "9"}
	for shell, sees := range map[string]bool{"bash": true, "zsh": true, "fish": false, "dash": false} {
		path := targetstest.Tool(t, shell, "/bin/"+shell)
		for _, w := range words {
			word := Word(w)
			if strings.ContainsFunc(word, unseen) {
				t.Errorf("%q cannot be seen whole: %q", w, word)
			}
			if !sees && strings.HasPrefix(word, "$") {
				continue
			}
			cmd := exec.Command(path, "-c", "printf %s "+word)
			cmd.Dir = t.TempDir()
			out, err := cmd.Output()
			if err != nil || string(out) != w {
				t.Errorf("%s: %q as %s: %q, %v", shell, w, word, out, err)
			}
		}
	}
}

// An ordinary name looks as it is.
func TestWordPlain(t *testing.T) {
	for _, w := range []string{"latest", "20261130T220000Z-night-7f3a", "iperf.to_target", "../runs/x", "lab@server:2", "ümlaut", "a=b"} {
		if Word(w) != w {
			t.Errorf("%s: %s", w, Word(w))
		}
	}
}
