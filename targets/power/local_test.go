package power

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
)

func TestWOL(t *testing.T) {
	c, err := net.ListenPacket("udp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	port := c.LocalAddr().(*net.UDPAddr).Port
	t.Setenv("KERNSWEEP_TEST_SECUREON", "01:02:03:04:05:06")
	mac := []byte{0x00, 0x1b, 0x21, 0x0a, 0x0b, 0x0c}
	want := append(bytes.Repeat([]byte{0xff}, 6), bytes.Repeat(mac, 16)...)
	for _, d := range []*WOL{
		{MAC: "00:1B:21:0A:0B:0C", Address: fmt.Sprintf("127.0.0.1:%d", port)},
		{MAC: "001b.210a.0b0c", Address: fmt.Sprintf("127.255.255.255:%d", port), Interface: "lo"},
		{MAC: "00-1b-21-0a-0b-0c", Address: fmt.Sprintf("127.0.0.1:%d", port), SecureOnEnv: "KERNSWEEP_TEST_SECUREON"},
	} {
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
		if err := d.Set(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		whole := want
		if d.SecureOnEnv != "" {
			whole = append(bytes.Clone(want), 1, 2, 3, 4, 5, 6)
		}
		for range wolPackets {
			b := make([]byte, 200)
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			n, _, err := c.ReadFrom(b)
			if err != nil || !bytes.Equal(b[:n], whole) {
				t.Fatalf("%+v: %x %v", d, b[:n], err)
			}
		}
		if o := d.Owns(); len(o) != 1 || o[0] != "MAC 00:1b:21:0a:0b:0c" {
			t.Errorf("owns %s", o)
		}
	}
	var cannot *targets.CannotError
	if err := (&WOL{MAC: "00:1b:21:0a:0b:0c"}).Set(t.Context(), false); !errors.As(err, &cannot) {
		t.Errorf("off gives %v", err)
	}
	mark := filepath.Join(t.TempDir(), "off")
	if err := (&WOL{MAC: "00:1b:21:0a:0b:0c", Off: []string{"touch", mark}}).Set(t.Context(), false); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
	if err := (&WOL{MAC: "00:1b:21:0a:0b:0c", Interface: "nosuch0"}).Set(t.Context(), true); err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Error(err)
	}
	n := &net.IPNet{IP: net.IPv4(192, 168, 7, 12), Mask: net.CIDRMask(20, 32)}
	if b := broadcast(n).String(); b != "192.168.15.255" {
		t.Errorf("broadcast %s", b)
	}
}

// relayPrograms behave as their manuals say; $RELAY_STATE is the relay.
var relayPrograms = map[string]string{
	"usbrelay": `case $1 in
"") echo "HURTM_1=0"; echo "HURTM_2=$(cat "$RELAY_STATE")" ;;
HURTM_2=[01]) echo "${1#*=}" >"$RELAY_STATE" ;;
*) echo "unable to open device" >&2; exit 1 ;;
esac`,
	"hidusb-relay-cmd": `[ "$1" = id=BITFT ] || { echo "relay with ID not found" >&2; exit 1; }
case "$2 $3" in
"status ") [ "$(cat "$RELAY_STATE")" = 1 ] && s=ON || s=OFF; echo "Board ID=[BITFT] State: R1=OFF R2=$s" ;;
"ON 2") echo 1 >"$RELAY_STATE" ;;
"OFF 2") echo 0 >"$RELAY_STATE" ;;
*) echo "usage" >&2; exit 2 ;;
esac`,
	"gpioset": `if [ "$1" = --version ]; then echo "gpioset (libgpiod) v$GPIOD"; exit 0; fi
case "$GPIOD $*" in
"1.6.3 --mode=exit gpiochip0 17="[01] | "2.1 --toggle 0 --chip gpiochip0 17="[01]) for a; do :; done; echo "${a#*=}" >"$RELAY_STATE" ;;
*) echo "invalid arguments: $*" >&2; exit 1 ;;
esac`,
}

func TestRelay(t *testing.T) {
	dir := t.TempDir()
	state := file(t, filepath.Join(dir, "value"), "0\n", 0o600)
	for name, text := range relayPrograms {
		file(t, filepath.Join(dir, name), "#!/bin/sh\n"+text+"\n", 0o755)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("RELAY_STATE", state)
	for name, d := range map[string]*Relay{
		"usbrelay":         {Tool: "usbrelay", Device: "HURTM", Socket: "2"},
		"inverted":         {Tool: "usbrelay", Device: "HURTM", Socket: "02", Inverted: true},
		"hidusb-relay-cmd": {Tool: "hidusb-relay-cmd", Device: "BITFT", Socket: "2"},
		"gpioset 1.6.3":    {Tool: "gpioset", Device: "0", Socket: "17"},
		"gpioset 2.1":      {Tool: "gpioset", Device: "/dev/gpiochip0", Socket: "17"},
		"sysfs":            {Tool: "sysfs", Device: state},
	} {
		t.Run(name, func(t *testing.T) {
			_, version, _ := strings.Cut(name, " ")
			t.Setenv("GPIOD", version)
			pulled := func() bool { b, _ := os.ReadFile(state); return strings.TrimSpace(string(b)) == "1" }
			if d.Inverted {
				file(t, state, "1\n", 0o600)
			}
			dead := *d
			dead.Device = "NONE"
			if d.Tool == "sysfs" {
				dead.Device = filepath.Join(dir, "none")
			}
			conform(t, rig{driver: d, address: d.Tool, on: func() bool { return pulled() != d.Inverted }, dead: &dead})
			if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
				t.Error("a value file was made")
			}
			file(t, state, "0\n", 0o600)
		})
	}
	file(t, filepath.Join(dir, "usbrelay"), "#!/bin/sh\n[ $# = 0 ] && echo HURTM_2=0\nexit 0\n", 0o755)
	err := (&Relay{Tool: "usbrelay", Device: "HURTM", Socket: "2", Deadline: time.Second}).Set(t.Context(), true)
	if err == nil || !strings.Contains(err.Error(), "reads back off") {
		t.Errorf("a relay that does not move: %v", err)
	}
}
