package notify

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
)

// mailed is what the server of testdata/smtpd.py took.
type mailed struct {
	To   []string
	From string
	Text string
	TLS  bool
}

// mailServer is Debian's aiosmtpd in one of the modes of the attribute tls.
func mailServer(t *testing.T, mode string) (server, ca string, got <-chan mailed) {
	t.Helper()
	cert, key := certificate(t)
	// Its own interpreter: another one may come first in PATH, without the module.
	program, err := os.ReadFile(targetstest.Tool(t, "aiosmtpd"))
	if err != nil {
		t.Fatal(err)
	}
	python, _, _ := strings.Cut(strings.TrimPrefix(string(program), "#!"), "\n")
	c := exec.Command(strings.Fields(python)[0], "testdata/smtpd.py", mode, cert, key)
	c.Stderr = t.Output()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var at struct{ Port int }
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &at) != nil {
		t.Fatalf("the mail server does not start: %s", lines.Text())
	}
	mails, read := make(chan mailed, 20), make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() {
			var m mailed
			if json.Unmarshal(lines.Bytes(), &m) == nil {
				mails <- m
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-read
		_ = c.Wait()
	})
	return fmt.Sprintf("127.0.0.1:%d", at.Port), cert, mails
}

// certificate is one for 127.0.0.1 that signed itself.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestMailToAServer(t *testing.T) {
	t.Setenv("MAIL_PW", "hunter2")
	t.Setenv("WRONG_PW", "hunter3")
	_, other := "", ""
	if c, _ := certificate(t); c != "" {
		other = c
	}
	for mode, cases := range map[string]map[string]struct {
		change func(*SMTP)
		want   string // "" = sent
		part   bool
	}{
		"starttls": {
			"sent":                 {change: func(*SMTP) {}},
			"wrong password":       {change: func(s *SMTP) { s.PasswordEnv = "WRONG_PW" }, want: "535"},
			"not trusted":          {change: func(s *SMTP) { s.CAFile = other }, want: "certificate"},
			"one receiver refused": {change: func(s *SMTP) { s.To = []string{"me@lab.example", "nobody@lab.example"} }, want: "1 of 2 receivers", part: true},
			"all refused":          {change: func(s *SMTP) { s.To = []string{"nobody@lab.example"} }, want: "no such user"},
			"no password":          {change: func(s *SMTP) { s.PasswordEnv = "UNSET_PW" }, want: "UNSET_PW is not set"},
		},
		"implicit": {"sent": {change: func(s *SMTP) { s.TLS = "implicit" }}},
		"none": {
			"sent":          {change: func(s *SMTP) { s.TLS, s.User, s.PasswordEnv = "none", "", "" }},
			"wants no TLS":  {change: func(s *SMTP) {}, want: "STARTTLS"},
			"TLS to no TLS": {change: func(s *SMTP) { s.TLS, s.Timeout = "implicit", 2*time.Second }, want: "127.0.0.1"},
		},
	} {
		server, ca, got := mailServer(t, mode)
		for name, c := range cases {
			t.Run(mode+"/"+name, func(t *testing.T) {
				s := &SMTP{Server: server, User: "ada", PasswordEnv: "MAIL_PW", From: "kernsweep <lab@lab.example>", To: []string{"me@lab.example"}, CAFile: ca}
				c.change(s)
				if err := s.Check(); err != nil {
					t.Fatal(err)
				}
				e := sample()
				e.Subject = "kernsweep übernacht: 46 ok, 2 failed"
				err := s.Send(t.Context(), e)
				if c.want != "" {
					var p *PermanentError
					if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter") {
						t.Fatalf("%v, want %q", err, c.want)
					}
					if errors.As(err, &p) && p.Part != c.part {
						t.Errorf("part is %v", p.Part)
					}
				} else if err != nil {
					t.Fatal(err)
				}
				if c.want != "" && !c.part {
					return
				}
				m := <-got
				if !slices.Equal(m.To, []string{"me@lab.example"}) || m.TLS != (mode != "none") && mode != "implicit" ||
					!strings.Contains(m.Text, "Auto-Submitted: auto-generated") || !strings.Contains(m.Text, e.ID+"@") {
					t.Errorf("%+v", m)
				}
			})
		}
	}
}

// Mail servers that say nothing, or not yet, hold nobody up.
func TestMailServersThatDoNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		say       string
		want      string
		permanent bool
	}{
		"silent":    {"", "not done within 300ms", false},
		"busy":      {"421 4.3.2 try later\r\n", "421", false},
		"not a one": {"HTTP/1.1 400 Bad Request\r\n\r\n", "127.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = conn.Write([]byte(c.say)) // the client may be gone
				_, _ = conn.Read(make([]byte, 1))
			}()
			s := &SMTP{Server: l.Addr().String(), From: "a@b.example", To: []string{"c@d.example"}, Timeout: 300 * time.Millisecond}
			begin := time.Now()
			err = s.Send(t.Context(), sample())
			var p *PermanentError
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &p) != c.permanent || time.Since(begin) > 5*time.Second {
				t.Errorf("after %s: %v", time.Since(begin), err)
			}
			l.Close()
			<-done
		})
	}
}
