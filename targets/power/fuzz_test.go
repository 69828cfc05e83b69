package power

import (
	"net/url"
	"strings"
	"testing"
)

// Whatever a device sends as its challenge, the answer is one header line without
// the password, or an error.
func FuzzDigest(f *testing.F) {
	f.Add(`Digest qop="auth", realm="x", nonce="1", algorithm=SHA-256`)
	f.Add(`Digest realm="a,b=c", qop="auth,auth-int", nonce=`)
	f.Add("Digest qop=auth, realm=\"\r\nX: y\"")
	f.Fuzz(func(t *testing.T, challenge string) {
		a, err := digest(challenge, "GET", "/rpc", "admin", "pa55phrase")
		if err == nil && (strings.ContainsAny(a, "\r\n") || strings.Contains(a, "pa55phrase") || strings.Count(a, `"`)%2 != 0) {
			t.Errorf("%q gives %q", challenge, a)
		}
	})
}

// What is taken for an address names one host, and comes back the same when it
// is spelt as we spell it.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"pdu-1", "PDU-1:161", "::1", "[fe80::1]:1610", "http://plug1:80/", "a:b:c", "1.2.3.4:0080"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if host, port, err := splitAddress(address, "161"); err == nil {
			name := stripName(host, port, "161")
			host2, port2, err := splitAddress(name, "161")
			if err != nil || stripName(host2, port2, "161") != name {
				t.Errorf("%q is spelt %q, and that %q %v", address, name, stripName(host2, port2, "161"), err)
			}
		}
		if u, err := baseURL(address, "http"); err == nil {
			if again, err := url.Parse(u.String()); err != nil || again.Host != u.Host || u.User != nil {
				t.Errorf("%q gives %q %v", address, u, err)
			}
		}
	})
}
