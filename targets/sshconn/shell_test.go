package sshconn

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// loginShells are the shells whose reading of one line is tested, each with
// the arguments that make it read the line as a login shell's -c does.
func loginShells(t *testing.T) map[string][]string {
	return map[string][]string{
		"dash":    {targetstest.Tool(t, "dash"), "-c"},
		"bash":    {targetstest.Tool(t, "bash"), "-c"},
		"ash":     {targetstest.Tool(t, "busybox"), "ash", "-c"},
		"tcsh":    {targetstest.Tool(t, "tcsh"), "-c"},
		"fish":    {targetstest.Tool(t, "fish"), "-c"},
		"fish -C": {"env", "-i", targetstest.Tool(t, "fish"), "--no-config", "-c"},
	}
}

func TestEveryShellReadsTheLineAlike(t *testing.T) {
	words := targetstest.Words()
	cases := [][]string{words, {"plain", "a b", "$x", "`y`", `"z"`, "*", "{a,b}", "%s", "~", "#", "^"}, {"it's"}, {"!"}, {"\n"}, {"ä"}, {""}}
	for name, shell := range loginShells(t) {
		t.Run(name, func(t *testing.T) {
			for _, want := range cases {
				line, err := commandLine(append([]string{"printf", `%s\000`}, want...))
				if err != nil {
					t.Fatal(err)
				}
				out, err := exec.Command(shell[0], append(shell[1:], line)...).Output()
				_, got, _ := strings.Cut(string(out), "\n")
				if err != nil || got != strings.Join(want, "\x00")+"\x00" {
					t.Errorf("sent %q\n got %q (%v)", want, strings.Split(got, "\x00"), err)
				}
			}
		})
	}
}

func TestLoginShellsOverSSH(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	script := "a='it'\\''s'\nb=\\\\\necho \"$a$b!\" \"$1\""
	for _, shell := range []string{"tcsh", "fish"} {
		force := targetstest.Tool(t, shell) + ` -c "$SSH_ORIGINAL_COMMAND"`
		for server, d := range map[string]*targetstest.Daemon{
			"sshd":     targetstest.SSHD(t, "ForceCommand exec "+force),
			"dropbear": targetstest.Dropbear(t, "-c", force),
		} {
			t.Run(shell+" "+server, func(t *testing.T) {
				c := dial(t, d.SSH, targets.DialOptions{})
				defer c.Close()
				if got := targetstest.Output(t, ctx, c, "sh", "-c", script, "sh", "x\n!"); got != "it's\\! x\n!\n" {
					t.Errorf("got %q", got)
				}
				path := t.TempDir() + "/file"
				if err := c.Put(ctx, path, 0o600, strings.NewReader("content")); err != nil {
					t.Error(err)
				}
				var back bytes.Buffer
				if err := c.Get(ctx, path, &back); err != nil || back.String() != "content" {
					t.Errorf("got %q, %v", back.String(), err)
				}
			})
		}
	}
}

func TestRestrictedShells(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for force, words := range map[string][]string{
		`SHELL=/bin/rbash exec bash -r -c "$SSH_ORIGINAL_COMMAND"`:      {"/bin/rbash", "restricted"},
		`echo This account is currently not available.; exit 1`:         {"not available"},
		`echo Welcome to the menu; exit 0`:                              {"Welcome to the menu"},
		`exec ` + targetstest.Tool(t, "fish") + ` -c 'echo hello; yes'`: {"without end"},
	} {
		d := targetstest.SSHD(t, "ForceCommand "+force)
		c := dial(t, d.SSH, targets.DialOptions{})
		_, err := c.Run(ctx, targets.Cmd{Argv: []string{"true"}})
		c.Close()
		var link *targets.LinkError
		if !errors.As(err, &link) {
			t.Errorf("%s: %v; want a refusal", force, err)
			continue
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", force, err, w)
			}
		}
	}
	// What start-up files print does not reach the output.
	d := targetstest.SSHD(t, `ForceCommand echo Good morning; exec sh -c "$SSH_ORIGINAL_COMMAND"`)
	c := dial(t, d.SSH, targets.DialOptions{})
	defer c.Close()
	if got := targetstest.Output(t, ctx, c, "echo", "clean"); got != "clean\n" {
		t.Errorf("got %q", got)
	}
}
