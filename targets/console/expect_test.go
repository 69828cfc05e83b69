package console

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
)

func TestExpect(t *testing.T) {
	b := uboot()
	b.Run = func(b *targetstest.BootLoader, line string) bool {
		for _, c := range "one\r\n\x1b[31mtwo\x1b[0m and thr\bee\r\n" {
			b.Say(string(c))
		}
		b.Wait(time.Hour)
		return true
	}
	drive(t, b, func(t *testing.T, ctx context.Context, d *Dialogue) error {
		if _, err := d.Interrupt(ctx, time.Minute, keys); err != nil {
			return err
		}
		if err := d.Type(ctx, "x"); err != nil {
			return err
		}
		if err := d.enter(ctx, "x"); err != nil {
			return err
		}
		which, said, err := d.Expect(ctx, time.Minute, regexp.MustCompile(`and \w+\n`), regexp.MustCompile(`two `))
		if which != 1 || said != "one\ntwo " || err != nil {
			t.Errorf("%d %q %v", which, said, err)
		}
		_, _, err = d.Expect(ctx, time.Minute, regexp.MustCompile(`never`))
		if err == nil || !strings.Contains(err.Error(), `did not show "never" within 1m0s; its last lines: "and the`) {
			t.Error(err)
		}
		return nil
	})
}

func TestEchoed(t *testing.T) {
	prompt := func(s []byte) int {
		if strings.HasPrefix(string(s), "=> ") {
			return 3
		}
		return 0
	}
	for _, c := range []struct {
		line, got string
		want      bool
	}{
		{"bootm", "bootm", true}, {"bootm", "boom", false}, {"bootm", "boottm", false}, {"bootm", "bootmm", false}, {"bootm", "", false},
		{"bootm", "bo[ 1.0] usb\notm", true}, {"bootm", "bo\n[ 1.0] usb\notm", true}, {"bootm", "bo[ 1.0] usb otm", false},
		{"bootm", "bo[ 1.0] usb\n=> bootm", true}, {"bootm", "bo[ 1.0] usb\n=> otm", false}, {"bootm", "bo[ 1.0] usb\ntm", false},
		{"bootm", "bootm[ 1.0] b\n", true}, {"bootm", "bootm[ 1.0", false}, {"bootm", "b\nUnknown command 'b'\n=> ootm", false},
		{"a b", "b\na b", true}, {strings.Repeat("a", 200), strings.Repeat("a\na", 100), true},
		{strings.Repeat("a", 200), strings.Repeat("a\na", 99), false},
	} {
		if got := echoed([]byte(c.line), []byte(c.got), prompt); got != c.want {
			t.Errorf("%q as the echo of %q: %v", c.got, c.line, got)
		}
	}
}

// Any chunks of any bytes: no panic, bounded memory, the same text.
func FuzzText(f *testing.F) {
	f.Add([]byte("\x1b[31mx\b\by\r\n\x1b]0;title\x07=> "), 3)
	f.Fuzz(func(t *testing.T, p []byte, at int) {
		var whole, parts text
		whole.add(p)
		at = min(max(at, 0), len(p))
		parts.add(p[:at])
		parts.add(p[at:])
		if string(whole.buf) != string(parts.buf) && len(p) < keepText {
			t.Errorf("%q and %q", whole.buf, parts.buf)
		}
		if len(whole.buf) > keepText {
			t.Error(len(whole.buf))
		}
	})
}

func TestTelnetSkip(t *testing.T) {
	var s telnetSkip
	got := ""
	for _, c := range []byte("a\xff\xfb\x01b\xff\xfa\x18\x00x\xff\xf0c\xff\xf1d") {
		got += string(s.text([]byte{c}))
	}
	if got != "abcd" {
		t.Error(got)
	}
}
