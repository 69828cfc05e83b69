package main

// keys finds the commands of a person in what is typed: ~ after the beginning
// of a line, as in ssh(1) and cu(1).
type keys struct {
	inLine bool // something was typed since the last Enter
	tilde  bool // a ~ that may begin a command is held back
}

// keyCommand is what a person wants of us.
type keyCommand byte

const (
	keyNone  keyCommand = iota
	keyLeave            // ~.
	keyBreak            // ~b
	keyHelp             // ~?
)

// add takes a byte and returns what is to be passed on, and a command.
func (k *keys) add(c byte) (pass []byte, cmd keyCommand) {
	if k.tilde {
		k.tilde = false
		switch c {
		case '.':
			return nil, keyLeave
		case 'b', 'B':
			return nil, keyBreak
		case '?':
			return nil, keyHelp
		case '~':
			k.inLine = true
			return []byte{'~'}, keyNone
		}
		k.inLine = c != '\r' && c != '\n'
		return []byte{'~', c}, keyNone
	}
	if c == '~' && !k.inLine {
		k.tilde = true
		return nil, keyNone
	}
	k.inLine = c != '\r' && c != '\n'
	return []byte{c}, keyNone
}
