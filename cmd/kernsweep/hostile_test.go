package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hostile is text that a device, a file or a person may bring: it drives
// terminals, turns the direction of letters, hides them, forges lines, runs in
// a page, in a shell and in a spreadsheet.
const hostile = "=cmd|'/c calc'!A0 \x1b[2J\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil.example/\x1b\\link\u009b31m\x9b7m\b\b\b\rover\u202egpj.exe\u2066x\u200b\ufeff\u2028" +
	"\u3164\u034f\xff\xc0<script>alert(1)</script>\"><img src=x onerror=alert(1)>$(touch ran)`touch ran`;touch ran;'\n== forged (exit 0)\n{\"forged\":true}\nkernsweep: forged"

// drives says what in a text a terminal would obey or a person be misled by, ""
// when nothing is.
func drives(b []byte) string {
	if !utf8.Valid(b) {
		return "it is no UTF-8"
	}
	for _, r := range string(b) {
		if r != '\n' && (unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)) {
			return strconv.QuoteRuneToASCII(r)
		}
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		for _, forged := range []string{"== forged", `{"forged"`, "kernsweep: forged"} {
			if strings.HasPrefix(line, forged) {
				return "a line of its own: " + line
			}
		}
	}
	return ""
}

// checkInert fails when a terminal would obey what a command printed.
func checkInert(t *testing.T, what string, b []byte) {
	t.Helper()
	if why := drives(b); why != "" {
		t.Errorf("%s: %s in\n%s", what, why, strconv.Quote(string(b[:min(len(b), 3000)])))
	}
}

// apart runs one command line in a folder of its own, with hostile words around it.
func apart(t *testing.T, args ...string) (status int, out, errs []byte) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	var o, e bytes.Buffer
	env := func(name string) (string, bool) {
		switch name {
		case "USER", "LOGNAME", "HOSTNAME":
			return hostile, true
		case "KERNSWEEP_LEASES":
			return filepath.Join(os.TempDir(), "no leases"), true
		}
		return os.LookupEnv(name)
	}
	status = execute(ctx, args, strings.NewReader(hostile), &o, &e, env)
	return status, o.Bytes(), e.Bytes()
}

// TestHostileArguments: whatever words a command is given, what it says of them is
// inert, and they do nothing. Every command and every flag is tried.
func TestHostileArguments(t *testing.T) {
	for _, c := range all(new(app).root()) {
		path := strings.Fields(c.CommandPath())[1:]
		if len(path) > 0 && path[0] == "man" {
			path = append(path, "/dev/null") // it makes the folder it is given
		}
		t.Run(strings.Join(append([]string{"kernsweep"}, path...), " "), func(t *testing.T) {
			t.Chdir(t.TempDir())
			hostileLines(c, path, func(args ...string) {
				_, out, errs := apart(t, args...)
				what := strings.ReplaceAll(strings.Join(args, " "), hostile, "HOSTILE")
				checkInert(t, what+": standard output", out)
				checkInert(t, what+": standard error", errs)
			})
			if _, err := os.Stat("ran"); err == nil {
				t.Error("words of the command line were executed")
			}
		})
	}
}

// hostileLines gives the wrong command lines of a command.
func hostileLines(c *cobra.Command, path []string, try func(args ...string)) {
	// A file name, and a program's argument, has no NUL.
	line := func(more ...string) []string { return append(append([]string{}, path...), more...) }
	try(line(hostile)...)
	try(line(hostile, hostile)...)
	try(line(hostile, "--", hostile, hostile)...)
	try(line("--" + hostile)...)
	try(line("-" + hostile)...)
	try(line("--help", hostile)...)
	try(append([]string{"-f", hostile}, line("x", "y")...)...)
	try(append([]string{"--runs", hostile}, line("latest")...)...)
	try(append([]string{"--var", hostile}, line("x", "y")...)...)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		try(line("--"+f.Name+"="+hostile, "x")...)
		try(line("--"+f.Name+"="+hostile, "x", "y", "--", "z")...)
	})
}
