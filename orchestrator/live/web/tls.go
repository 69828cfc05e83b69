package web

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// TLS reads the page's certificate, and who signs those of clients ("": they need
// none). A certificate that is renewed on disk is taken over.
func TLS(cert, key, clientCA string) (*tls.Config, error) {
	k := &keeper{cert: cert, key: key}
	if _, err := k.get(nil); err != nil {
		return nil, fmt.Errorf("the page's certificate cannot be used: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.get}
	if clientCA == "" {
		return c, nil
	}
	b, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, fmt.Errorf("who signs clients' certificates is not known: %w", err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("who signs clients' certificates is not known: %s has no certificate in PEM", clientCA)
	}
	return c, nil
}

// keeper has the certificate that is on disk.
type keeper struct {
	cert, key string

	mu   sync.Mutex
	have *tls.Certificate
	when time.Time // it was written
}

func (k *keeper) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.cert)
	if k.have != nil && (err != nil || info.ModTime().Equal(k.when)) {
		return k.have, nil
	}
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	if err != nil && k.have != nil {
		return k.have, nil // it is being written
	}
	if err != nil {
		return nil, err
	}
	k.have, k.when = &pair, info.ModTime()
	return k.have, nil
}
