package console

import (
	"fmt"
	"regexp"
)

// Line is how a serial line is set.
type Line struct {
	Baud   int    `hcl:"baud,optional" doc:"bits per second (serial: default 115200; telnet: what the server has)"`
	Format string `hcl:"format,optional" doc:"data bits, parity (N, E, O, M, S) and stop bits (serial: default \"8N1\"; telnet: what the server has)"`
	Flow   string `hcl:"flow,optional" doc:"flow control: \"none\", \"rtscts\" or \"xonxoff\" (serial: default none; telnet: what the server has)"`
}

// format is a Format taken apart; zero fields are not set.
type format struct {
	data   int
	parity byte
	stop   int
}

var formatText = regexp.MustCompile(`^([5-8])([NEOMS])([12])$`)

// parse takes the settings apart and refuses what no line has.
func (l Line) parse() (format, error) {
	if l.Baud < 0 || l.Baud > 0 && l.Baud < 50 || l.Baud > 12_000_000 {
		return format{}, fmt.Errorf("baud = %d: want 50 to 12000000", l.Baud)
	}
	switch l.Flow {
	case "", "none", "rtscts", "xonxoff":
	default:
		return format{}, fmt.Errorf("flow = %q: want none, rtscts or xonxoff", l.Flow)
	}
	if l.Format == "" {
		return format{}, nil
	}
	m := formatText.FindStringSubmatch(l.Format)
	if m == nil {
		return format{}, fmt.Errorf("format = %q: want data bits, parity and stop bits, as in 8N1 or 7E1", l.Format)
	}
	return format{data: int(m[1][0] - '0'), parity: m[2][0], stop: int(m[3][0] - '0')}, nil
}
