package sshconn

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"kernsweep/targets"
)

const (
	shellMark    = "kernsweep-shell-works"
	shellTimeout = 15 * time.Second
)

// checkShell makes sure, at the first command that fails on a connection, that
// the failure is the command's own: a restricted login shell, a forced command
// or a locked account answers everything with some status.
func (c *conn) checkShell(ctx context.Context, exit targets.Exit) error {
	c.mu.Lock()
	ok, known := c.shellOK, c.shellErr
	c.mu.Unlock()
	if known != nil {
		return known
	}
	if ok || exit.OK() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shellTimeout)
	defer cancel()
	var said bytes.Buffer
	line, err := commandLine([]string{"echo", shellMark})
	if err != nil {
		return err
	}
	if _, err = c.exec(ctx, line, targets.Cmd{Stdout: &said, Stderr: &said}); err != nil {
		return err
	}
	if strings.Contains(said.String(), shellMark) {
		c.mu.Lock()
		c.shellOK = true
		c.mu.Unlock()
		return nil
	}
	err = &targets.LinkError{Phase: "exec", Err: fmt.Errorf(
		"%s: the login shell of user %s (%s) does not run /bin/sh: it said %q; give the user an ordinary login shell (as root on the target: chsh -s /bin/sh %s) and no forced command, or log in as another user",
		c.h, c.h.user, c.shellName(ctx), firstLine(said.String()), c.h.user)}
	c.mu.Lock()
	c.shellErr = err
	c.mu.Unlock()
	return err
}

// shellName asks in words that every shell understands.
func (c *conn) shellName(ctx context.Context) string {
	var out bytes.Buffer
	if _, err := c.exec(ctx, "echo $SHELL", targets.Cmd{Stdout: &out}); err != nil {
		return "name unknown: " + err.Error()
	}
	if name := lastLine(out.String()); strings.HasPrefix(name, "/") {
		return name
	}
	return "name unknown, since it does not run echo"
}
