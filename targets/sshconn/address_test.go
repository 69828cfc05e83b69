package sshconn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/targets"
)

// However a target is named, its address is what the ssh configuration makes of it.
func TestAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := "Host Box\n  HostName 10.1.2.3\n  Port 2222\nHost far\n  HostName 192.168.1.1\n  ProxyJump u@jump:24\nHost odd\n  HostName Odd.example\n  ProxyCommand  nc  %h %p\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]targets.SSH{
		"10.1.2.3:2222":                  {Host: "Box"},
		"10.1.2.3:2022":                  {Host: "Box", Port: 2022},
		"plain.example:22":               {Host: "Plain.Example"},
		"[fd00::1]:22":                   {Host: "fd00::1"},
		"jump:24 192.168.1.1:22":         {Host: "far"},
		"10.1.2.3:2222 192.168.1.1:2200": {Host: "192.168.1.1", Port: 2200, Via: []string{"Box"}},
		"proxycommand nc odd.example 22 odd.example:22": {Host: "odd"},
	} {
		s.ConfigFile = file
		got, err := New(nil).Address(t.Context(), s)
		if strings.ToLower(strings.Join(got, " ")) != want || err != nil {
			t.Errorf("%+v: %q, %v; want %q", s, got, err, want)
		}
	}
}
