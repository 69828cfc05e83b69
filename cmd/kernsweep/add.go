package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
)

const (
	surveyTime = 9 * time.Second  // for the log-in and everything that is asked
	addTime    = 10 * time.Second // after it the link is cut, whatever is under way
)

// adding are the flags of target add.
type adding struct {
	name, class           string
	hostKeys              []string // fingerprints that the user vouches for
	write, legacy, anyway bool
	ssh                   targets.SSH // as given, paths as typed
}

func (a *app) targetAddCmd() *cobra.Command {
	var f adding
	c := &cobra.Command{
		Use:   "add ssh://[USER@]HOST[:PORT]",
		Short: "Look at a new device over SSH, and propose its target block or write it",
		Long: `Look at a new device over SSH, in at most ten seconds and with nothing but a
POSIX shell there: print what was found and by what evidence, the target block
for it, and what it still lacks for each sweep of the file. Nothing stays on the
device. With --write the block is put behind the last target of the file (of a
folder: the file that holds the last target, or targets.hcl); no other byte of
it changes.

A device whose host key nobody knows yet is not logged in to: its fingerprint is
shown, and --host-key FINGERPRINT (or "yes" on a terminal) puts the key into
known_hosts. A key that changed is never taken. A device that the file has
already, by its address or by its host key, is refused with status 2.`,
		Example: "  kernsweep target add ssh://root@10.0.0.7\n" +
			"  kernsweep target add ssh://root@10.0.0.7 --name ap7 --class router --write\n" +
			"  kernsweep target add ssh://lab@server9 --via gate.example --password-env LAB_PASSWORD",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.add(c.Context(), args[0], f) },
	}
	l := c.Flags()
	l.StringVar(&f.name, "name", "", "name of the target (default: made from its host name)")
	l.StringVar(&f.class, "class", "", "class to inherit from; what it says already is left out of the block")
	l.StringArrayVar(&f.ssh.Via, "via", nil, "jump host, [user@]host[:port] (repeatable, in order)")
	l.BoolVar(&f.write, "write", false, "write the block into the configuration")
	l.StringArrayVar(&f.hostKeys, "host-key", nil, "fingerprint (SHA256:…) of a new device or jump host, compared and then put into known_hosts (repeatable)")
	l.BoolVar(&f.anyway, "anyway", false, "also when a run of another configuration measures the device now")
	l.StringVar(&f.ssh.Key, "key", "", "file of a private key (default: the SSH agent and ~/.ssh/config decide)")
	l.StringVar(&f.ssh.PasswordEnv, "password-env", "", "environment variable that holds the password")
	l.StringVar(&f.ssh.PasswordFile, "password-file", "", "file whose first line is the password")
	l.StringVar(&f.ssh.KnownHosts, "known-hosts", "", "file of host keys (default: ~/.ssh/known_hosts and the system's)")
	l.StringVar(&f.ssh.ConfigFile, "ssh-config", "", "ssh_config file; \"none\" reads none")
	l.BoolVar(&f.legacy, "legacy", false, "also offer the algorithms of old devices (SHA-1, CBC, group1)")
	return c
}

// add is target add.
func (a *app) add(ctx context.Context, address string, f adding) error {
	adder, err := a.adder()
	if err != nil {
		return err
	}
	given, dial, class, err := a.wanted(adder, address, f)
	if err != nil {
		return err
	}
	dialer := sshconn.New(a.logger())
	if t, where := orchestrator.SameDevice(ctx, adder.Lab(), dial, dialer.Address); t != nil {
		return usage(fmt.Errorf("%s is in the file already: target %s (%s) leads to %s; look at it with %s target probe %s, or correct its address there",
			address, t.Name, t.Pos, where, a.kernsweep(), t.Name))
	}
	asked := &config.Target{Target: targets.Target{Name: either(f.name, given.Host), SSH: dial}}
	if err := a.undisturbed(ctx, choice{list: []*config.Target{asked}, one: true}, f.anyway); err != nil {
		return err
	}
	s, err := a.survey(ctx, dialer, dial, f)
	if err != nil {
		return err
	}
	if err := a.knownAlready(ctx, dialer, adder.Lab(), s.Server.HostKey); err != nil {
		return err
	}
	if f.name == "" {
		f.name = adder.NameFrom(s.Hostname, given.Host)
	}
	block := orchestrator.Proposal{Name: f.name, SSH: given, Class: class, Survey: s, Lab: adder.Lab()}.Block()
	x, diags := adder.Add(block)
	if x == nil {
		fmt.Fprintf(a.err, "The block that was proposed:\n\n%s\n", block)
		for _, d := range diags {
			fmt.Fprintln(a.err, d)
		}
		return usage(fmt.Errorf("%s would not be valid with this block, so nothing is written; put it in by hand with what the messages ask for", adder.File()))
	}
	if f.write {
		if err := x.Write(ctx); err != nil {
			return &statusError{exitInfra, err}
		}
		k := orchestrator.KeptSurvey{Target: f.name, Address: orchestrator.AddressOf(x.Target), Version: version(), Survey: s}
		if err := k.Save(a.runs); err != nil {
			fmt.Fprintln(a.err, "kernsweep: "+err.Error())
		}
	}
	return a.printAddition(added{Survey: s, Facts: s.Facts(), Name: f.name, Block: x.Text, File: x.File, Line: x.Line, Written: f.write,
		Lacks: orchestrator.Lacks(x.Lab, x.Target, s, a.runs)})
}

// adder reads the configuration, which need not exist yet.
func (a *app) adder() (*config.Adder, error) {
	vars, err := a.variables()
	if err != nil {
		return nil, err
	}
	adder, diags := config.NewAdder(a.file, vars, a.env)
	if adder == nil {
		for _, d := range diags {
			fmt.Fprintln(a.err, d)
		}
		return nil, &statusError{status: exitUsage}
	}
	return adder, nil
}

// variables are the values of --var.
func (a *app) variables() (map[string]string, error) {
	vars := map[string]string{}
	for _, v := range a.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, usage(fmt.Errorf("--var %s: write name=value", v))
		}
		vars[name] = value
	}
	return vars, nil
}

// wanted is what the command line asks for, before anything is contacted: the SSH
// settings for the block, and those to log in with, which the class completes.
func (a *app) wanted(adder *config.Adder, address string, f adding) (given, dial targets.SSH, class *config.Target, err error) {
	given = f.ssh
	if given.Host, given.User, given.Port, err = splitAddress(address); err != nil {
		return given, dial, nil, usage(err)
	}
	if f.legacy {
		given.Algorithms = "legacy"
	}
	if f.name != "" {
		if !config.ValidName(f.name) {
			return given, dial, nil, usage(fmt.Errorf("--name %q: a name is an identifier of at most 64 characters, such as %s", f.name, adder.NameFrom(f.name)))
		}
		if at := adder.Taken(f.name); at != nil {
			return given, dial, nil, usage(fmt.Errorf("--name %s: the file has a target of that name (%s); %s is free", f.name, at, adder.NameFrom(f.name)))
		}
	}
	if f.class != "" {
		if class = adder.Class(f.class); class == nil {
			return given, dial, nil, usage(fmt.Errorf("--class %s: %s has no such class; it has %s", f.class, a.file, orNone(adder.Classes())))
		}
		if targets.TraitsOf(class.Boot).Local {
			return given, dial, nil, usage(fmt.Errorf("--class %s: its targets are virtual (boot %q, %s), and what is added is a device", f.class, class.BootKind, class.Pos))
		}
		dial = class.SSH
	}
	for _, p := range []*string{&given.Key, &given.PasswordFile, &given.KnownHosts, &given.ConfigFile} {
		if *p, err = asInFile(adder.Dir(), *p); err != nil {
			return given, dial, nil, usage(err)
		}
	}
	dial.Host = given.Host
	dial.Port = either(given.Port, dial.Port)
	for _, x := range []struct{ to, from *string }{{&dial.User, &given.User}, {&dial.Key, &f.ssh.Key}, {&dial.PasswordEnv, &given.PasswordEnv},
		{&dial.PasswordFile, &f.ssh.PasswordFile}, {&dial.Algorithms, &given.Algorithms}, {&dial.KnownHosts, &f.ssh.KnownHosts}, {&dial.ConfigFile, &f.ssh.ConfigFile}} {
		*x.to = either(*x.from, *x.to)
	}
	if len(given.Via) > 0 {
		dial.Via = given.Via
	}
	return given, dial, class, nil
}

func either[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// splitAddress reads ssh://[user@]host[:port]; the scheme may be left out.
func splitAddress(s string) (host, user string, port int, err error) {
	wrong := func(why string) (string, string, int, error) {
		return "", "", 0, fmt.Errorf("%q: %s; write ssh://[user@]host[:port]", live.Safe(s), why)
	}
	whole := s
	if !strings.Contains(s, "://") {
		whole = "ssh://" + s
	}
	u, err := url.Parse(whole)
	switch {
	case err != nil:
		return wrong("this is no address")
	case u.Scheme != "ssh":
		return wrong("only ssh:// is known")
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") || strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return wrong("the host is missing or no name")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return wrong("nothing may follow the host and port")
	}
	if _, secret := u.User.Password(); secret {
		return "", "", 0, errors.New("a password does not belong into the address, where a list of processes shows it: use --password-env NAME or --password-file FILE")
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return wrong("the port must be from 1 to 65535")
		}
	}
	return u.Hostname(), u.User.Username(), port, nil
}

// asInFile is a path of the command line as the configuration has it: relative to
// the file's folder when it lies below, absolute otherwise.
func asInFile(dir, p string) (string, error) {
	if p == "" || p == "none" || strings.HasPrefix(p, "~") {
		return p, nil
	}
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(dir, abs); err == nil && filepath.IsLocal(rel) {
		return rel, nil
	}
	return abs, nil
}

// knownAlready refuses a device whose host key another target has.
func (a *app) knownAlready(ctx context.Context, d *sshconn.Dialer, lab *config.Lab, key string) error {
	for _, t := range lab.Targets {
		if key == "" || t.SSH.Host == "" || targets.TraitsOf(t.Boot).Local {
			continue
		}
		known, err := d.KnownKeys(ctx, t.SSH)
		if err == nil && slices.Contains(known, key) {
			return usage(fmt.Errorf("this device is in the file already: it has the host key of target %s (%s); look at it with %s target probe %s. "+
				"If it is another device with a copied key, give it a key of its own first (remove its host keys and restart its SSH server)", t.Name, t.Pos, a.kernsweep(), t.Name))
		}
	}
	return nil
}
