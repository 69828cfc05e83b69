package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"kernsweep/orchestrator/paste"
)

const (
	tokenVariable = "KERNSWEEP_TOKEN"
	tokenLeast    = 16 // characters
	tokenMost     = 4096
)

// serveToken is the token of the page, "" when none is demanded: from its file,
// else from the environment; never from the command line, which others can see.
func (a *app) serveToken(file string) (string, error) {
	if file == "" {
		token, ok := a.env(tokenVariable)
		if !ok {
			return "", nil
		}
		return checkedToken(token, tokenVariable)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := makeToken(file); err != nil {
			return "", fmt.Errorf("--token-file %s: %w", file, err)
		}
		fmt.Fprintf(a.err, "kernsweep: %s is made, with a new token; only this user can read it\n", file)
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("--token-file: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("--token-file %s is no plain file", file)
	case info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("--token-file %s is open to everybody on this machine: chmod 600 %s, and think of a new token", file, paste.Word(file))
	}
	b, err := io.ReadAll(io.LimitReader(f, tokenMost+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("--token-file: %w", err)
	case len(b) > tokenMost:
		return "", fmt.Errorf("--token-file %s is too long for a token", file)
	}
	return checkedToken(string(b), file)
}

func checkedToken(token, from string) (string, error) {
	token = strings.TrimSpace(token)
	switch {
	case len(token) < tokenLeast:
		return "", fmt.Errorf("the token in %s is too short to be safe: at least %d characters", from, tokenLeast)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", fmt.Errorf("the token in %s must be one word of ASCII letters, digits and signs", from)
	}
	return token, nil
}

func makeToken(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(rand.Text() + rand.Text() + "\n")
	return errors.Join(err, f.Close())
}
