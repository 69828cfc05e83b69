package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// explainConnect says in a sentence why no connection came about.
func explainConnect(ctx context.Context, h host, err error) error {
	var dns *net.DNSError
	var open *ssh.OpenChannelError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped before it answered: %w", ctx.Err())
	case errors.As(err, &dns):
		return fmt.Errorf("the name %q cannot be looked up (%s); is it spelt as in DNS, /etc/hosts or ~/.ssh/config? %w", h.hostName, dns.Err, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("it is up, but nothing listens on port %d: is its SSH server still starting? %w", h.port, err)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Errorf("no route to it: is it powered and plugged in, and is the address right? %w", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return fmt.Errorf("no answer: it is off, still booting, or a firewall drops the packets: %w", err)
	case errors.As(err, &open):
		return fmt.Errorf("the jump host in front of it could not connect or does not forward (%s): %w", open.Message, err)
	}
	return err
}

// explainHandshake says in a sentence why no log-in came about.
func (d *Dialer) explainHandshake(ctx, limited context.Context, l *link, h host, keys *hostKeyCheck, a *authentication, err error) error {
	var algorithms *ssh.AlgorithmNegotiationError
	begin := l.begin()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped during the log-in: %s: %w", stage(l, keys, a), ctx.Err())
	case keys.refusal != nil:
		return keys.refusal
	case errors.As(err, &algorithms):
		return explainAlgorithms(algorithms, h)
	case limited.Err() != nil:
		return fmt.Errorf("the log-in was not done within %v: %s; the machine is overloaded, its SSH server hangs, or the port belongs to something else: %w",
			d.patience, stage(l, keys, a), limited.Err())
	case busyWords(begin):
		return fmt.Errorf("it turns log-ins away (%q): too many are under way there, also those of others (MaxStartups, PerSourceMaxStartups): %w",
			firstLine(begin), err)
	case begin != "" && !strings.Contains(begin, "SSH-"):
		return fmt.Errorf("what answers is not an SSH server; it said %q: %w", firstLine(begin), err)
	case strings.Contains(err.Error(), "unable to authenticate"), strings.Contains(err.Error(), "too many authentication"), strings.Contains(err.Error(), "Too many authentication"):
		return explainAuth(h, a, err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return explainClosed(l, h, a, keys, err)
	}
	return err
}

// stage says how far a handshake came.
func stage(l *link, keys *hostKeyCheck, a *authentication) string {
	begin := l.begin()
	_, version, named := strings.Cut("\n"+begin, "\nSSH-")
	version, _, whole := strings.Cut("SSH-"+version, "\n")
	switch {
	case a.asked.Load():
		return fmt.Sprintf("the server (%s) does not answer the log-in request%s", firstLine(version), a.summary())
	case keys.passed.Load():
		return fmt.Sprintf("the server (%s) showed its host key and says nothing since", firstLine(version))
	case begin == "":
		return "it accepted the connection and said nothing"
	case !named:
		return fmt.Sprintf("it sent %d bytes of text (%q) and no SSH version", l.received(), firstLine(begin))
	case !whole:
		return fmt.Sprintf("it sent the beginning of an SSH version (%q) and nothing more", firstLine(version))
	case l.received() <= int64(len(begin)) && strings.HasSuffix(begin, version+"\n"):
		return fmt.Sprintf("it said its version (%s) and did not begin the key exchange", firstLine(version))
	}
	return fmt.Sprintf("the server (%s) did not finish the key exchange", firstLine(version))
}

func explainClosed(l *link, h host, a *authentication, keys *hostKeyCheck, err error) error {
	begin := l.begin()
	switch {
	case begin == "":
		return fmt.Errorf("it closed the connection before saying anything: too many log-ins at once, the caller is blocked, or the machine is just starting or stopping: %w", err)
	case keys.passed.Load():
		return fmt.Errorf("the server (%s) closed the connection during the log-in, %v after it was opened%s; if that is its LoginGraceTime, "+
			"something is slow: a name that it looks up, an agent that asks for consent: %w",
			firstLine(begin), time.Since(l.opened).Round(100*time.Millisecond), a.summary(), err)
	}
	hint := ""
	if !h.legacy {
		hint = "; if it is an old device, try algorithms = \"legacy\""
	}
	return fmt.Errorf("the server (%s) closed the connection during the key exchange%s; its own log may say why: %w", firstLine(begin), hint, err)
}

// explainAlgorithms tells what is missing and how to get it, if it can be had.
func explainAlgorithms(e *ssh.AlgorithmNegotiationError, h host) error {
	insecure := ssh.InsecureAlgorithms()
	supported := ssh.SupportedAlgorithms()
	curable := slices.Concat(insecure.Ciphers, insecure.KeyExchanges, insecure.MACs, supported.KeyExchanges, supported.MACs, []string{ssh.KeyAlgoRSA})
	helps := slices.ContainsFunc(e.RequestedAlgorithms, func(a string) bool { return slices.Contains(curable, a) })
	offer := strings.Join(e.RequestedAlgorithms, ", ")
	if helps && !h.legacy {
		return fmt.Errorf("its SSH server is too old for the secure %s algorithms: it offers only %s; set algorithms = \"legacy\" on this target to accept them: %w", e.What, offer, e)
	}
	return fmt.Errorf("no common %s algorithm: it offers only %s, which kernsweep does not speak; update its SSH server, "+
		"or go through the system's ssh with a ProxyCommand or tunnel that speaks them: %w", e.What, offer, e)
}

func explainAuth(h host, a *authentication, err error) error {
	accepts := ""
	if len(a.allowed) > 0 {
		accepts = "; the server accepts: " + strings.Join(a.allowed, ", ")
	}
	if strings.Contains(err.Error(), "oo many authentication") {
		return fmt.Errorf("it refused the log-in of user %s after too many keys that it does not know (MaxAuthTries)%s; name the right one by key = \"FILE\" "+
			"on the target, or by IdentityFile and IdentitiesOnly in the ssh configuration: no other is offered then: %w", h.user, a.summary(), err)
	}
	return fmt.Errorf("it refused the log-in of user %s%s%s; check the user and its authorized_keys: %w", h.user, a.summary(), accepts, err)
}

// summary lists what was offered and what was left out.
func (a *authentication) summary() string {
	s := " (offered: nothing, since there is no key, agent or password"
	if len(a.offered) > 0 {
		s = " (offered: " + strings.Join(a.offered, ", ")
	}
	if len(a.left) > 0 {
		s += "; left out: " + strings.Join(a.left, "; ")
	}
	return s + ")"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	if line = strings.TrimSpace(line); len(line) > 120 {
		line = line[:120] + "…"
	}
	return strings.ToValidUTF8(line, "?")
}
