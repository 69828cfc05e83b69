package sshconn

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// knownHosts is a set of known_hosts files, parsed once.
type knownHosts struct {
	db    *knownhosts.HostKeyDB // nil: none of the files exists
	files []string
	ports []portPattern

	// Every lookup goes through all hashed lines, so each is made once.
	mu      sync.Mutex
	answers map[string]answer   // name and key -> answer
	kinds   map[string][]string // name -> algorithms
}

// knownFiles returns the parsed files, from memory as long as none changed.
func (d *Dialer) knownFiles(files []string) (*knownHosts, error) {
	var present []string
	key := fmt.Sprintf("%q", files)
	for _, f := range files {
		info, err := os.Stat(f)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
		present = append(present, f)
		key += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.known[key]; k != nil {
		return k, nil
	}
	k := &knownHosts{files: files, answers: map[string]answer{}, kinds: map[string][]string{}}
	if len(present) > 0 {
		db, err := knownhosts.NewDB(present...)
		if err != nil {
			return nil, fmt.Errorf("known hosts cannot be read (%w); repair or remove that line", err)
		}
		k.db = db
		if k.ports, err = portPatterns(present); err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
	}
	d.known[key] = k
	return k, nil
}

// answer is what known_hosts says about one key of one machine.
type answer struct {
	verdict verdict
	want    []xknownhosts.KnownKey // the keys it lists instead
	caOnly  bool                   // it lists nothing but certificate authorities
	bare    bool                   // found under the name without the port
}

type verdict int

const (
	unknown verdict = iota
	accepted
	changed
	revoked
)

// lookup judges key for the machine that known_hosts would have under name
// ("host:port"). Like OpenSSH, an entry without a port speaks for other ports
// too, but only in favour.
func (k *knownHosts) lookup(name string, remote net.Addr, key ssh.PublicKey) (answer, error) {
	if k.db == nil {
		return answer{}, nil
	}
	id := name + " " + string(key.Marshal())
	k.mu.Lock()
	a, ok := k.answers[id]
	k.mu.Unlock()
	if ok {
		return a, nil
	}
	a, err := k.search(name, remote, key)
	if _, cert := key.(*ssh.Certificate); err == nil && !cert { // a certificate can run out
		k.mu.Lock()
		k.answers[id] = a
		k.mu.Unlock()
	}
	return a, err
}

// search is lookup without memory.
func (k *knownHosts) search(name string, remote net.Addr, key ssh.PublicKey) (answer, error) {
	a, err := k.once(name, remote, key)
	if err != nil {
		return a, err
	}
	if a = k.addPatterns(a, name, key); a.verdict != unknown {
		return a, nil
	}
	if bare, other := withoutPort(name); other {
		if b, err := k.once(bare, remote, key); err == nil && (b.verdict == accepted || b.verdict == revoked) {
			b.bare = true
			return b, nil
		}
	}
	return a, nil
}

func (k *knownHosts) once(name string, remote net.Addr, key ssh.PublicKey) (answer, error) {
	err := k.db.HostKeyCallback()(name, remote, key)
	var keyErr *xknownhosts.KeyError
	var revokedErr *xknownhosts.RevokedError
	switch {
	case err == nil:
		return answer{verdict: accepted}, nil
	case errors.As(err, &revokedErr):
		return answer{verdict: revoked}, nil
	case !errors.As(err, &keyErr):
		// The checker of certificates answers with plain errors.
		return answer{}, err
	case len(keyErr.Want) == 0:
		return answer{}, nil
	}
	plain := slices.DeleteFunc(k.db.HostKeys(name), func(p knownhosts.PublicKey) bool { return p.Cert })
	if len(plain) == 0 {
		return answer{caOnly: true}, nil
	}
	return answer{verdict: changed, want: keyErr.Want}, nil
}

// algorithms are the host-key algorithms that the entries for name can verify:
// those of its keys (RSA with its newer signatures), and every certificate
// where a CA is listed, whatever type the CA's own key has.
func (k *knownHosts) algorithms(name string) []string {
	if k.db == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all, ok := k.kinds[name]
	if !ok {
		all = k.listed(name)
		k.kinds[name] = all
	}
	return all
}

// listed is algorithms without memory.
func (k *knownHosts) listed(name string) []string {
	keys := k.db.HostKeys(name)
	if bare, other := withoutPort(name); other && len(keys) == 0 {
		keys = k.db.HostKeys(bare)
	}
	var all []string
	for _, p := range k.ports {
		if !p.revoked && p.matches(name) {
			all = append(all, signatureAlgorithms(p.known.Key)...)
		}
	}
	for _, key := range keys {
		if key.Cert {
			all = append(all, certAlgorithms()...)
			break
		}
	}
	for _, key := range keys {
		if !key.Cert {
			all = append(all, signatureAlgorithms(key.PublicKey)...)
		}
	}
	return all
}

// signatureAlgorithms are the names under which a host proves that it has key.
func signatureAlgorithms(key ssh.PublicKey) []string { return signatureNames(key.Type()) }

func signatureNames(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

// withoutPort returns name with port 22, and whether that differs.
func withoutPort(name string) (string, bool) {
	h, port, err := net.SplitHostPort(name)
	if err != nil || port == "22" {
		return name, false
	}
	return net.JoinHostPort(h, "22"), true
}

// knownName is the name that known_hosts has h under, as "host:port". An alias
// stands without a port.
func (h host) knownName() string {
	if h.alias != "" {
		return net.JoinHostPort(h.alias, "22")
	}
	return net.JoinHostPort(h.hostName, strconv.Itoa(h.port))
}

// missingLine is the line that known_hosts lacks.
func missingLine(name string, key ssh.PublicKey) string {
	return knownhosts.Line([]string{name}, key)
}

func listFiles(files []string) string {
	if len(files) == 0 {
		return "no file"
	}
	return strings.Join(files, ", ")
}
