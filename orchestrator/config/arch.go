package config

import (
	"fmt"
	"strings"
)

// archs are the architectures the agent can be built for, and their other names.
func archs() (names []string, others map[string]string) {
	return []string{"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x"},
		map[string]string{
			"mipsel": "mipsle", "mipseb": "mips", "mips64el": "mips64le", "x86_64": "amd64", "x86-64": "amd64", "x64": "amd64",
			"i386": "386", "i486": "386", "i586": "386", "i686": "386", "x86": "386", "aarch64": "arm64", "armhf": "arm", "armel": "arm",
			"armv5": "arm", "armv6": "arm", "armv7": "arm", "armv7l": "arm", "ppc64el": "ppc64le", "powerpc64": "ppc64", "riscv": "riscv64",
		}
}

// didYouMeanArch is the GOARCH that s stands for.
func didYouMeanArch(s string) string {
	valid, others := archs()
	if o := others[strings.ToLower(s)]; o != "" {
		return fmt.Sprintf("did you mean %q?", o)
	}
	return didYouMean(s, valid, "there are "+quoted(valid))
}
