package targetstest

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// BootLoader is a scripted boot loader on a serial line, with the faults of real
// ones. It is a targets.Console and a targets.Power, and runs under
// testing/synctest. Set its fields before the first Open.
type BootLoader struct {
	Banner   string        // said at power-on
	Deaf     time.Duration // input is ignored for so long after the banner
	Window   time.Duration // then a key of Stops ends the countdown; 0: it always stops
	Stops    string        // keys that stop it; "" any
	Needed   int           // how many of them it takes, 0 is one
	Prompt   string
	CtrlC    string                                        // said after ^C, before the prompt; "" the key is ignored
	Flash    string                                        // said when the countdown runs out
	Longest  int                                           // characters the line takes; more are dropped
	Run      func(b *BootLoader, line string) (stays bool) // a command; false: the loader is gone
	Drop     int                                           // every nth character typed at the prompt is lost
	Double   int                                           // every nth is doubled
	Faults   int                                           // at most so many of these; 0: no limit
	Noise    string                                        // said behind every NoiseAt-th character typed
	NoiseAt  int
	FromOff  bool // it begins switched off
	Sessions int  // power-ons so far

	mu    sync.Mutex
	line  net.Conn
	in    chan byte
	stop  context.CancelFunc
	ended chan struct{}
	ctx   context.Context
	typed []string // commands given
	keys  int      // characters typed at the prompt
	hits  int      // faults done
	lost  string   // what was typed when nobody wanted it
}

// Open attaches the one reader of the line and, unless FromOff, switches on.
func (b *BootLoader) Open(context.Context) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	b.mu.Lock()
	b.line = ours
	on := b.stop == nil && !b.FromOff
	b.mu.Unlock()
	go b.read(ours)
	if on {
		return theirs, b.Set(context.Background(), true)
	}
	return theirs, nil
}

// read takes what is typed, until the line is closed.
func (b *BootLoader) read(c net.Conn) {
	buf := make([]byte, 256)
	for {
		n, err := c.Read(buf)
		for _, k := range buf[:n] {
			b.mu.Lock()
			in := b.in
			b.mu.Unlock()
			select {
			case in <- k:
			default: // off, or its FIFO is full
			}
		}
		if err != nil {
			return
		}
	}
}

// Set switches the supply.
func (b *BootLoader) Set(_ context.Context, on bool) error {
	b.mu.Lock()
	stop, ended := b.stop, b.ended
	b.mu.Unlock()
	if !on && stop != nil {
		stop()
		<-ended
		b.mu.Lock()
		b.stop, b.in = nil, nil
		b.mu.Unlock()
	}
	if on && stop == nil {
		b.mu.Lock()
		b.ctx, b.stop = context.WithCancel(context.Background())
		b.in, b.ended = make(chan byte, 4096), make(chan struct{})
		b.Sessions++
		b.mu.Unlock()
		go b.live()
	}
	return nil
}

// Close switches off for good.
func (b *BootLoader) Close() error {
	err := b.Set(context.Background(), false)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line != nil {
		b.line.Close()
	}
	return err
}

// live is from power-on to power-off. A command may Restart it.
func (b *BootLoader) live() {
	defer close(b.ended)
	for b.ctx.Err() == nil {
		b.Say(b.Banner)
		if b.Deaf > 0 {
			for end := time.Now().Add(b.Deaf); ; {
				if _, ok := b.key(time.Until(end)); !ok {
					break
				}
			}
		}
		if b.countdown() && b.prompt() {
			continue
		}
		b.system()
	}
}

// countdown reports whether it was stopped.
func (b *BootLoader) countdown() bool {
	if b.Window <= 0 {
		return true
	}
	n := 0
	for end := time.Now().Add(b.Window); ; {
		k, ok := b.key(time.Until(end))
		if !ok {
			b.Say(b.Flash)
			return false
		}
		if b.Stops == "" || strings.IndexByte(b.Stops, k) >= 0 {
			if n++; n >= max(b.Needed, 1) {
				b.Say("\r\n")
				return true
			}
		}
	}
}

// system swallows what is typed, as a running system without a login does.
func (b *BootLoader) system() {
	for {
		k, ok := b.key(time.Hour)
		if b.ctx.Err() != nil {
			return
		}
		if ok {
			b.mu.Lock()
			b.lost += string(rune(k))
			b.mu.Unlock()
		}
	}
}

// key waits for a character.
func (b *BootLoader) key(wait time.Duration) (byte, bool) {
	t := time.NewTimer(max(wait, 0))
	defer t.Stop()
	select {
	case k := <-b.in:
		return k, true
	case <-t.C:
	case <-b.ctx.Done():
	}
	return 0, false
}

// prompt reads and runs commands; it reports a restart.
func (b *BootLoader) prompt() (again bool) {
	b.Say(b.Prompt)
	line := ""
	for b.ctx.Err() == nil {
		k, ok := b.key(time.Hour)
		if !ok {
			continue
		}
		for range b.faulty(k) {
			switch k {
			case 3:
				if b.CtrlC != "" {
					line = ""
					b.Say(b.CtrlC + b.Prompt)
				}
			case '\b', 0x7f:
				if line != "" {
					line = line[:len(line)-1]
					b.Say("\b \b")
				}
			case '\r':
				b.Say("\r\n")
				cmd := line
				line = ""
				if cmd != "" {
					b.mu.Lock()
					b.typed = append(b.typed, cmd)
					sessions := b.Sessions
					b.mu.Unlock()
					if !b.Run(b, cmd) {
						b.mu.Lock()
						defer b.mu.Unlock()
						return b.Sessions != sessions
					}
				}
				b.Say(b.Prompt)
			default:
				if k < ' ' || b.Longest > 0 && len(line) >= b.Longest {
					continue
				}
				line += string(rune(k))
				b.Say(string(rune(k)))
			}
		}
	}
	return false
}

// faulty says how often a character arrives.
func (b *BootLoader) faulty(k byte) int {
	if k == 3 {
		return 1
	}
	b.keys++
	if b.NoiseAt > 0 && b.keys%b.NoiseAt == 0 {
		b.Say(b.Noise)
	}
	switch {
	case b.Faults > 0 && b.hits >= b.Faults:
	case b.Drop > 0 && b.keys%b.Drop == 0:
		b.hits++
		return 0
	case b.Double > 0 && b.keys%b.Double == 0:
		b.hits++
		return 2
	}
	return 1
}

// Say prints; what nobody reads is lost.
func (b *BootLoader) Say(s string) {
	b.mu.Lock()
	c := b.line
	b.mu.Unlock()
	if c == nil || s == "" {
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, s)
}

// Wait passes time inside a command, and reports false at power-off.
func (b *BootLoader) Wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// Restart makes Run's false a reset of the machine.
func (b *BootLoader) Restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Sessions++
}

// Typed lists the commands that were given to the loader.
func (b *BootLoader) Typed() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.typed...)
}

// Lost is what was typed at a system that did not ask for it.
func (b *BootLoader) Lost() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}
