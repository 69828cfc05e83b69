package qemu

import (
	"context"
	"testing"
	"time"
)

// Another process finds a guest that runs, by its target's name.
func TestFindAGuest(t *testing.T) {
	gate <- struct{}{}
	defer func() { <-gate }()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	m, target, k := guest(t, "amd64", "6.1", "")
	m.traces = shortDir(t)
	g := guests{m.traces}
	if found, err := g.find(ctx, target.Name); err != nil || len(found) != 0 {
		t.Errorf("before it runs: %v, %v", found, err)
	}
	if err := m.Boot(ctx, target, k); err != nil {
		t.Fatal(err)
	}
	found, err := g.find(ctx, target.Name)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	plain := *target
	plain.SSH.Host, plain.SSH.Port, plain.SSH.HostKeys = "", 0, nil
	s, err := m.Join(found[0], &plain)
	if err != nil || s.Port != target.SSH.Port || s.Host != target.SSH.Host || len(s.HostKeys) != 1 || s.HostKeys[0] != target.SSH.HostKeys[0] {
		t.Errorf("%v: %+v, want %+v", err, s, target.SSH)
	}
	if found, err := g.find(ctx, "another"); err != nil || len(found) != 0 {
		t.Errorf("of another name: %v, %v", found, err)
	}
	if err := m.Set(ctx, false); err != nil {
		t.Fatal(err)
	}
	if found, err := g.find(ctx, target.Name); err != nil || len(found) != 0 {
		t.Errorf("after it went: %v, %v", found, err)
	}
}
