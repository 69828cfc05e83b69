package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue(name, name, true)
	return a
}

// issue writes name.pem and name.key, and returns them.
func (a *authority) issue(name, common string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: common}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for ext, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: b}} {
		if err := os.WriteFile(filepath.Join(a.dir, name+ext), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return out, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// With TLS client certificates only who has one gets in; what they ask for bears
// their name; a renewed certificate of the page is taken over.
func TestClientCertificates(t *testing.T) {
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	ours.issue("page", "lab1", false)
	ours.issue("ada", "ada\x1b[2J", false)
	others.issue("eve", "eve", false)
	conf, err := TLS(ours.file("page.pem"), ours.file("page.key"), ours.file("ours.pem"))
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	l.steer()
	n := l.newNight("tonight", 1, "box")
	s := l.page(Options{})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, lis, conf) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	base := "https://" + lis.Addr().String()
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	client := func(a *authority, name string) *http.Client {
		c := &tls.Config{RootCAs: roots}
		if name != "" {
			pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
			if err != nil {
				t.Fatal(err)
			}
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}, Timeout: 20 * time.Second}
	}
	ada := client(ours, "ada")
	defer ada.CloseIdleConnections()
	for name, c := range map[string]*http.Client{"nobody": client(nil, ""), "eve": client(others, "eve")} {
		if r, err := c.Get(base + "/"); err == nil {
			r.Body.Close()
			t.Errorf("%s gets in: %s", name, r.Status)
		}
		c.CloseIdleConnections()
	}
	r, err := ada.Get(base + "/runs/" + n.run.Name() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK || r.ProtoMajor != 2 || r.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s %s %v", r.Proto, r.Status, r.Header)
	}
	r.Body.Close()
	r, err = ada.Post(base+"/api/runs/"+n.run.Name()+"/control", "application/json", strings.NewReader(`{"action":"pause","lane":"box"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if q := l.requests(); r.StatusCode != http.StatusOK || len(q) != 1 || q[0].By != `"ada·[2J" at 127.0.0.1, kernsweep serve` {
		t.Errorf("%s %+v", r.Status, q)
	}
	was := r.TLS.PeerCertificates[0].SerialNumber
	ours.issue("page", "lab1", false)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(ours.file("page.pem"), later, later); err != nil {
		t.Fatal(err)
	}
	fresh := client(ours, "ada")
	defer fresh.CloseIdleConnections()
	if r, err = fresh.Get(base + "/"); err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.TLS.PeerCertificates[0].SerialNumber.Cmp(was) == 0 {
		t.Error("the renewed certificate is not used")
	}
	for _, bad := range [][3]string{{"nosuch", ours.file("page.key"), ""}, {ours.file("page.pem"), ours.file("ada.key"), ""}, {ours.file("page.pem"), ours.file("page.key"), ours.file("page.key")}} {
		if _, err := TLS(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
