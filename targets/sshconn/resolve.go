package sshconn

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
)

// host is one machine of a route with everything resolved.
type host struct {
	name           string // as the user wrote it
	hostName       string
	port           int
	user           string
	alias          string // name that known_hosts has it under, "" = its address
	identities     []string
	identitiesOnly bool
	agent          string // socket, "" = none
	known          []string
	proxyCommand   string
	connectTimeout time.Duration
	legacy         bool
	noRSA          bool         // leave RSA host keys out
	target         *targets.SSH // nil for a jump host
}

// maxHops bounds a chain of jump hosts, which a configuration can make endless.
const maxHops = 8

// route resolves s and its jump hosts, the first to be contacted first.
func (d *Dialer) route(ctx context.Context, s targets.SSH) ([]host, error) {
	h, jump, err := d.resolve(ctx, s.Host, s.User, s.Port, s.ConfigFile)
	if err != nil {
		return nil, err
	}
	if s.KnownHosts != "" {
		h.known = []string{expandHome(s.KnownHosts)}
	}
	switch s.Algorithms {
	case "", "legacy":
	default:
		return nil, fmt.Errorf("%s: algorithms = %q is unknown; only \"legacy\" is", h, s.Algorithms)
	}
	switch s.NewHostKey {
	case "", "reject", "after-boot":
	default:
		return nil, fmt.Errorf("%s: new_host_key = %q is unknown; use \"reject\" or \"after-boot\"", h, s.NewHostKey)
	}
	h.legacy, h.target = s.Algorithms == "legacy", &s
	route := []host{h}
	hops := s.Via
	if len(hops) == 0 {
		hops = jump
	} else {
		route[0].proxyCommand = ""
	}
	// The first jump host may itself be configured to lie behind others.
	for len(hops) > 0 {
		var inner []string
		for i := len(hops) - 1; i >= 0; i-- {
			u, name, port, err := splitHop(hops[i])
			if err != nil {
				return nil, fmt.Errorf("%s: jump host: %w", h, err)
			}
			hop, j, err := d.resolve(ctx, name, u, port, s.ConfigFile)
			if err != nil {
				return nil, fmt.Errorf("%s: jump host: %w", h, err)
			}
			if s.KnownHosts != "" {
				hop.known = append([]string{expandHome(s.KnownHosts)}, hop.known...)
			}
			if s.Key != "" { // a lab has one key more often than one for each hop
				hop.identities = append([]string{expandHome(s.Key)}, hop.identities...)
			}
			route[0].proxyCommand = ""
			route, inner = append([]host{hop}, route...), j
		}
		hops = inner
		if len(route) > maxHops {
			return nil, fmt.Errorf("%s: more than %d jump hosts; does the ssh configuration go in a circle?", h, maxHops-1)
		}
	}
	return route, nil
}

// splitHop reads [user@]host[:port] or an ssh:// address.
func splitHop(s string) (userName, name string, port int, err error) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "ssh://") {
		s = "ssh://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return "", "", 0, fmt.Errorf("%q is not [user@]host[:port]", strings.TrimPrefix(s, "ssh://"))
	}
	if u.Port() != "" {
		if port, err = strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
			return "", "", 0, fmt.Errorf("%q: the port must be from 1 to 65535", s)
		}
	}
	return u.User.Username(), u.Hostname(), port, nil
}

// resolve looks name up in the ssh configuration; explicit values win.
func (d *Dialer) resolve(ctx context.Context, name, userName string, port int, file string) (host, []string, error) {
	if name == "" {
		return host{}, nil, fmt.Errorf("no host given")
	}
	if strings.HasPrefix(name, "-") {
		return host{}, nil, fmt.Errorf("host %q begins with a dash", name)
	}
	r, err := d.lookUp(ctx, query{name: name, user: userName, port: port, file: expandHome(file)})
	if err != nil {
		return host{}, nil, err
	}
	h := host{name: name, hostName: r.one("hostname"), user: r.one("user"), alias: r.some("hostkeyalias"), proxyCommand: r.some("proxycommand")}
	if h.hostName == "" {
		h.hostName = name
	}
	if h.user == "" {
		u, err := user.Current()
		if err != nil {
			return host{}, nil, fmt.Errorf("%s: no user given, and the own name is unknown: %w", name, err)
		}
		h.user = u.Username
	}
	if h.port, err = strconv.Atoi(r.one("port")); err != nil {
		h.port = 22
	}
	if userName != "" {
		h.user = userName
	}
	if port != 0 {
		h.port = port
	}
	h.fill(r)
	h.proxyCommand = expandTokens(h.proxyCommand, h)
	var jump []string
	if j := r.some("proxyjump"); j != "" {
		jump = strings.Split(j, ",")
	}
	return h, jump, nil
}

// fill takes what concerns keys and time from the configuration.
func (h *host) fill(r resolved) {
	h.identitiesOnly = r.one("identitiesonly") == "yes"
	for _, f := range r["identityfile"] {
		h.identities = append(h.identities, expandTokens(expandHome(f), *h))
	}
	h.agent = os.Getenv("SSH_AUTH_SOCK")
	switch a := r.one("identityagent"); {
	case a == "none":
		h.agent = ""
	case strings.HasPrefix(a, "$"):
		h.agent = os.Getenv(strings.Trim(a[1:], "{}"))
	case a != "" && a != "SSH_AUTH_SOCK":
		h.agent = expandTokens(expandHome(a), *h)
	}
	for _, key := range []string{"userknownhostsfile", "globalknownhostsfile"} {
		for _, f := range strings.Fields(r.one(key)) {
			if f != "none" {
				h.known = append(h.known, expandTokens(expandHome(f), *h))
			}
		}
	}
	if s, err := strconv.Atoi(r.one("connecttimeout")); err == nil && s > 0 {
		h.connectTimeout = time.Duration(s) * time.Second
	}
}

// expandTokens replaces the tokens of ssh_config(5) that make sense here.
func expandTokens(s string, h host) string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "~"
	}
	self := h.user
	if u, err := user.Current(); err == nil {
		self = u.Username
	}
	alias := h.alias
	if alias == "" {
		alias = h.name
	}
	return strings.NewReplacer("%%", "%", "%h", h.hostName, "%n", h.name, "%p", strconv.Itoa(h.port),
		"%r", h.user, "%d", home, "%u", self, "%k", alias).Replace(s)
}

func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
