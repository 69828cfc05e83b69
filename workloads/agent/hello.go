package agent

// hello is what a client of stream says first on every connection.
type hello struct {
	send         bool // by the client
	streams      int
	milliseconds int64
}

func (h hello) bytes() []byte {
	b := append([]byte(helloMagic), 'r', 0)
	if h.send {
		b[8] = 's'
	}
	b = append(b, byte(h.streams>>8), byte(h.streams))
	return append(b, byte(h.milliseconds>>24), byte(h.milliseconds>>16), byte(h.milliseconds>>8), byte(h.milliseconds))
}

func parseHello(b []byte) (h hello, ok bool) {
	if len(b) != helloBytes || string(b[:8]) != helloMagic || (b[8] != 's' && b[8] != 'r') {
		return h, false
	}
	h = hello{b[8] == 's', int(b[10])<<8 | int(b[11]), int64(b[12])<<24 | int64(b[13])<<16 | int64(b[14])<<8 | int64(b[15])}
	return h, h.streams >= 1 && h.streams <= mostStreams && h.milliseconds > 0
}
