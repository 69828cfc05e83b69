package sshconn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kevinburke/ssh_config"
)

// resolveTimeout bounds ssh -G, which may run a user's own `Match exec`.
const resolveTimeout = 10 * time.Second

// query is one question to the ssh configuration.
type query struct {
	name, user string
	port       int
	file       string // "" = the user's and the system's, "none" = none
}

// resolved is a configuration for one host: lower-case keyword -> values.
type resolved map[string][]string

func (r resolved) one(key string) string {
	if v := r[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// some is one, where "none" means unset.
func (r resolved) some(key string) string {
	if v := r.one(key); v != "none" {
		return v
	}
	return ""
}

// lookUp asks `ssh -G`, which knows every rule of the configuration, and where
// there is no ssh, a library that knows the common ones. Answers are kept for
// the Dialer's life.
func (d *Dialer) lookUp(ctx context.Context, q query) (resolved, error) {
	key := fmt.Sprintf("%q", []string{q.name, q.user, strconv.Itoa(q.port), q.file})
	d.mu.Lock()
	r, ok := d.resolved[key]
	d.mu.Unlock()
	if ok {
		return r, nil
	}
	program, err := exec.LookPath("ssh")
	if err == nil && q.file != "none" { // nothing to read needs no process, which costs more than a log-in
		r, err = askSSH(ctx, program, q)
	} else {
		r, err = readConfig(q)
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.resolved[key] = r
	d.mu.Unlock()
	return r, nil
}

func askSSH(ctx context.Context, program string, q query) (resolved, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	args := []string{"-G"}
	if q.file != "" {
		args = append(args, "-F", q.file)
	}
	if q.user != "" {
		args = append(args, "-l", q.user)
	}
	if q.port != 0 {
		args = append(args, "-p", strconv.Itoa(q.port))
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--", q.name)...)
	cmd.WaitDelay = resolveTimeout / 2 // a busy controller is late in reading
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v (does a `Match exec` of the configuration hang?): %w", resolveTimeout, ctx.Err())
		}
		return nil, fmt.Errorf("%s: reading the ssh configuration by `ssh -G`: %w: %s", q.name, err, lastLine(problems.String()))
	}
	r := resolved{}
	lines := bufio.NewScanner(&out)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		key = strings.ToLower(key)
		r[key] = append(r[key], value)
	}
	return r, lines.Err()
}

// readConfig is the way without ssh.
func readConfig(q query) (resolved, error) {
	r := resolved{"globalknownhostsfile": {"/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"},
		"userknownhostsfile": {"~/.ssh/known_hosts ~/.ssh/known_hosts2"}}
	files := []string{q.file}
	switch q.file {
	case "none":
		files = nil
		r["hostname"] = []string{strings.ToLower(q.name)} // as ssh has it
	case "":
		files = []string{expandHome("~/.ssh/config"), "/etc/ssh/ssh_config"}
	}
	for _, file := range files {
		if err := readOneConfig(r, file, q); err != nil {
			return nil, err
		}
	}
	if len(r["identityfile"]) == 0 {
		for _, kind := range []string{"rsa", "ecdsa", "ed25519"} {
			r["identityfile"] = append(r["identityfile"], "~/.ssh/id_"+kind)
		}
	}
	// ~ may stand in the middle of a list of files.
	for _, key := range []string{"userknownhostsfile", "globalknownhostsfile"} {
		words := strings.Fields(r.one(key))
		for i := range words {
			words[i] = expandHome(words[i])
		}
		r[key] = []string{strings.Join(words, " ")}
	}
	return r, nil
}

func readOneConfig(r resolved, file string, q query) error {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) && q.file == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: ssh configuration: %w", q.name, err)
	}
	config, err := ssh_config.DecodeBytes(b)
	if err != nil {
		return fmt.Errorf("%s: %s cannot be read without the program ssh: %w; install openssh-client", q.name, filepath.Clean(file), err)
	}
	fileDefaults := map[string]bool{"userknownhostsfile": true, "globalknownhostsfile": true}
	for _, keyword := range []string{"HostName", "User", "Port", "HostKeyAlias", "IdentityFile", "IdentitiesOnly",
		"IdentityAgent", "UserKnownHostsFile", "GlobalKnownHostsFile", "ProxyJump", "ProxyCommand", "ConnectTimeout"} {
		values, err := config.GetAll(q.name, keyword)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", q.name, file, err)
		}
		key := strings.ToLower(keyword)
		switch {
		case len(values) == 0:
		case key == "identityfile":
			r[key] = append(r[key], values...)
		case fileDefaults[key] || len(r[key]) == 0:
			fileDefaults[key] = false
			r[key] = values[:1]
		}
	}
	if h := r.one("hostname"); h != "" {
		r["hostname"] = []string{strings.NewReplacer("%h", q.name, "%%", "%").Replace(h)}
	}
	return nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
