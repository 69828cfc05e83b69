package boot

import (
	"fmt"
	"strings"
)

// GRUB's environment block is a file of 1024 bytes, which GRUB itself can only
// overwrite in place: a header, lines NAME=VALUE, and # to the end (GRUB manual,
// "The GRUB environment block").
const (
	envSize   = 1024
	envHeader = "# GRUB Environment Block\n"
)

// grubEnv is an environment block.
type grubEnv string

// check refuses what GRUB would not read or could not write.
func (e grubEnv) check() error {
	switch {
	case len(e) != envSize:
		return fmt.Errorf("it has %d bytes, and GRUB takes exactly %d", len(e), envSize)
	case !strings.HasPrefix(string(e), envHeader):
		return fmt.Errorf("it does not begin with %q", strings.TrimSpace(envHeader))
	case strings.Contains(string(e), "\x00"):
		return fmt.Errorf("it holds NUL bytes, as after a crash")
	}
	return nil
}

// get is the value of name, "" when it is not set.
func (e grubEnv) get(name string) string {
	for line := range strings.SplitSeq(string(e), "\n") {
		if v, ok := strings.CutPrefix(line, name+"="); ok {
			return v
		}
	}
	return ""
}

// set is the block with name set to value, which needs no escapes; "" takes the
// name out. Everything else stays as it is.
func (e grubEnv) set(name, value string) (grubEnv, error) {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(string(e), "\n") {
		if strings.HasSuffix(line, "\n") && !strings.HasPrefix(line, name+"=") {
			b.WriteString(line)
		}
	}
	if value != "" {
		b.WriteString(name + "=" + value + "\n")
	}
	if b.Len() > envSize {
		return "", fmt.Errorf("the environment block has no room for %s=%s", name, value)
	}
	return grubEnv(b.String() + strings.Repeat("#", envSize-b.Len())), nil
}
