package sshconn

import (
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// clientConfig is the configuration of one handshake.
func clientConfig(h host, keys *hostKeyCheck, a *authentication) *ssh.ClientConfig {
	supported := ssh.SupportedAlgorithms()
	c := &ssh.ClientConfig{
		User:              h.user,
		Auth:              a.methods,
		AuthCallback:      a.observe,
		HostKeyCallback:   keys.check,
		HostKeyAlgorithms: hostKeyAlgorithms(keys.preferred, h),
		BannerCallback:    func(string) error { return nil },
	}
	// AES-128-GCM costs the controller half of what ChaCha20 does.
	c.Ciphers = first("aes128-gcm@openssh.com", supported.Ciphers)
	c.KeyExchanges, c.MACs = withoutSHA1(supported.KeyExchanges), withoutSHA1(supported.MACs)
	if h.legacy {
		insecure := ssh.InsecureAlgorithms()
		c.Ciphers = slices.Concat(c.Ciphers, insecure.Ciphers)
		c.KeyExchanges = slices.Concat(supported.KeyExchanges, insecure.KeyExchanges)
		c.MACs = slices.Concat(supported.MACs, insecure.MACs)
	}
	return c
}

// hostKeyAlgorithms puts those that known_hosts can verify first, and after
// them the others, so that a changed key is reported as one instead of as a
// lack of common algorithms. Signatures with SHA-1 are for legacy devices. RSA
// comes last: Dropbear 2022.83 agrees to RSA signatures without having an RSA
// key, and then fails an assertion. h.noRSA leaves RSA out altogether.
func hostKeyAlgorithms(preferred []string, h host) []string {
	all := slices.Concat(preferred, []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
		ssh.KeyAlgoRSA, // with SHA-1
	})
	var unique []string
	for _, algorithm := range all {
		if !slices.Contains(unique, algorithm) && !(h.noRSA && isRSA(algorithm)) && (h.legacy || algorithm != ssh.KeyAlgoRSA) {
			unique = append(unique, algorithm)
		}
	}
	return unique
}

// withoutSHA1 leaves out what OpenSSH does not offer by itself either.
func withoutSHA1(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool {
		return strings.HasSuffix(s, "sha1") && s != "hmac-sha1" || s == "hmac-sha1-96"
	})
}

func isRSA(algorithm string) bool {
	return slices.Contains(signatureNames(ssh.KeyAlgoRSA), algorithm)
}

func first(one string, all []string) []string {
	rest := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
	return append([]string{one}, rest...)
}

// certAlgorithms are the certificate forms of host keys.
func certAlgorithms() []string {
	return []string{
		ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
		ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
	}
}
