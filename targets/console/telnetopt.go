package console

import "encoding/binary"

// Telnet's commands (RFC 854) and the options we know.
const (
	se   = 240
	brk  = 243
	sb   = 250
	will = 251
	wont = 252
	do   = 253
	dont = 254
	iac  = 255

	optBinary  = 0  // RFC 856
	optEcho    = 1  // RFC 857
	optSGA     = 3  // RFC 858
	optComPort = 44 // RFC 2217
)

// Commands of RFC 2217 from us to the server; the server's answers are 100
// more.
const (
	setBaud         = 1
	setData         = 2
	setParity       = 3
	setStop         = 4
	setControl      = 5
	answerOffset    = 100
	controlFlowNone = 1
	controlXonXoff  = 2
	controlHardware = 3
	controlBreakOn  = 5
	controlBreakOff = 6
)

// optionState is one end's use of an option by RFC 1143. Nothing that was asked
// for is taken back, so its queue bit is not needed.
type optionState uint8

const (
	optionOff optionState = iota
	optionAsked
	optionOn
)

// decoder takes a telnet stream apart, byte by byte.
type decoder struct {
	in   uint8  // state
	cr   bool   // the byte before was a CR in NVT mode
	verb byte   // WILL, WONT, DO, DONT or SB: of the event
	opt  byte   // of the event
	sub  []byte // of a subnegotiation, its option included
}

// States of the decoder.
const (
	inData = iota
	inCommand
	inOption
	inSub
	inSubCommand
)

// maxSub bounds a subnegotiation; a longer one is not for us.
const maxSub = 512

// add takes a byte. data says that it is the line's; event that a command with
// an option is complete in verb, opt and sub. binary: the server sends 8-bit
// data, so a NUL after a CR is data too.
func (d *decoder) add(c byte, binary bool) (data, event bool) {
	switch d.in {
	case inCommand:
		d.in = inData
		switch c {
		case iac:
			d.cr = false
			return true, false
		case will, wont, do, dont:
			d.verb, d.in = c, inOption
		case sb:
			d.sub, d.in = d.sub[:0], inSub
		} // the others say nothing to us
	case inOption:
		d.opt, d.in = c, inData
		return false, true
	case inSub:
		switch {
		case c == iac:
			d.in = inSubCommand
		case len(d.sub) < maxSub:
			d.sub = append(d.sub, c)
		}
	case inSubCommand:
		switch c {
		case iac:
			d.in = inSub
			if len(d.sub) < maxSub {
				d.sub = append(d.sub, c)
			}
		case se:
			d.verb, d.in = sb, inData
			return false, len(d.sub) > 0 && len(d.sub) < maxSub
		default: // the end is missing: what follows IAC is a command
			d.in = inCommand
			return d.add(c, binary)
		}
	default:
		if c == iac {
			d.in = inCommand
			return false, false
		}
		padding := d.cr && c == 0 && !binary
		d.cr = c == '\r'
		return !padding, false
	}
	return false, false
}

// react answers the decoder's event. The caller holds mu. An answer is given to
// a change only, so two ends cannot answer each other without end.
func (t *telnetLine) react() []byte {
	var out []byte
	switch o := t.in.opt; t.in.verb {
	case will, wont:
		out = answer(&t.him[o], t.in.verb == will, o == optBinary || o == optEcho || o == optSGA, o, do, dont)
	case do, dont:
		before := t.us[o]
		out = answer(&t.us[o], t.in.verb == do, o == optBinary || o == optSGA || o == optComPort, o, will, wont)
		if o == optComPort && before != optionOn && t.us[o] == optionOn {
			for _, s := range t.set {
				out = append(out, s.bytes()...)
			}
		}
	case sb:
		t.subnegotiation(t.in.sub)
	}
	return append(out, t.wishes()...)
}

// answer is RFC 1143's table: the peer wants s on or off, and we accept or not.
func answer(s *optionState, wantOn, accept bool, opt, yes, no byte) []byte {
	was := *s
	switch {
	case wantOn && was == optionAsked:
		*s = optionOn
	case wantOn && was == optionOff && accept:
		*s = optionOn
		return []byte{iac, yes, opt}
	case wantOn && was == optionOff:
		return []byte{iac, no, opt}
	case !wantOn:
		*s = optionOff
		if was == optionOn {
			return []byte{iac, no, opt}
		}
	}
	return nil
}

// wishes are the options we ask for, once.
func (t *telnetLine) wishes() []byte {
	if t.begun {
		return nil
	}
	t.begun = true
	var out []byte
	for _, w := range [...]struct {
		s         *optionState
		verb, opt byte
	}{
		{&t.him[optSGA], do, optSGA}, {&t.us[optSGA], will, optSGA},
		{&t.him[optBinary], do, optBinary}, {&t.us[optBinary], will, optBinary},
		{&t.us[optComPort], will, optComPort},
	} {
		if *w.s == optionOff {
			*w.s = optionAsked
			out = append(out, iac, w.verb, w.opt)
		}
	}
	return out
}

// begin sends our wishes to a server that has not spoken.
func (t *telnetLine) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.wishes(); w != nil {
		_, _ = t.send(w) // a dead connection shows in the next read
	}
}

func (t *telnetLine) state(of *[256]optionState, opt byte) optionState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return of[opt]
}

// setting is one property of the line in RFC 2217's numbers.
type setting struct {
	name      string
	command   byte
	want, got uint32
	answered  bool
}

// lineSettings are the settings that the configuration names.
func lineSettings(l Line, f format) []setting {
	var out []setting
	add := func(name string, command byte, value uint32) {
		out = append(out, setting{name: name, command: command, want: value})
	}
	if l.Baud > 0 {
		add("baud", setBaud, uint32(l.Baud))
	}
	if l.Format != "" {
		parity := map[byte]uint32{'N': 1, 'O': 2, 'E': 3, 'M': 4, 'S': 5}[f.parity]
		add("data bits", setData, uint32(f.data))
		add("parity (1 none, 2 odd, 3 even, 4 mark, 5 space)", setParity, parity)
		add("stop bits", setStop, uint32(f.stop))
	}
	if flow := map[string]uint32{"none": controlFlowNone, "xonxoff": controlXonXoff, "rtscts": controlHardware}[l.Flow]; flow > 0 {
		add("flow control (1 none, 2 XON/XOFF, 3 RTS/CTS)", setControl, flow)
	}
	return out
}

// bytes is the request.
func (s setting) bytes() []byte {
	if s.command == setBaud {
		return comPort(setBaud, binary.BigEndian.AppendUint32(nil, s.want)...)
	}
	return comPort(s.command, byte(s.want))
}

// comPort is a subnegotiation of RFC 2217.
func comPort(command byte, value ...byte) []byte {
	out := []byte{iac, sb, optComPort, command}
	for _, c := range value {
		out = append(out, c)
		if c == iac {
			out = append(out, iac)
		}
	}
	return append(out, iac, se)
}

// subnegotiation takes a server's answer about the line.
func (t *telnetLine) subnegotiation(b []byte) {
	if b[0] != optComPort || len(b) < 3 || b[1] < answerOffset {
		return
	}
	got := uint32(b[2])
	if b[1] == answerOffset+setBaud {
		if len(b) != 6 {
			return
		}
		got = binary.BigEndian.Uint32(b[2:])
	}
	if b[1] == answerOffset+setControl && (got < controlFlowNone || got > controlHardware) {
		return // it tells of its DTR, RTS or a break
	}
	for i := range t.set {
		if s := &t.set[i]; b[1] == answerOffset+s.command && !s.answered {
			s.got, s.answered = got, true
		}
	}
}
