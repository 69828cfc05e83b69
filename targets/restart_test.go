package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// device is a scripted machine with a supply and a serial line: what it does is
// told by functions, which may be nil.
type device struct {
	*machine
	mu     sync.Mutex
	lines  chan string // what the console says
	typed  string
	breaks int
	sets   []bool
	reboot func()              // its system was asked to reboot, over SSH
	key    func(c byte, n int) // a character came at the console, after n breaks
	power  func(on bool) error
}

func newDevice() *device { return &device{machine: newMachine(), lines: make(chan string, 100)} }

func (d *device) target() *Target {
	return &Target{Name: "dev", Dial: d.dialDevice, Power: d, Console: d}
}

// dialDevice gives links whose commands may be the request to reboot.
func (d *device) dialDevice(ctx context.Context, s SSH, o DialOptions) (Conn, error) {
	c, err := d.machine.dial(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return &deviceConn{c, d}, nil
}

type deviceConn struct {
	Conn
	d *device
}

func (c *deviceConn) Run(ctx context.Context, cmd Cmd) (Exit, error) {
	if len(cmd.Argv) > 2 && cmd.Argv[2] == rebootScript {
		if c.d.reboot != nil {
			c.d.reboot()
		}
		return Exit{}, nil
	}
	return c.Conn.Run(ctx, cmd)
}

func (d *device) Set(_ context.Context, on bool) error {
	d.mu.Lock()
	d.sets = append(d.sets, on)
	d.mu.Unlock()
	if d.power == nil {
		return errors.New("the strip does not answer")
	}
	return d.power(on)
}

func (d *device) Open(context.Context) (io.ReadWriteCloser, error) {
	return &deviceLine{d: d, closed: make(chan struct{})}, nil
}

type deviceLine struct {
	d      *device
	once   sync.Once
	closed chan struct{}
	rest   string
}

func (l *deviceLine) Read(b []byte) (int, error) {
	if l.rest == "" {
		select {
		case l.rest = <-l.d.lines:
		case <-l.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *deviceLine) Write(b []byte) (int, error) {
	l.d.mu.Lock()
	l.d.typed += string(b)
	key, n := l.d.key, l.d.breaks
	l.d.mu.Unlock()
	for _, c := range b {
		if key != nil {
			key(c, n)
		}
	}
	return len(b), nil
}

func (l *deviceLine) Break(context.Context) error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.d.breaks++
	return nil
}

func (l *deviceLine) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// comeUp is a firmware and a kernel on the console, and then SSH with a new boot.
func (d *device) comeUp(after time.Duration, id, release string) {
	go func() {
		<-time.After(after / 2)
		d.lines <- "U-Boot 2024.01\r\n"
		d.lines <- "[    0.000000] Linux version " + release + " (x) #1 SMP\r\n"
		<-time.After(after / 2)
		d.machine.set(func(m *machine) { m.up, m.id, m.release = true, id, release })
	}()
}

func (d *device) goDown() { d.machine.set(func(m *machine) { m.up = false }) }

// sysrq is a kernel that listens to the magic key.
func (d *device) sysrq(then func()) {
	taken := 0
	d.key = func(c byte, breaks int) {
		if breaks <= taken {
			return // without a break it is a character like any other
		}
		taken = breaks
		switch c {
		case 's':
			d.lines <- "[ 1234.567890] sysrq: Emergency Sync\r\n"
		case 'u':
			d.lines <- "[ 1234.867890] sysrq: Emergency Remount R/O\r\n[ 1235.000000] Emergency Remount complete\r\n"
		case 'b':
			d.lines <- "[ 1236.000000] sysrq: Resetting\r\n"
			then()
		}
	}
}

// A slow shut-down is waited for, and the console ends the wait at once.
func TestRestartBySSHWaitsUntilItIsUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		most time.Duration
	}{"SSH goes": {"", 63 * time.Second}, "the console tells": {"[  700.000000] reboot: Restarting system\r\n", 46 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice()
				d.reboot = func() {
					go func() {
						<-time.After(45 * time.Second)
						if c.says != "" {
							d.lines <- c.says
						}
						<-time.After(15 * time.Second)
						d.goDown()
					}()
				}
				begin := time.Now()
				how, err := Restart(t.Context(), d.target())
				if took := time.Since(begin); err != nil || how != "ssh" || took < 45*time.Second || took > c.most {
					t.Errorf("%q, %v after %s", how, err, took)
				}
				<-time.After(time.Minute) // the scripted machine ends
				if d.typed != "" || d.sets != nil {
					t.Errorf("typed %q, power %v", d.typed, d.sets)
				}
			})
		})
	}
}

// A system that says yes and stays up is not taken for one that rebooted.
func TestRestartEscalates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		d.sysrq(d.goDown)
		begin := time.Now()
		how, err := Restart(t.Context(), d.target())
		if err != nil || !strings.HasPrefix(how, "sysrq (ssh: ") || !strings.Contains(how, "still up after 2m0s") {
			t.Errorf("%q, %v", how, err)
		}
		if d.typed != "sub" || d.breaks != 3 || d.sets != nil {
			t.Errorf("typed %q with %d breaks, power %v", d.typed, d.breaks, d.sets)
		}
		if took := time.Since(begin); took > 140*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestRestartByPowerWhenAllElseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		d.goDown()
		d.power = func(bool) error { return nil }
		how, err := Restart(t.Context(), d.target())
		if err != nil || !strings.HasPrefix(how, "power (ssh: connect: connection refused; sysrq: no answer within 3s to a break") {
			t.Errorf("%q, %v", how, err)
		}
		if fmt.Sprint(d.sets) != "[false true]" {
			t.Errorf("power %v", d.sets)
		}
		if strings.Trim(d.typed, "s#\r") != "" { // the key, and the comment that asks for a shell
			t.Errorf("typed %q", d.typed)
		}
	})
}

func TestRestartThatCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tg := &Target{Name: "dev", Dial: (&machine{}).dial}
		_, err := Restart(t.Context(), tg)
		if err == nil || err.Error() != "target dev cannot be restarted: ssh: connect: connection refused; sysrq: target dev has no console block; power: target dev has no power block" {
			t.Error(err)
		}
		d := newDevice()
		d.goDown()
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := Restart(ctx, d.target()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
