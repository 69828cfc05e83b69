package tui

import (
	"bytes"
	"fmt"

	"kernsweep/orchestrator/live"
)

const longestPart = 8 << 10 // bytes of a line that does not end

// console is the console of one boot of a lane, as it is shown.
type console struct {
	pager
	lane      string
	boot      int
	recording *live.Recording
	part      []byte // a line that is not whole yet
	err       error
}

// openConsole shows the console of the selected lane.
func (m *model) openConsole() {
	l, ok := m.selected()
	if !ok {
		return
	}
	m.mode = showConsole
	m.console = &console{pager: pager{follow: true, found: -1}, lane: l.Name, boot: l.Boot, recording: m.src.Console(l.Name, l.Boot)}
}

// turnConsole goes on with the next boot of the lane that is shown.
func (m *model) turnConsole() {
	c := m.console
	l, ok := m.selected()
	if c == nil || !ok || l.Name != c.lane || l.Boot == c.boot {
		return
	}
	c.flush()
	c.boot, c.recording = l.Boot, m.src.Console(l.Name, l.Boot)
	c.add(fmt.Sprintf("--- boot %d, kernel %s ---", l.Boot, l.Kernel))
}

// take takes bytes of the console in.
func (c *console) take(b []byte, err error) {
	c.err = err
	c.part = append(c.part, b...)
	var lines []string
	for {
		line, rest, ended := bytes.Cut(c.part, []byte{'\n'})
		if !ended {
			break
		}
		lines = append(lines, live.ConsoleLine(line))
		c.part = rest
	}
	c.add(lines...)
	if len(c.part) > longestPart {
		c.flush()
	}
	c.tail = live.ConsoleLine(c.part)
}

// flush ends a line that does not end by itself.
func (c *console) flush() {
	if len(c.part) > 0 {
		c.add(live.ConsoleLine(c.part))
	}
	c.part, c.tail = nil, ""
}
