package sshconn

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

const (
	// maxKeys stays below sshd's MaxAuthTries of 6, with a place for a password.
	maxKeys = 5
	// agentTimeout bounds every exchange with the SSH agent.
	agentTimeout = 20 * time.Second
)

// authentication is what one log-in offers, and what became of it.
type authentication struct {
	methods []ssh.AuthMethod
	offered []string    // in words
	left    []string    // in words: what was not offered, and why
	allowed []string    // methods the server named last
	asked   atomic.Bool // the server named its methods: a log-in was asked for
	agent   net.Conn
}

// observe is the library's hook before each attempt: it keeps what the server allows.
func (a *authentication) observe(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	a.allowed = c.AllowedMethods
	a.asked.Store(true)
	return nil, nil
}

func (a *authentication) close() {
	if a.agent != nil {
		a.agent.Close()
	}
}

// auth gathers the keys and the password for h. An explicit key is the only
// one offered, so that a full agent cannot use up the server's patience.
func (d *Dialer) auth(h host) (*authentication, error) {
	a := &authentication{}
	held := a.openAgent(h.agent)
	var signers []ssh.Signer
	password, hasPassword, err := secret(h)
	if err == nil {
		if h.target != nil && h.target.Key != "" {
			signers, err = a.explicitKey(expandHome(h.target.Key), held)
		} else {
			signers = a.gather(h, held)
		}
	}
	if err != nil {
		a.close()
		return nil, err
	}
	keys := ssh.PublicKeys(signers...)
	explicit := h.target != nil && h.target.Key != ""
	if len(signers) > 0 && (explicit || !hasPassword) {
		a.methods = append(a.methods, keys)
	}
	if hasPassword {
		answer := func(_, _ string, questions []string, _ []bool) ([]string, error) {
			return slices.Repeat([]string{password}, len(questions)), nil
		}
		a.methods = append(a.methods, ssh.Password(password), ssh.KeyboardInteractive(answer))
		a.offered = append(a.offered, "the password")
		// A stated password goes before keys that nobody stated.
		if len(signers) > 0 && !explicit {
			a.methods = append(a.methods, keys)
		}
	}
	return a, nil
}

// secret reads the target's password where one is named.
func secret(h host) (string, bool, error) {
	if h.target == nil {
		return "", false, nil
	}
	if name := h.target.PasswordEnv; name != "" {
		v, ok := os.LookupEnv(name)
		if !ok {
			return "", false, fmt.Errorf("password_env: the environment variable %s is not set", name)
		}
		return v, true, nil
	}
	if file := h.target.PasswordFile; file != "" {
		b, err := os.ReadFile(expandHome(file))
		if err != nil {
			return "", false, fmt.Errorf("password_file: %w", err)
		}
		line, err := bufio.NewReader(bytes.NewReader(b)).ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return "", false, fmt.Errorf("password_file: the first line of %s is empty (%v)", file, err)
		}
		return line, true, nil
	}
	return "", false, nil
}

// openAgent returns the keys of the agent; an agent that fails is none.
func (a *authentication) openAgent(socket string) []ssh.Signer {
	if socket == "" {
		return nil
	}
	c, err := net.DialTimeout("unix", socket, agentTimeout)
	if err != nil {
		a.left = append(a.left, fmt.Sprintf("SSH agent: %v", err))
		return nil
	}
	a.agent = c
	_ = c.SetDeadline(time.Now().Add(agentTimeout)) // a failure shows at the next use
	signers, err := agent.NewClient(c).Signers()
	if err != nil {
		a.left = append(a.left, fmt.Sprintf("SSH agent: %v", err))
		return nil
	}
	return signers
}

// explicitKey reads the key that the target names.
func (a *authentication) explicitKey(file string, held []ssh.Signer) ([]ssh.Signer, error) {
	s, err := readKey(file, held)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	a.offered = append(a.offered, "key "+file)
	return s, nil
}

// gather takes what the agent and the identity files of the configuration hold.
func (a *authentication) gather(h host, held []ssh.Signer) []ssh.Signer {
	var signers []ssh.Signer
	add := func(s ssh.Signer, what string) {
		blob := s.PublicKey().Marshal()
		if slices.ContainsFunc(signers, func(o ssh.Signer) bool { return bytes.Equal(o.PublicKey().Marshal(), blob) }) {
			return
		}
		if len(signers) >= maxKeys {
			a.left = append(a.left, what+" (more keys than servers accept tries for; set key on the target)")
			return
		}
		signers = append(signers, s)
		a.offered = append(a.offered, what)
	}
	if !h.identitiesOnly {
		for _, s := range held {
			add(s, "agent key "+ssh.FingerprintSHA256(s.PublicKey()))
		}
	}
	for _, file := range h.identities {
		s, err := readKey(file, held)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			a.left = append(a.left, fmt.Sprintf("key %s: %v", file, err))
		default:
			for _, one := range s {
				add(one, "key "+file)
			}
		}
	}
	return signers
}

// readKey reads a private key, and its certificate where there is one. The
// agent steps in for an encrypted key and for a public half alone.
func readKey(file string, held []ssh.Signer) ([]ssh.Signer, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		if s := heldAs(file+".pub", held); s != nil && errors.Is(err, os.ErrNotExist) {
			return []ssh.Signer{s}, nil
		}
		return nil, err
	}
	s, err := ssh.ParsePrivateKey(b)
	var encrypted *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &encrypted):
		if s = heldAs(file+".pub", held); s == nil && encrypted.PublicKey != nil {
			s = findHeld(encrypted.PublicKey, held)
		}
		if s == nil {
			return nil, fmt.Errorf("it is encrypted and no SSH agent holds it; run `ssh-add %s`, or use a key without a passphrase", filepath.Clean(file))
		}
	case err != nil:
		if s = heldAs(file, held); s == nil {
			return nil, fmt.Errorf("not a private key that can be used: %w", err)
		}
	}
	if c := certificate(file+"-cert.pub", s); c != nil {
		return []ssh.Signer{c, s}, nil
	}
	return []ssh.Signer{s}, nil
}

// heldAs finds the agent's key whose public half is in file.
func heldAs(file string, held []ssh.Signer) ssh.Signer {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(b)
	if err != nil {
		return nil
	}
	return findHeld(key, held)
}

func findHeld(key ssh.PublicKey, held []ssh.Signer) ssh.Signer {
	for _, s := range held {
		if bytes.Equal(s.PublicKey().Marshal(), key.Marshal()) {
			return s
		}
	}
	return nil
}

func certificate(file string, s ssh.Signer) ssh.Signer {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(b)
	if err != nil {
		return nil
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return nil
	}
	signer, err := ssh.NewCertSigner(cert, s)
	if err != nil {
		return nil // the certificate of another key
	}
	return signer
}
