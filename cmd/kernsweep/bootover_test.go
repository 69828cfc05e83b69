package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
)

// A guest that ends by itself ends boot, which says so; Ctrl-C is no error.
func TestBootGuestEnds(t *testing.T) {
	var errw bytes.Buffer
	b := bootByHand{app: &app{file: "testbeds.hcl", runs: "runs", err: &errw}, t: &config.Target{Target: targets.Target{Name: "x86"}}}
	gone := make(chan struct{})
	close(gone)
	var s *statusError
	if err := b.untilOver(t.Context(), gone); !errors.As(err, &s) || s.status != exitInfra || !strings.Contains(err.Error(), "x86 has ended by itself") {
		t.Errorf("it says %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.untilOver(ctx, make(chan struct{})); err != nil {
		t.Errorf("after Ctrl-C it says %v", err)
	}
	b.sayRuns(targets.SSH{Host: "127.0.0.1", Port: 4022, User: "root", Key: "lab keys/id"})
	if got := errw.String(); !strings.Contains(got, "kernsweep shell x86\n") || !strings.Contains(got, "ssh -i 'lab keys/id' -p 4022 root@127.0.0.1\n") {
		t.Errorf("it says %q", got)
	}
}
