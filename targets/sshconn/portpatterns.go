package sshconn

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// portPattern is a line of known_hosts that has a wildcard in a port, such as
// "[10.0.0.*]:*". The library compares ports literally, so such a line would be
// overlooked, also where it revokes a key.
type portPattern struct {
	patterns []string
	revoked  bool
	known    xknownhosts.KnownKey
}

// portPatterns finds those lines in files, which have been read without error.
func portPatterns(files []string) ([]portPattern, error) {
	var found []portPattern
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		n := 0
		for line := range strings.Lines(string(b)) {
			n++
			if !strings.Contains(line, "]:") {
				continue
			}
			marker, hosts, key, _, _, err := ssh.ParseKnownHosts([]byte(line))
			if err != nil || marker == "cert-authority" || !slices.ContainsFunc(hosts, wildPort) {
				continue
			}
			found = append(found, portPattern{hosts, marker == "revoked", xknownhosts.KnownKey{Key: key, Filename: file, Line: n}})
		}
	}
	return found, nil
}

func wildPort(pattern string) bool {
	_, port, ok := strings.Cut(pattern, "]:")
	return ok && strings.ContainsAny(port, "*?")
}

// matches says whether the line speaks of name, "host:port", as ssh does: it
// matches whole names, and a negation ends the matter.
func (p portPattern) matches(name string) bool {
	name = xknownhosts.Normalize(name)
	hit := false
	for _, pattern := range p.patterns {
		bare, negated := strings.CutPrefix(pattern, "!")
		if glob(bare, name) {
			if negated {
				return false
			}
			hit = true
		}
	}
	return hit
}

// glob matches * and ? and nothing else.
func glob(pattern, s string) bool {
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '*':
			for k := 0; k <= len(s); k++ {
				if glob(pattern[i+1:], s[k:]) {
					return true
				}
			}
			return false
		case s == "" || pattern[i] != '?' && pattern[i] != s[0]:
			return false
		}
		s = s[1:]
	}
	return s == ""
}

// addPatterns corrects a, which the library's own lines gave, by those with a
// wildcard in a port.
func (k *knownHosts) addPatterns(a answer, name string, key ssh.PublicKey) answer {
	for _, p := range k.ports {
		if !p.matches(name) {
			continue
		}
		switch {
		case p.revoked && same(p.known.Key, key):
			return answer{verdict: revoked}
		case p.revoked || a.verdict == revoked:
		case same(p.known.Key, key):
			a = answer{verdict: accepted}
		case a.verdict == unknown || a.verdict == changed:
			a.verdict, a.caOnly, a.want = changed, false, append(a.want, p.known)
		}
	}
	return a
}
