package targets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"kernsweep/targets"
)

// README: boot

// GrubReboot boots a menu entry once: the entry is named after the kernel.
type GrubReboot struct {
	Prefix string `hcl:"prefix,optional" doc:"goes before the kernel's name to make the menu entry"`
}

// Boot asks, and returns before the system goes down. It does not judge.
func (g *GrubReboot) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	for _, argv := range [][]string{
		{"grub-reboot", g.Prefix + k.Name},
		{"sh", "-c", "(sleep 1; reboot) </dev/null >/dev/null 2>&1 &"},
	} {
		if e, err := t.Held.Run(ctx, targets.Cmd{Argv: argv}); err != nil {
			return err
		} else if !e.OK() {
			return fmt.Errorf("%s %s", argv[0], e)
		}
	}
	return nil
}

// Traits: it asks the running system, so Boot logs in first and fills Held.
func (*GrubReboot) Traits() targets.BootTraits { return targets.BootTraits{Running: true} }

// README: power

// ByteRelay is a USB relay that takes one byte.
type ByteRelay struct {
	Device string `hcl:"device" doc:"device file of the relay"`
}

// Check touches nothing: it is called while the configuration is read.
func (r *ByteRelay) Check() error {
	if r.Device == "" {
		return errors.New("device is empty")
	}
	return nil
}

// Set writes '1' or '0'.
func (r *ByteRelay) Set(_ context.Context, on bool) error {
	b := []byte("0")
	if on {
		b = []byte("1")
	}
	return os.WriteFile(r.Device, b, 0)
}

// README: console

// Port is a serial port of the controller, its speed already set by stty.
type Port struct {
	Device string `hcl:"device" doc:"device file of the port"`
}

// Open gives the bytes of the line; Close ends a read that waits.
func (p *Port) Open(context.Context) (io.ReadWriteCloser, error) {
	return os.OpenFile(p.Device, os.O_RDWR, 0)
}

// README: end

// printer stands for a link: it prints what would run on the target.
type printer struct{ targets.Conn }

func (printer) Run(_ context.Context, c targets.Cmd) (targets.Exit, error) {
	fmt.Println(c.Argv)
	return targets.Exit{}, nil
}

func Example() {
	var boot targets.Booter = &GrubReboot{Prefix: "kernsweep-"}
	err := boot.Boot(context.Background(), &targets.Target{Held: printer{}}, targets.Kernel{Name: "bfs"})
	fmt.Println(err, targets.TraitsOf(boot).Running)

	var power targets.Power = &ByteRelay{Device: "/dev/null"}
	fmt.Println(power.Set(context.Background(), true))

	var console targets.Console = &Port{Device: "/dev/null"}
	c, err := console.Open(context.Background())
	fmt.Println(c.Close(), err)
	// Output:
	// [grub-reboot kernsweep-bfs]
	// [sh -c (sleep 1; reboot) </dev/null >/dev/null 2>&1 &]
	// <nil> true
	// <nil>
	// <nil> <nil>
}
