package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

// UnknownKeyError says that known_hosts has nothing about a machine, which is so
// at the first contact. A key that changed is never one.
type UnknownKeyError struct {
	Machine     string // as messages name it
	Type        string // "ssh-ed25519"
	Fingerprint string // "SHA256:…"
	Line        string // what known_hosts lacks
	File        string // the known_hosts file that it belongs into

	err error
}

func (e *UnknownKeyError) Error() string { return e.err.Error() }

// Remember appends a line to a known_hosts file, which is made when it is missing.
func Remember(file, line string) error {
	old, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		return fmt.Errorf("known hosts: %w", err)
	}
	if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
		line = "\n" + line
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return fmt.Errorf("known hosts: %w", err)
	}
	return nil
}

// KnownKeys are the host keys by which s is known, as in a .pub file: those that
// it pins, or those that known_hosts lists. Nothing is contacted.
func (d *Dialer) KnownKeys(ctx context.Context, s targets.SSH) ([]string, error) {
	var out []string
	add := func(k ssh.PublicKey) {
		if line := publicLine(k); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	for _, line := range s.HostKeys {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil {
			add(key)
		}
	}
	if len(s.HostKeys) > 0 {
		return out, nil
	}
	route, err := d.route(ctx, s)
	if err != nil {
		return nil, err
	}
	h := route[len(route)-1]
	known, err := d.knownFiles(h.known)
	if err != nil || known.db == nil {
		return nil, err
	}
	for _, key := range known.db.HostKeys(h.knownName()) {
		if !key.Cert {
			add(key.PublicKey)
		}
	}
	for _, p := range known.ports {
		if !p.revoked && p.matches(h.knownName()) {
			add(p.known.Key)
		}
	}
	return out, nil
}

// facts are what the server shows of itself. SFTP is tried once.
func (c *conn) facts(ctx context.Context) targets.ServerFacts {
	f := targets.ServerFacts{Version: strings.ToValidUTF8(string(c.client.ServerVersion()), "?")}
	if c.link.key != nil {
		f.HostKey = publicLine(c.link.key)
	}
	x, err := c.openSFTP(ctx)
	switch {
	case err == nil:
		x.close()
	case errors.Is(err, errNoSFTP):
		c.mu.Lock()
		f.NoSFTP = c.noSFTP
		c.mu.Unlock()
	default:
		f.NoSFTP = err.Error()
	}
	return f
}
