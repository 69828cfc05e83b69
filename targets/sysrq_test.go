package targets

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// Nothing is typed at a boot loader, whatever shows that one is there.
func TestSysRqNeverTypesIntoABootLoader(t *testing.T) {
	for name, says := range map[string]string{
		"U-Boot prompt": "U-Boot 2024.01\r\nHit any key to stop autoboot:  0\r\n=> ",
		"CFE":           "[   88.000000] reboot: Restarting system\r\nCFE version 1.0.37 for BCM947XX\r\nCFE> ",
		"RedBoot":       "RedBoot(tm) bootstrap and debug environment [ROMRAM]\r\n",
		"SYSLINUX":      "boot: ",
		"GRUB":          "GNU GRUB  version 2.06\r\n",
		"going down":    "[   88.000000] reboot: Restarting system\r\n",
		"prompt only":   "ath> ",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice()
				d.lines <- says
				err := RestartBy(t.Context(), d.target(), BySysRq)
				if err == nil || !strings.Contains(err.Error(), "a boot loader has the console") || d.typed != "" || d.breaks != 0 {
					t.Errorf("typed %q with %d breaks: %v", d.typed, d.breaks, err)
				}
			})
		})
	}
}

// The kernel's refusal is told, and a lost break is sent again.
func TestSysRqAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		key  func(d *device, c byte, breaks int)
		want string // in the error; "" none
	}{
		"disabled": {func(d *device, c byte, _ int) { d.lines <- "sysrq: This sysrq operation is disabled.\r\n" }, "refused the SysRq key b"},
		"old kernel": {func(d *device, c byte, _ int) {
			d.lines <- "SysRq : " + map[byte]string{'s': "Emergency Sync", 'u': "Emergency Remount R/O", 'b': "Resetting"}[c] + "\r\n"
		}, ""},
		"first break lost": {func(d *device, c byte, breaks int) {
			if breaks > 1 {
				d.lines <- "sysrq: " + map[byte]string{'s': "Emergency Sync", 'u': "Emergency Remount R/O", 'b': "Resetting"}[c] + "\r\n"
			}
		}, ""},
		"after a quiet start": {func(d *device, c byte, _ int) {
			d.lines <- "sysrq: " + map[byte]string{'s': "Emergency Sync", 'u': "Emergency Remount R/O", 'b': "Resetting"}[c] + "\r\n"
		}, ""},
		"stuck": {func(d *device, c byte, _ int) {
			if c != 'b' {
				d.lines <- "sysrq: x\r\n"
			}
		}, "did not start anew within 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice()
				d.lines <- "U-Boot 2024.01\r\n## Booting kernel from Legacy Image\r\nStarting kernel ...\r\n"
				if name == "after a quiet start" {
					d.lines <- "OpenWrt login: "
				} else {
					d.lines <- "[    9.000000] eth0: link up\r\n"
				}
				d.key = func(k byte, n int) { c.key(d, k, n) }
				err := RestartBy(t.Context(), d.target(), BySysRq)
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		})
	}
}

// A console without breaks: the command is typed at a root shell, and the Enter
// only after a whole echo.
func TestShellOnTheConsole(t *testing.T) {
	for name, c := range map[string]struct {
		prompt string
		garble int // so many echoes lose a character
		denied bool
		want   string
	}{
		"root":       {prompt: "root@OpenWrt:/# "},
		"noisy":      {prompt: "# ", garble: 2},
		"deaf":       {prompt: "# ", garble: 9, want: "does not echo"},
		"user":       {prompt: "$ ", denied: true, want: "may not do it"},
		"login":      {prompt: "OpenWrt login: ", want: "no shell is open"},
		"U-Boot #>":  {prompt: "ar7240> ", want: "a boot loader has the console"},
		"no console": {prompt: "", want: "no shell is open"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice()
				d.lines <- "[   20.000000] br-lan: port 1 entered forwarding state\r\n" + c.prompt
				line, entered, lost := "", 0, 0
				d.key = func(k byte, _ int) {
					switch {
					case c.prompt == "":
					case k == 0x15:
						line = ""
						d.lines <- "\r" + c.prompt
					case k != '\r':
						line += string(k)
						if len(line) == 20 && lost < c.garble {
							lost++
							return
						}
						d.lines <- string(k)
					case line == shellRestart:
						entered++
						if c.denied {
							d.lines <- "\r\nsh: can't create /proc/sysrq-trigger: Permission denied\r\n" + c.prompt
						} else {
							d.lines <- "\r\n[  99.000000] sysrq: Resetting\r\n"
						}
					default:
						line = ""
						d.lines <- "\r\n" + c.prompt
					}
				}
				tg := d.target()
				tg.Console = plainConsole{d}
				err := RestartBy(t.Context(), tg, BySysRq)
				if c.want == "" && (err != nil || entered != 1) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("entered %d times: %v, want %q", entered, err, c.want)
				}
			})
		})
	}
}

// plainConsole opens a line that cannot send a break.
type plainConsole struct{ d *device }

func (p plainConsole) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	l, err := p.d.Open(ctx)
	return struct{ io.ReadWriteCloser }{l}, err
}
