package sshconn

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// dial logs in to s with a fresh Dialer, within a deadline.
func dial(t testing.TB, s targets.SSH, o targets.DialOptions) targets.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := New(zaptest.NewLogger(t, zaptest.WrapOptions())).Dial(ctx, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(t *testing.T) *targetstest.Daemon
	}{
		{"OpenSSH", func(t *testing.T) *targetstest.Daemon { return targetstest.SSHD(t) }},
		{"OpenSSH without SFTP", func(t *testing.T) *targetstest.Daemon { return targetstest.SSHD(t, "#no-sftp") }},
		{"Dropbear", func(t *testing.T) *targetstest.Daemon { return targetstest.Dropbear(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.start(t)
			targetstest.RunConn(t, func(t *testing.T) targets.Conn { return dial(t, d.SSH, targets.DialOptions{}) })
		})
	}
}
