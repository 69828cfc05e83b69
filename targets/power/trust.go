package power

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// trust is what makes a device's certificate good: it is the pinned one, it is
// signed by a CA of the lab's or of the system's, or nobody asks.
type trust struct {
	fingerprint string
	ca          string
	insecure    bool
}

func (t trust) check() error {
	n := 0
	for _, set := range []bool{t.fingerprint != "", t.ca != "", t.insecure} {
		if set {
			n++
		}
	}
	if n > 1 {
		return errors.New("fingerprint, ca and insecure: give one of them")
	}
	if b, err := hex.DecodeString(t.pin()); t.fingerprint != "" && (err != nil || len(b) != sha256.Size) {
		return errors.New("fingerprint: want the SHA-256 of the certificate, 64 hexadecimal digits, with or without colons")
	}
	return nil
}

// pin is the fingerprint without "sha256:" and colons.
func (t trust) pin() string {
	s := strings.TrimPrefix(strings.ToLower(t.fingerprint), "sha256:")
	return strings.ReplaceAll(s, ":", "")
}

// config makes the TLS configuration. The certificate is checked by us, so that
// the error can say what to pin.
func (t trust) config() (*tls.Config, error) {
	var roots *x509.CertPool
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no certificate in PEM form", t.ca)
		}
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} // VerifyConnection verifies
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if t.insecure {
			return nil
		}
		err := t.verify(s, roots)
		if err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		return nil
	}
	return c, nil
}

func (t trust) verify(s tls.ConnectionState, roots *x509.CertPool) error {
	leaf := s.PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	print := hex.EncodeToString(sum[:])
	if t.fingerprint != "" {
		if print == t.pin() {
			return nil
		}
		return fmt.Errorf("its certificate is not the pinned one: if the BMC got a new one, write fingerprint = %q", print)
	}
	more := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		more.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: s.ServerName, Roots: roots, Intermediates: more}); err != nil {
		return fmt.Errorf("%w; if that is the BMC's own certificate, write fingerprint = %q", err, print)
	}
	return nil
}
