package power

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"
)

// digest answers a challenge of digest authentication (RFC 7616, qop=auth) for
// one request.
func digest(challenge, method, uri, user, password string) (string, error) {
	scheme, rest, _ := strings.Cut(challenge, " ")
	if !strings.EqualFold(scheme, "Digest") {
		return "", fmt.Errorf("it asks for a login by %q, which is not known here", scheme)
	}
	p := challengeParts(rest)
	algorithm := strings.ToUpper(p["algorithm"])
	sum := map[string]func() hash.Hash{"": md5.New, "MD5": md5.New, "SHA-256": sha256.New}[algorithm]
	if sum == nil {
		return "", fmt.Errorf("it asks for a digest by %q, which is not known here", p["algorithm"])
	}
	if !strings.Contains(","+strings.ReplaceAll(p["qop"], " ", "")+",", ",auth,") || strings.ContainsAny(p["realm"]+p["nonce"]+p["opaque"], "\"\r\n") {
		return "", errors.New("it asks for a digest in a form that is not known here")
	}
	h := func(parts ...string) string {
		s := sum()
		s.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(s.Sum(nil))
	}
	const count = "00000001"
	cnonce := rand.Text()
	response := h(h(user, p["realm"], password), p["nonce"], count, cnonce, "auth", h(method, uri))
	a := fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s", qop=auth, nc=%s, cnonce="%s"`,
		user, p["realm"], p["nonce"], uri, response, count, cnonce)
	if algorithm != "" {
		a += ", algorithm=" + algorithm
	}
	if p["opaque"] != "" {
		a += `, opaque="` + p["opaque"] + `"`
	}
	return a, nil
}

// challengeParts splits name=value pairs, values in quotes or not.
func challengeParts(s string) map[string]string {
	parts := map[string]string{}
	for s = strings.TrimLeft(s, " ,"); s != ""; s = strings.TrimLeft(s, " ,") {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			break
		}
		value := ""
		if strings.HasPrefix(rest, `"`) {
			value, s, _ = strings.Cut(rest[1:], `"`)
		} else {
			value, s, _ = strings.Cut(rest, ",")
		}
		parts[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return parts
}

// answer makes what proves who asks, from the challenge in r, the reply to the
// same request without a login.
func (l Login) answer(r reply, method, uri string) (func(*http.Request) error, error) {
	if l.User == "" {
		return nil, errors.New("it asks for a password: set password_env")
	}
	p, err := l.password()
	if err != nil {
		return nil, err
	}
	a, err := digest(r.header.Get("WWW-Authenticate"), method, uri, l.User, p)
	if err != nil {
		return nil, err
	}
	return func(req *http.Request) error { req.Header.Set("Authorization", a); return nil }, nil
}
