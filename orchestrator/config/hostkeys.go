package config

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"kernsweep/targets"
)

// badHostKey says what is wrong with a line as in a .pub file, "" for nothing:
// the type, and the base64 of a key that begins with the same type.
func badHostKey(line string) string {
	f := strings.Fields(line)
	if len(f) < 2 {
		return fmt.Sprintf("%q is no public key: TYPE and BASE64 are wanted, as in a .pub file", line)
	}
	raw, err := base64.StdEncoding.DecodeString(f[1])
	if err != nil || len(raw) < 4 {
		return fmt.Sprintf("%q is no public key: the part after %s is not whole", line, f[0])
	}
	n := binary.BigEndian.Uint32(raw)
	if uint64(n) > uint64(len(raw)-4) || string(raw[4:4+n]) != f[0] || int(n) == len(raw)-4 {
		return fmt.Sprintf("%q is no public key of type %s, or was cut", line, f[0])
	}
	return ""
}

func (l *loader) sshPaths(s *targets.SSH) {
	s.Key, s.PasswordFile, s.KnownHosts = l.absolute(s.Key), l.absolute(s.PasswordFile), l.absolute(s.KnownHosts)
	if s.ConfigFile != "none" {
		s.ConfigFile = l.absolute(s.ConfigFile)
	}
}
