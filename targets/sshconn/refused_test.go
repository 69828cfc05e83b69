package sshconn

import (
	"errors"
	"testing"

	"go.uber.org/zap/zaptest"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// What no patience cures is told apart from what may pass.
func TestRefusedForGood(t *testing.T) {
	d := targetstest.SSHD(t)
	unknown := d.SSH
	unknown.KnownHosts = "/dev/null"
	gone := d.SSH
	gone.Port = targetstest.FreePort(t)
	badKey := d.SSH
	badKey.Key = "/nonexistent"
	for name, c := range map[string]struct {
		ssh     targets.SSH
		refused bool
	}{"unknown host key": {unknown, true}, "key file missing": {badKey, true}, "nobody listens": {gone, false}} {
		_, err := New(zaptest.NewLogger(t)).Dial(t.Context(), c.ssh, targets.DialOptions{})
		var link *targets.LinkError
		if !errors.As(err, &link) || link.Refused != c.refused {
			t.Errorf("%s: refused %v, want %v: %v", name, link != nil && link.Refused, c.refused, err)
		}
	}
}
