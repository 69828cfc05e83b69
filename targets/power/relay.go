package power

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"kernsweep/targets"
)

// Relay is a relay at the controller, on USB or on a GPIO line, moved by the
// usual programs. The state is read back where the program can tell it.
type Relay struct {
	Tool     string        `hcl:"tool" doc:"\"usbrelay\", \"hidusb-relay-cmd\", \"gpioset\" (libgpiod 1 or 2) or \"sysfs\" (a GPIO value file)"`
	Device   string        `hcl:"device" doc:"serial of the relay (usbrelay: the part before _; hidusb-relay-cmd: ID), GPIO chip, or value file"`
	Socket   string        `hcl:"outlet,optional" doc:"number of the relay, or of the GPIO line; a value file has none"`
	Inverted bool          `hcl:"inverted,optional" doc:"true: a relay that is pulled (or a line at 0) switches the target off (on)"`
	Deadline time.Duration `hcl:"deadline,optional" doc:"the relay must be moved within this (default 30s)"`
}

// Check refuses what names no relay.
func (d *Relay) Check() error {
	switch d.Tool {
	case "usbrelay", "hidusb-relay-cmd", "gpioset":
		if number(d.Socket) == "" {
			return fmt.Errorf("outlet = %q: want the number of the relay or line", d.Socket)
		}
	case "sysfs":
		if d.Socket != "" {
			return errors.New("a value file has no outlet: name the line's file in device")
		}
		if !filepath.IsAbs(d.Device) {
			return fmt.Errorf("device = %q: want the path of a value file, such as /sys/class/gpio/gpio17/value", d.Device)
		}
	default:
		return fmt.Errorf("tool = %q: want \"usbrelay\", \"hidusb-relay-cmd\", \"gpioset\" or \"sysfs\"; for another program there is power \"command\"", d.Tool)
	}
	if d.Device == "" || strings.HasPrefix(d.Device, "-") || strings.ContainsAny(d.Device, " \t\n=") {
		return fmt.Errorf("device = %q names no relay", d.Device)
	}
	return notNegative(d.Deadline)
}

// Programs are what the tool needs.
func (d *Relay) Programs(*targets.Target) []string {
	if d.Tool == "sysfs" {
		return nil
	}
	return []string{d.Tool}
}

// Outlet names the relay. Both USB programs drive the same devices.
func (d *Relay) Outlet() (strip, outlet string) {
	switch {
	case d.Device == "":
		return "", ""
	case d.Tool == "sysfs":
		return "gpio", filepath.Clean(d.Device)
	case d.Tool == "gpioset":
		return "gpio " + d.chip(), number(d.Socket)
	}
	return "usb relay " + d.Device, number(d.Socket)
}

// chip is the GPIO chip as libgpiod 2 names it: "0" and "/dev/gpiochip0" are the
// same.
func (d *Relay) chip() string {
	c := strings.TrimPrefix(d.Device, "/dev/")
	if n := number(c); n != "" {
		return "gpiochip" + n
	}
	return c
}

// Set moves the relay and reads back where that is possible.
func (d *Relay) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, d.Deadline)
	defer stop()
	where := strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Tool, d.Device, d.Socket))
	return failed(ctx, on, where, d.set(ctx, on != d.Inverted, on))
}

// set moves the relay to pulled, which means on for the target.
func (d *Relay) set(ctx context.Context, pulled, on bool) error {
	if err := ctx.Err(); err != nil {
		return err // a file asks no context
	}
	value := map[bool]string{true: "1", false: "0"}[pulled]
	var read func(context.Context) (bool, error)
	var err error
	switch d.Tool {
	case "usbrelay":
		_, err = output(ctx, d.Tool, fmt.Sprintf("%s_%s=%s", d.Device, number(d.Socket), value))
		read = d.readUSBRelay
	case "hidusb-relay-cmd":
		_, err = output(ctx, d.Tool, "id="+d.Device, strings.ToUpper(word(pulled)), number(d.Socket))
		read = d.readHID
	case "gpioset":
		return d.gpioset(ctx, value) // to read the line would make it an input
	default:
		err = writeExisting(d.Device, value)
		read = d.readFile
	}
	if err != nil {
		return err
	}
	return confirm(ctx, on, func(ctx context.Context) (bool, error) {
		is, err := read(ctx)
		return is != d.Inverted, err
	})
}

// readUSBRelay: without arguments it lists all, "HURTM_1=1" to a line.
func (d *Relay) readUSBRelay(ctx context.Context) (bool, error) {
	said, err := output(ctx, d.Tool)
	if err != nil {
		return false, err
	}
	return found(said, regexp.QuoteMeta(d.Device+"_"+number(d.Socket))+`=([01])\b`, "1")
}

// readHID: "Board ID=[BITFT] State: R1=ON R2=OFF".
func (d *Relay) readHID(ctx context.Context) (bool, error) {
	said, err := output(ctx, d.Tool, "id="+d.Device, "status")
	if err != nil {
		return false, err
	}
	return found(said, `\bR`+number(d.Socket)+`=(ON|OFF)\b`, "ON")
}

func (d *Relay) readFile(context.Context) (bool, error) {
	b, err := os.ReadFile(d.Device)
	if err != nil {
		return false, err
	}
	return found(string(b), `^\s*([01])\s*$`, "1")
}

// writeExisting never makes a file: sysfs has the line's, or it is not exported.
func writeExisting(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func found(said, pattern, yes string) (bool, error) {
	m := regexp.MustCompile(pattern).FindStringSubmatch(said)
	if m == nil {
		return false, fmt.Errorf("it does not tell the state of that relay: %.200q", said)
	}
	return m[1] == yes, nil
}

// gpioset sets the line and ends; what the line does then is up to the chip's
// driver, and most keep it. Version 2 must be told to end (gpioset(1), -t0).
func (d *Relay) gpioset(ctx context.Context, value string) error {
	said, err := output(ctx, d.Tool, "--version")
	if err != nil {
		return err
	}
	m := regexp.MustCompile(`v?(\d+)\.\d+`).FindStringSubmatch(said)
	if m == nil {
		return fmt.Errorf("gpioset --version tells no version: %.100q", said)
	}
	line := number(d.Socket) + "=" + value
	argv := []string{"--toggle", "0", "--chip", d.chip(), line}
	if m[1] == "0" || m[1] == "1" {
		argv = []string{"--mode=exit", d.chip(), line}
	}
	_, err = output(ctx, d.Tool, argv...)
	return err
}

// maxSaid bounds what is kept of a program's output.
const maxSaid = 16 << 10

// output runs a program in a process group of its own and returns what it said.
func output(ctx context.Context, name string, args ...string) (string, error) {
	var said bounded
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = &said, &said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 2 * time.Second
	err := c.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("%s: %w; it said: %.300q", strings.Join(append([]string{name}, args...), " "), err, strings.TrimSpace(said.b.String()))
	}
	return said.b.String(), nil
}

// bounded keeps the first bytes written to it.
type bounded struct{ b bytes.Buffer }

func (w *bounded) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), maxSaid-w.b.Len())])
	return len(p), nil
}
