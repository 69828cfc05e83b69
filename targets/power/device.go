package power

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// Login is how a device is logged in to. The password is never written in the
// configuration itself.
type Login struct {
	User         string `hcl:"user,optional" doc:"user name"`
	PasswordEnv  string `hcl:"password_env,optional" doc:"name of the environment variable that holds the password"`
	PasswordFile string `hcl:"password_file,optional,path" doc:"file whose first line is the password"`
}

func (l Login) check() error {
	switch {
	case l.PasswordEnv != "" && l.PasswordFile != "":
		return errors.New("password_env and password_file: give one of them")
	case l.User != "" && l.PasswordEnv == "" && l.PasswordFile == "":
		return errors.New("user without password_env or password_file")
	case l.User == "" && l.PasswordEnv+l.PasswordFile != "":
		return errors.New("a password without user")
	}
	return nil
}

// named gives a login its usual user where the configuration names none.
func (l Login) named(user string) Login {
	if l.User == "" && l.PasswordEnv+l.PasswordFile != "" {
		l.User = user
	}
	return l
}

// password reads the password anew for each use.
func (l Login) password() (string, error) {
	if l.PasswordFile == "" {
		return secret("password_env", l.PasswordEnv)
	}
	b, err := os.ReadFile(l.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("password_file: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// secret is the value of the environment variable that an attribute names.
func secret(attribute, name string) (string, error) {
	v, ok := os.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("the environment variable %s (%s) is not set", name, attribute)
	}
	return v, nil
}

const defaultDeadline = 30 * time.Second

// limit bounds a request; 0 is the usual bound.
func limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	d = orUsual(d, defaultDeadline)
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no end within %s", d))
}

func orUsual(d, usual time.Duration) time.Duration {
	if d <= 0 {
		return usual
	}
	return d
}

func notNegative(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("deadline = %s is negative", d)
	}
	return nil
}

func word(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// lostError is a failure of the way to the device, not an answer of it: worth
// another try.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

func isLost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost)
}

const (
	tries = 3                      // of a request that gets no answer
	retry = 300 * time.Millisecond // between them, and between two readings of a state
)

// again asks up to three times while no answer comes. Whoever asks must ask for
// what may be asked twice.
func again(ctx context.Context, ask func(context.Context) error) error {
	for n := 1; ; n++ {
		err := ask(ctx)
		if err == nil || !isLost(err) || n == tries || !pause(ctx, retry) {
			return err
		}
	}
}

// confirm reads the state until it is the wanted one. Devices answer a request
// before they have switched, and some are deaf while they do.
func confirm(ctx context.Context, on bool, read func(context.Context) (bool, error)) error {
	var last error
	for {
		is, err := read(ctx)
		switch {
		case err == nil && is == on:
			return nil
		case err == nil:
			last = fmt.Errorf("it took the request, and reads back %s: look whether its switch is locked, or another controls it", word(is))
		case !isLost(err):
			return err
		case last == nil || ctx.Err() == nil:
			last = fmt.Errorf("it took the request, and its state cannot be read: %w", err)
		}
		if !pause(ctx, retry) {
			return last
		}
	}
}

// pause waits; false: ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// failed makes the sentence that a person reads: what, of which outlet, why. When
// time or patience ended it says so, and keeps what the device said last.
func failed(ctx context.Context, on bool, where string, err error) error {
	if err == nil {
		return nil
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		<-ctx.Done() // a socket's timer may be a moment earlier
	}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if isContext(err) || errors.Is(err, cause) {
			err = cause
		} else {
			err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	return fmt.Errorf("power %s: %s: %w", word(on), where, err)
}

// isContext says that err tells no more than that a context ended.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// stripName spells a device's address alike for alike: lower case, addresses in
// their shortest form, no port where it is the usual one.
func stripName(host, port, usual string) string {
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.String()
	}
	if port = number(port); host == "" || port == "" || port == usual {
		return host
	}
	return net.JoinHostPort(host, port)
}

// splitAddress takes "name", "name:port", "::1" or "[::1]:port".
func splitAddress(address, usual string) (host, port string, err error) {
	if a, err := netip.ParseAddr(strings.Trim(address, "[]")); err == nil {
		return a.String(), usual, nil
	}
	host, port, err = net.SplitHostPort(address)
	if err != nil {
		host, port = address, usual
	}
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.String()
	}
	if !isPort(port) || !isHost(host) {
		return "", "", fmt.Errorf("address = %q: want a name or address, with :port where it is not %s", address, usual)
	}
	return host, number(port), nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// isHost says that s is an IP address or looks like a name.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return s != "" && len(s) < 254 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == "" &&
		!strings.HasPrefix(s, ".") && !strings.HasPrefix(s, "-") && !strings.Contains(s, "..")
}

// number is a plain number without leading zeros, "" for anything else.
func number(s string) string {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return ""
	}
	if s = strings.TrimLeft(s, "0"); s == "" {
		return "0"
	}
	return s
}

// outletName is number, or what else a strip calls its outlets, in lower case.
func outletName(s string) string {
	s = strings.TrimSpace(s)
	if n := number(s); n != "" {
		return n
	}
	return strings.ToLower(s)
}
