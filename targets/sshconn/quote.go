package sshconn

import (
	"errors"
	"fmt"
	"strings"
)

// commandLine turns argv into one line that every login shell (sh, bash, ash,
// dash, csh, tcsh, fish) reads alike and that runs argv byte for byte.
//
// Inside single quotes all of these shells leave every character alone but the
// quote, the backslash, "!" (csh) and the newline (csh), and locales differ
// about bytes above 126. Words without any of those are quoted as they are.
// Other words are sent in octal to the printf of a POSIX shell, so that the
// line needs neither standard input nor base64.
//
// The line first prints pidMark and the process id, which Run takes out of the
// output again (see preamble). Where nobody takes that line any more, since the
// caller gave up while a start-up file kept the shell, the command does not run.
func commandLine(argv []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("no command given")
	}
	plain := true
	for i, a := range argv {
		if strings.IndexByte(a, 0) >= 0 {
			return "", fmt.Errorf("word %d of the command holds a NUL byte, which no program can receive", i)
		}
		plain = plain && strings.IndexFunc(a, troublesome) < 0
	}
	if plain {
		return `exec /bin/sh -c 'echo ` + pidMark + `$$ && exec "$@"' sh '` + strings.Join(argv, `' '`) + `'`, nil
	}
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = posixQuote(a)
	}
	return `exec /bin/sh -c 'echo ` + pidMark + `$$ && eval "exec $(printf %b "` + octal(strings.Join(words, " ")) + `")"'`, nil
}

func troublesome(r rune) bool {
	return r < ' ' || r > '~' || r == '\'' || r == '\\' || r == '!'
}

// posixQuote quotes s for a POSIX shell.
func posixQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// octal writes s for printf's %b, leaving alone what needs no care inside
// double quotes inside single quotes.
func octal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(" ./-_=:,+@", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\0%03o`, c)
		}
	}
	return b.String()
}
