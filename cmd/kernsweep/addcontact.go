package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"kernsweep/orchestrator/live"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
)

// mostContacts bounds the machines on the way whose host keys are new.
const mostContacts = 8

// survey logs in and looks, within addTime. A host key that nobody knows is shown;
// it is kept when the user says that it is the right one.
func (a *app) survey(ctx context.Context, d *sshconn.Dialer, s targets.SSH, f adding) (*targets.Survey, error) {
	for range mostContacts {
		found, err := a.look(ctx, d, s)
		var unknown *sshconn.UnknownKeyError
		switch {
		case err == nil:
			return found, nil
		case !errors.As(err, &unknown):
			return nil, lookError(s, err)
		}
		if err := a.trust(ctx, unknown, f); err != nil {
			return nil, err
		}
		if err := sshconn.Remember(unknown.File, unknown.Line); err != nil {
			return nil, &statusError{exitInfra, err}
		}
		fmt.Fprintf(a.err, "%s: its host key %s is now in %s\n", live.Safe(unknown.Machine), unknown.Fingerprint, unknown.File)
	}
	return nil, &statusError{exitInfra, fmt.Errorf("%s: more than %d machines with new host keys on the way", s.Host, mostContacts)}
}

// look is one attempt.
func (a *app) look(ctx context.Context, d *sshconn.Dialer, s targets.SSH) (*targets.Survey, error) {
	asking, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	end := time.Now().Add(addTime)
	var server targets.ServerFacts
	var notes []string
	conn, err := d.Dial(asking, s, targets.DialOptions{
		Note: func(n string) { notes = append(notes, n) }, Server: func(f targets.ServerFacts) { server = f }})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	cut := time.AfterFunc(time.Until(end), func() { conn.Close() }) // a command that cannot be ended is left
	defer cut.Stop()
	found, err := targets.TakeSurvey(asking, conn)
	if err != nil {
		return nil, err
	}
	found.Server = server
	notes = slices.DeleteFunc(notes, func(n string) bool { return server.NoSFTP != "" && strings.HasSuffix(n, server.NoSFTP) }) // said anyway
	found.Notes = append(notes, found.Notes...)
	return found, nil
}

// lookError says what to do about a device that cannot be looked at.
func lookError(s targets.SSH, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var link *targets.LinkError
	text := err.Error()
	switch {
	case errors.As(err, &link) && strings.Contains(text, `algorithms = "legacy"`):
		text += "; here that is --legacy"
	case errors.As(err, &link) && link.Phase == "log in" && strings.Contains(text, "refused the log-in") && s.PasswordEnv == "" && s.PasswordFile == "":
		text += "; give another key by --key FILE, or a password by --password-env NAME or --password-file FILE"
	case errors.As(err, &link) && link.Phase == "log in" && strings.Contains(text, "refused the log-in"):
		text += "; is the password right, and may this user log in by it?"
	case errors.Is(err, context.DeadlineExceeded):
		text += fmt.Sprintf("; target add waits %v in all", addTime)
	}
	return &statusError{exitInfra, fmt.Errorf("%s: nothing is added: %s", s.Host, live.Safe(text))}
}

// trust asks whether a new host key is the right one; nil means yes.
func (a *app) trust(ctx context.Context, u *sshconn.UnknownKeyError, f adding) error {
	who := live.Safe(u.Machine)
	switch {
	case slices.Contains(f.hostKeys, u.Fingerprint):
		return nil
	case len(f.hostKeys) > 0:
		return &statusError{exitInfra, fmt.Errorf("%s shows the host key %s %s, and --host-key says %s: it is another machine, or a mistake; nothing is added. "+
			"Where a jump host is new too, give --host-key once for each", who, u.Type, u.Fingerprint, live.Safe(strings.Join(f.hostKeys, ", ")))}
	}
	in, ok := a.in.(*os.File)
	if _, screen := a.terminal(); !ok || !screen || !term.IsTerminal(int(in.Fd())) {
		return &statusError{exitInfra, fmt.Errorf(`%s is unknown: its host key is
  %s %s
Compare that with what the machine itself says, on its console or by a cable
(ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub, or dropbearkey -y -f KEYFILE), then:
  add --host-key %s
to the command, which puts the key into %s`, who, u.Type, u.Fingerprint, u.Fingerprint, u.File)}
	}
	fmt.Fprintf(a.err, "%s is unknown: its host key is\n  %s %s\nIs it the right one? \"yes\" puts it into %s: ", who, u.Type, u.Fingerprint, u.File)
	answer := make(chan string, 1)
	go func() { // ends with the process when nobody answers
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return ctx.Err()
	case said := <-answer:
		if strings.EqualFold(said, "yes") {
			return nil
		}
	}
	return &statusError{exitInfra, fmt.Errorf("%s: its host key was not accepted; nothing is added", who)}
}
