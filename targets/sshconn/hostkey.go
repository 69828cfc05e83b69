package sshconn

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

// errHostKey marks a refused host key, whatever the library wraps it in.
var errHostKey = errors.New("host key refused")

// hostKeyCheck judges the host key of one handshake.
type hostKeyCheck struct {
	d         *Dialer
	h         host
	o         targets.DialOptions
	known     *knownHosts
	pinned    []ssh.PublicKey
	preferred []string // host-key algorithms to ask for first
	passed    atomic.Bool
	shown     ssh.PublicKey // once passed
	refusal   error
}

func (d *Dialer) hostKeys(h host, o targets.DialOptions) (*hostKeyCheck, error) {
	c := &hostKeyCheck{d: d, h: h, o: o}
	if h.target != nil {
		for _, line := range h.target.HostKeys {
			key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
			if err != nil {
				return nil, fmt.Errorf("host_keys: %q is not a public key as in a .pub file: %w", line, err)
			}
			c.pinned = append(c.pinned, key)
			c.preferred = append(c.preferred, signatureAlgorithms(key)...)
		}
	}
	if len(c.pinned) == 0 {
		known, err := d.knownFiles(h.known)
		if err != nil {
			return nil, err
		}
		c.known = known
		c.preferred = known.algorithms(h.knownName())
	}
	if key := c.remembered(); key != nil {
		c.preferred = append(signatureAlgorithms(key), c.preferred...)
	}
	return c, nil
}

// check is the library's callback.
func (c *hostKeyCheck) check(_ string, remote net.Addr, key ssh.PublicKey) error {
	if err := c.judge(remote, key); err != nil {
		c.refusal = fmt.Errorf("%w: %w", errHostKey, err)
		return c.refusal
	}
	c.shown = key
	c.passed.Store(true)
	return nil
}

func (c *hostKeyCheck) judge(remote net.Addr, key ssh.PublicKey) error {
	if len(c.pinned) > 0 {
		if slices.ContainsFunc(c.pinned, func(p ssh.PublicKey) bool { return same(p, key) }) {
			return nil
		}
		return c.unlessAfterBoot(key, fmt.Errorf("it showed %s, and host_keys pins %s; if the machine was reinstalled, pin the new key: %s",
			describe(key), describeAll(c.pinned), publicLine(key)), describeAll(c.pinned))
	}
	a, err := c.known.lookup(c.h.knownName(), remote, key)
	if err != nil {
		return err
	}
	switch a.verdict {
	case accepted:
		if a.bare && c.o.Note != nil {
			c.o.Note(fmt.Sprintf("%s: its host key is known for the name without the port", c.h))
		}
		return nil
	case revoked:
		return fmt.Errorf("its key %s is marked @revoked in the known hosts (%s): do not log in to this machine until that is understood",
			describe(key), listFiles(c.known.files))
	case changed:
		var old []ssh.PublicKey
		var places []string
		for _, w := range a.want {
			old = append(old, w.Key)
			places = append(places, fmt.Sprintf("%s:%d", w.Filename, w.Line))
		}
		return c.unlessAfterBoot(key, fmt.Errorf("it changed: known is %s (%s), the machine shows %s; if it was reinstalled or re-flashed, "+
			"replace that line by:\n%s\nor set new_host_key = \"after-boot\" on the target",
			describeAll(old), strings.Join(places, ", "), describe(key), missingLine(c.h.knownName(), key)), describeAll(old))
	}
	hint := ""
	if a.caOnly {
		hint = "only a certificate authority is listed for this name, and the machine showed a plain key without a certificate; "
	}
	refusal := fmt.Errorf("it is unknown: %s; %sthis line is missing from %s:\n%s\ncheck the fingerprint on the machine before you add it",
		describe(key), hint, listFiles(c.known.files), missingLine(c.h.knownName(), key))
	if !a.caOnly && len(c.known.files) > 0 {
		refusal = &UnknownKeyError{Machine: c.h.String(), Type: key.Type(), Fingerprint: ssh.FingerprintSHA256(key),
			Line: missingLine(c.h.knownName(), key), File: c.known.files[0], err: refusal}
	}
	return c.unlessAfterBoot(key, refusal, "none")
}

// unlessAfterBoot returns refusal, except where the target allows a new key
// after a boot that kernsweep made; that is noted, and the key stays accepted.
func (c *hostKeyCheck) unlessAfterBoot(key ssh.PublicKey, refusal error, old string) error {
	if c.h.target == nil || c.h.target.NewHostKey != "after-boot" {
		return refusal
	}
	if known := c.remembered(); known != nil {
		if same(known, key) {
			return nil
		}
		old = describe(known)
	}
	if !c.o.AfterBoot {
		return fmt.Errorf("%w (new_host_key = \"after-boot\" accepts it only right after a boot that kernsweep made)", refusal)
	}
	c.d.mu.Lock()
	c.d.accepted[c.h.knownName()] = key
	c.d.mu.Unlock()
	if c.o.Note != nil {
		c.o.Note(fmt.Sprintf("%s: accepted a new host key after the boot: old %s, new %s", c.h, old, describe(key)))
	}
	return nil
}

// remembered is the key accepted after an earlier boot, nil if none was.
func (c *hostKeyCheck) remembered() ssh.PublicKey {
	if c.h.target == nil || c.h.target.NewHostKey != "after-boot" {
		return nil
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.d.accepted[c.h.knownName()]
}

func same(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// Fingerprint is the type and the SHA-256 of a key in the form of known_hosts
// (RFC 4253 section 6.6, base64); ok is false for what is no key.
func Fingerprint(key string) (text string, ok bool) {
	k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil {
		return "", false
	}
	return describe(k), true
}

func describe(k ssh.PublicKey) string { return k.Type() + " " + ssh.FingerprintSHA256(k) }

func describeAll(keys []ssh.PublicKey) string {
	s := make([]string, len(keys))
	for i, k := range keys {
		s[i] = describe(k)
	}
	return strings.Join(s, ", ")
}

func publicLine(k ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
}
