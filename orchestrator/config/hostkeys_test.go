package config

import "testing"

func TestBadHostKey(t *testing.T) {
	const key = "AAAAC3NzaC1lZDI1NTE5AAAAIFpbvYIOb5xZOUFmaYJjt2dRk+gaBqHkb9ir2Kysnsxl"
	for line, ok := range map[string]bool{
		"ssh-ed25519 " + key:                     true,
		"ssh-ed25519 " + key + " root@router\n":  true,
		"ssh-rsa " + key:                         false,
		"ssh-ed25519 " + key[:20]:                false,
		"ssh-rsa AAAA":                           false,
		"ssh-rsa":                                false,
		"":                                       false,
		"SHA256:Acx+Rf/8YtAaru11wA2ewHH6CyARKN8": false,
		"ssh-ed25519 /////w==":                   false,
	} {
		if why := badHostKey(line); (why == "") != ok {
			t.Errorf("%q: %q", line, why)
		}
	}
}
