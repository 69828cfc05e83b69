package targets

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
)

var uuid = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// wellFormed reports whether s is one UUID and not the empty one.
func wellFormed(s string) bool {
	return uuid.FindString(s) == s && strings.Trim(s, "0-") != ""
}

// bootIDFrom accepts a probe's answer only when it ended well and holds exactly
// one UUID; notices around it do no harm.
func bootIDFrom(e Exit, stdout []byte) (string, error) {
	if !e.OK() {
		return "", fmt.Errorf("boot_id is not known yet: the probe %s", e)
	}
	ids := uuid.FindAllString(string(stdout), -1)
	if len(ids) != 1 || !wellFormed(ids[0]) {
		return "", fmt.Errorf("boot_id is not known yet: the probe printed %d identifiers in %.80q", len(ids), stdout)
	}
	return strings.ToLower(ids[0]), nil
}

// ReadBootID reads /proc/sys/kernel/random/boot_id. Any error means "not known
// yet", never "rebooted".
func ReadBootID(ctx context.Context, conn Conn) (string, error) {
	var out bytes.Buffer
	e, err := conn.Run(ctx, Cmd{
		Argv:   []string{"cat", "/proc/sys/kernel/random/boot_id"},
		Stdout: limited(&out, 4096),
	})
	if err != nil {
		return "", err
	}
	return bootIDFrom(e, out.Bytes())
}

// limitedBuffer drops what is beyond its limit, so that a mad machine costs no memory.
type limitedBuffer struct {
	b    *bytes.Buffer
	left int
}

func limited(b *bytes.Buffer, n int) *limitedBuffer { return &limitedBuffer{b, n} }

func (l *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.b.Write(p[:n])
	l.left -= n
	return len(p), nil
}
