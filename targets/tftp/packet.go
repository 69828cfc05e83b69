// Package tftp is a read-only TFTP server for boot loaders: RFC 1350 with the
// options of RFC 2347 to 2349 and the windows of RFC 7440. It serves files by the
// names it was given, each from its own path, and nothing else: a request's name
// is looked up and never becomes part of a path.
package tftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"
)

// Operations (RFC 1350 section 5, RFC 2347).
const (
	opRead  = 1
	opWrite = 2
	opData  = 3
	opAck   = 4
	opError = 5
	opOack  = 6
)

// Error codes (RFC 1350 appendix, RFC 2347).
const (
	errOther    = 0
	errNotFound = 1
	errAccess   = 2
	errIllegal  = 4
	errUnknown  = 5 // transfer ID
	errOptions  = 8
)

// Limits of the options.
const (
	plainBlock = 512
	mostBlock  = 65464 // RFC 2348
	mostWindow = 64    // blocks; more only fills the buffers of switches
	mostName   = 255   // bytes
)

var errMalformed = errors.New("malformed request")

// request is a read or write request.
type request struct {
	op      uint16
	name    string
	mode    string   // lower case
	options []option // in the client's order, each name once
}

type option struct{ name, value string }

// parseRequest reads a request. What follows the last complete option is ignored:
// some loaders pad.
func parseRequest(b []byte) (request, error) {
	if len(b) < 2 {
		return request{}, errMalformed
	}
	r := request{op: binary.BigEndian.Uint16(b)}
	if r.op != opRead && r.op != opWrite {
		return request{}, errMalformed
	}
	fields := bytes.Split(b[2:], []byte{0})
	if len(fields) < 3 || len(fields[0]) == 0 || len(fields[0]) > mostName {
		return request{}, errMalformed // a name and a mode, each with its end
	}
	r.name, r.mode = string(fields[0]), strings.ToLower(string(fields[1]))
	fields = fields[2 : len(fields)-1]
	for len(fields) >= 2 {
		o := option{strings.ToLower(string(fields[0])), string(fields[1])}
		if o.name != "" && !r.has(o.name) {
			r.options = append(r.options, o)
		}
		fields = fields[2:]
	}
	return r, nil
}

func (r request) has(name string) bool {
	for _, o := range r.options {
		if o.name == name {
			return true
		}
	}
	return false
}

// key is a name without the spellings that loaders give it: "/a", "./a", "\a".
func key(name string) string {
	return path.Clean("/" + strings.ReplaceAll(name, `\`, "/"))[1:]
}

// terms are what client and server agreed on.
type terms struct {
	block, window int
	timeout       time.Duration // 0: the server's own
	oack          []byte        // nil: no option was accepted
}

// agree accepts options. fits is the largest block that needs no fragments on its
// way; a client that asks for more gets that. Options that are unknown or out of
// range are left out of the answer, as RFC 2347 wants it.
func (r request) agree(size int64, fits int) terms {
	t := terms{block: plainBlock, window: 1}
	accept := func(name string, value int64) {
		if t.oack == nil {
			t.oack = []byte{0, opOack}
		}
		t.oack = append(append(t.oack, name...), 0)
		t.oack = append(strconv.AppendInt(t.oack, value, 10), 0)
	}
	for _, o := range r.options {
		v, err := strconv.ParseInt(o.value, 10, 64)
		if err != nil || v < 0 {
			continue
		}
		switch o.name {
		case "blksize":
			if v >= 8 {
				t.block = int(min(v, int64(max(fits, plainBlock)), mostBlock))
				accept(o.name, int64(t.block))
			}
		case "windowsize":
			if v >= 1 {
				t.window = int(min(v, mostWindow))
				accept(o.name, int64(t.window))
			}
		case "timeout":
			if v >= 1 && v <= 255 {
				t.timeout = time.Duration(v) * time.Second
				accept(o.name, v)
			}
		case "tsize":
			accept(o.name, size)
		}
	}
	return t
}

// errorPacket says why; clients show the text.
func errorPacket(code uint16, text string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0, opError}, code)
	return append(append(b, text...), 0)
}

// readError gives the text of a client's error packet, in printable characters.
func readError(b []byte) (code uint16, text string) {
	code = binary.BigEndian.Uint16(b[2:])
	msg, _, _ := bytes.Cut(b[4:], []byte{0})
	if len(msg) > 120 {
		msg = msg[:120]
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(msg))
	if text == "" {
		text = "error " + strconv.Itoa(int(code))
	}
	return code, text
}
