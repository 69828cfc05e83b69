package notify

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// secretFrom reads a secret from the environment variable env, or the first line
// of the file; "" when neither is named. what begins the message of an error,
// which never holds the secret.
func secretFrom(what, env, file string) (string, error) {
	switch {
	case env != "":
		v := os.Getenv(env)
		if v == "" {
			return "", permanent("%s_env: the environment variable %s is not set, or empty", what, env)
		}
		return v, nil
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return "", permanent("%s_file: %w", what, err)
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Scan()
		if err := s.Err(); err != nil {
			return "", permanent("%s_file: %s: %w", what, file, err)
		}
		v := strings.TrimSpace(s.Text())
		if v == "" {
			return "", permanent("%s_file: the first line of %s is empty", what, file)
		}
		return v, nil
	}
	return "", nil
}

func oneOf(what string, values ...string) error {
	n := 0
	for _, v := range values {
		if v != "" {
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("%s: give it once", what)
	}
	return nil
}

// clean makes text one line of at most n characters without control characters.
func clean(s string, n int) string {
	s = strings.Join(strings.Fields(strings.Map(printable, strings.ToValidUTF8(s, "?"))), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// printable drops what could drive a terminal or turn text around.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ', r == 0x7f, r >= 0x80 && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return '·'
	}
	return r
}
