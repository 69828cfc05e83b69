package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
)

const smtpTime = 45 * time.Second

// SMTP sends a mail.
type SMTP struct {
	Server       string        `hcl:"server" doc:"mail server, HOST or HOST:PORT (default port: 587, with tls = \"implicit\" 465, with tls = \"none\" 25)"`
	TLS          string        `hcl:"tls,optional" doc:"\"starttls\" (default; without it nothing is sent), \"implicit\", or \"none\" for a relay on the same machine"`
	User         string        `hcl:"user,optional" doc:"login name"`
	PasswordEnv  string        `hcl:"password_env,optional" doc:"name of the environment variable that holds the password"`
	PasswordFile string        `hcl:"password_file,optional,path" doc:"file whose first line is the password"`
	From         string        `hcl:"from" doc:"sender"`
	To           []string      `hcl:"to" doc:"receivers"`
	CAFile       string        `hcl:"ca_file,optional,path" doc:"PEM file of the authorities that may have signed the server's certificate (default: the system's)"`
	Timeout      time.Duration `hcl:"timeout,optional" doc:"of one try (default 45s)"`
}

// Check looks at the attributes.
func (s *SMTP) Check() error {
	var errs []error
	if _, _, err := s.place(); err != nil {
		errs = append(errs, fmt.Errorf("server: %w", err))
	}
	if _, ok := ports()[s.TLS]; !ok {
		errs = append(errs, fmt.Errorf("tls: %q is neither \"starttls\", \"implicit\" nor \"none\"", s.TLS))
	}
	secret := s.PasswordEnv != "" || s.PasswordFile != ""
	errs = append(errs, oneOf("password_env and password_file", s.PasswordEnv, s.PasswordFile))
	switch {
	case s.User != "" && !secret:
		errs = append(errs, errors.New("user without password_env or password_file"))
	case s.User == "" && secret:
		errs = append(errs, errors.New("a password without user"))
	case secret && s.TLS == "none":
		errs = append(errs, errors.New("tls is \"none\", and a password is never sent in the clear"))
	}
	if err := mail.NewMsg().From(s.From); err != nil {
		errs = append(errs, fmt.Errorf("from is no mail address: %q", s.From))
	}
	if len(s.To) == 0 {
		errs = append(errs, errors.New("to is empty"))
	}
	for _, to := range s.To {
		if err := mail.NewMsg().To(to); err != nil {
			errs = append(errs, fmt.Errorf("to: %q is no mail address", to))
		}
	}
	if s.Timeout < 0 {
		errs = append(errs, errors.New("timeout is negative"))
	}
	return errors.Join(errs...)
}

// Warning is for mail that anybody on the way can read and change.
func (s *SMTP) Warning() string {
	host, _, _ := s.place()
	if ip := net.ParseIP(host); s.TLS == "none" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "mail to " + host + " goes in the clear (tls = \"none\")"
	}
	return ""
}

func ports() map[string]int {
	return map[string]int{"": 587, "starttls": 587, "implicit": 465, "none": 25}
}

// place is where the server listens.
func (s *SMTP) place() (host string, port int, err error) {
	host, p, err := net.SplitHostPort(s.Server)
	if err != nil {
		host, p = strings.Trim(s.Server, "[]"), strconv.Itoa(ports()[s.TLS])
	}
	port, err = strconv.Atoi(p)
	if host == "" || strings.ContainsAny(host, "/ @") || err != nil || port < 1 || port > 65535 {
		return "", 0, errors.New("write HOST or HOST:PORT")
	}
	return host, port, nil
}

// Ready looks for the password and the certificates.
func (s *SMTP) Ready() error {
	_, err := secretFrom("password", s.PasswordEnv, s.PasswordFile)
	if err == nil {
		_, err = authorities(s.CAFile)
	}
	return err
}

// Send delivers the mail once. Where a receiver is refused the others get it.
func (s *SMTP) Send(ctx context.Context, e Event) error {
	limit := orElse(s.Timeout, smtpTime)
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer stop()
	err := s.deliver(ctx, e, s.To)
	var se *mail.SendError
	if len(s.To) == 1 || !errors.As(err, &se) || se.Reason != mail.ErrSMTPRcptTo || se.IsTemp() {
		return s.failure(ctx, err)
	}
	var errs []error
	for _, to := range s.To {
		if err := s.deliver(ctx, e, []string{to}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", to, s.failure(ctx, err)))
		}
	}
	return &PermanentError{Err: fmt.Errorf("%d of %d receivers do not get it: %w", len(errs), len(s.To), errors.Join(errs...)), Part: len(errs) < len(s.To)}
}

// failure says whether another try makes sense.
func (s *SMTP) failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", s.Server, context.Cause(ctx))
	}
	var already *PermanentError
	var se *mail.SendError
	text := clean(err.Error(), 2*saidMost)
	switch {
	case errors.As(err, &already):
		return err
	case errors.As(err, &se) && se.ErrorCode() >= 500, strings.Contains(text, "certificate"), strings.Contains(text, " 535 "), strings.Contains(text, "535 5."):
		return permanent("%s: %s", s.Server, text)
	}
	return fmt.Errorf("%s: %s", s.Server, text)
}

func (s *SMTP) deliver(ctx context.Context, e Event, to []string) error {
	m := mail.NewMsg()
	if err := errors.Join(m.From(s.From), m.To(to...)); err != nil {
		return permanent("%w", err)
	}
	m.Subject(e.Subject)
	m.SetDateWithValue(e.At)
	host, _ := os.Hostname()
	m.SetMessageIDWithValue(e.ID + "@" + orName(host))
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader("X-Kernsweep-Event", e.Kind)
	m.SetBodyString(mail.TypeTextPlain, e.Text+"\n")
	how := mail.SMTPAuthAutoDiscover
	if s.TLS == "implicit" {
		how = mail.SMTPAuthPlain // over a connection of our own it discovers nothing
	}
	c, err := s.client(ctx, how)
	if err != nil {
		return err
	}
	err = c.DialAndSendWithContext(ctx, m)
	if !errors.Is(err, mail.ErrPlainAuthNotSupported) {
		return err
	}
	if c, err = s.client(ctx, mail.SMTPAuthLogin); err != nil {
		return err
	}
	return c.DialAndSendWithContext(ctx, m)
}

func orName(host string) string {
	if host == "" {
		return "kernsweep.invalid"
	}
	return host
}

// client is a connection to be: it ends with ctx, whatever the server does.
func (s *SMTP) client(ctx context.Context, how mail.SMTPAuthType) (*mail.Client, error) {
	host, port, err := s.place()
	if err != nil {
		return nil, permanent("server: %w", err)
	}
	roots, err := authorities(s.CAFile)
	if err != nil {
		return nil, err
	}
	password, err := secretFrom("password", s.PasswordEnv, s.PasswordFile)
	if err != nil {
		return nil, err
	}
	trust := &tls.Config{ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12}
	o := []mail.Option{mail.WithPort(port), mail.WithTLSConfig(trust), mail.WithTimeout(2 * orElse(s.Timeout, smtpTime)), // ctx is first
		mail.WithTLSPolicy(mail.TLSMandatory),
		mail.WithDialContextFunc(func(dial context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(dial, network, address)
			if err != nil {
				return nil, err
			}
			context.AfterFunc(ctx, func() { _ = conn.Close() })
			if s.TLS != "implicit" {
				return conn, nil
			}
			t := tls.Client(conn, trust)
			if err := t.HandshakeContext(dial); err != nil {
				_ = conn.Close()
				return nil, err
			}
			return t, nil
		})}
	switch s.TLS {
	case "implicit":
		o = append(o, mail.WithSSL())
	case "none":
		o = append(o, mail.WithTLSPolicy(mail.NoTLS))
	}
	if s.User != "" {
		o = append(o, mail.WithSMTPAuth(how), mail.WithUsername(s.User), mail.WithPassword(password))
	}
	return mail.NewClient(host, o...)
}
