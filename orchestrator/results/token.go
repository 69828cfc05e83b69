package results

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// other decodes a value of a rarer kind with encoding/json.
func (d *decoder) other(to any, place int) int {
	d.check(json.Unmarshal(d.raw(), to))
	return place
}

func (d *decoder) check(err error) { d.bad = d.bad || err != nil }

// take consumes one byte that must be there.
func (d *decoder) take(c byte) bool {
	if d.i < len(d.b) && d.b[d.i] == c {
		d.i++
		return true
	}
	return false
}

// object reads fields in the order of writing, each at most once.
func (d *decoder) object(field func(key string) int) {
	d.bad = d.bad || !d.take('{')
	for last := 0; !d.bad; {
		if last == 0 && d.take('}') {
			return
		}
		key := d.token()
		if d.bad || !d.take(':') {
			d.bad = true
			return
		}
		place := field(string(key))
		if place <= last {
			d.bad = true
			return
		}
		last = place
		if d.take('}') {
			return
		}
		d.bad = d.bad || !d.take(',')
	}
}

func (d *decoder) list(item func()) {
	d.bad = d.bad || !d.take('[')
	if d.take(']') {
		return
	}
	for !d.bad {
		item()
		if d.take(']') {
			return
		}
		d.bad = d.bad || !d.take(',')
	}
}

// token is a string without escapes, its quotes taken off. It is only good until
// the line is.
func (d *decoder) token() []byte {
	if d.bad || !d.take('"') {
		d.bad = true
		return nil
	}
	from := d.i
	for ; d.i < len(d.b); d.i++ {
		switch c := d.b[d.i]; {
		case c == '"':
			d.i++
			return d.b[from : d.i-1]
		case c == '\\', c < ' ':
			d.bad = true
			return nil
		}
	}
	d.bad = true
	return nil
}

// text is a string; one with escapes is left to encoding/json.
func (d *decoder) text() string {
	from := d.i
	t := d.token()
	if d.bad || !utf8.Valid(t) {
		if from >= len(d.b) || d.b[from] != '"' {
			return ""
		}
		d.i, d.bad = from, false
		var s string
		d.check(json.Unmarshal(d.raw(), &s))
		return d.kept(s)
	}
	if s, ok := d.texts[string(t)]; ok {
		return s
	}
	return d.kept(string(t))
}

// kept is s, one copy of it in all records.
func (d *decoder) kept(s string) string {
	if k, ok := d.texts[s]; ok {
		return k
	}
	if len(s) <= longText && len(d.texts) < mostTexts {
		d.texts[s] = s
	}
	return s
}

func (d *decoder) bool() bool {
	for _, w := range []string{"true", "false"} {
		if bytes.HasPrefix(d.b[d.i:], []byte(w)) {
			d.i += len(w)
			return w == "true"
		}
	}
	d.bad = true
	return false
}

// number is the text of a JSON number.
func (d *decoder) number() []byte {
	from := d.i
	for d.i < len(d.b) && inNumber(d.b[d.i]) {
		d.i++
	}
	n := d.b[from:d.i]
	d.bad = d.bad || !plainNumber(n)
	return n
}

func inNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// plainNumber: as JSON has it, "-" and a point with digits around it; any other
// form is left to encoding/json.
func plainNumber(n []byte) bool {
	if len(n) > 0 && n[0] == '-' {
		n = n[1:]
	}
	if len(n) == 0 || n[0] < '0' || n[0] > '9' || n[0] == '0' && len(n) > 1 && n[1] != '.' && n[1] != 'e' && n[1] != 'E' {
		return false
	}
	last := n[len(n)-1]
	return last >= '0' && last <= '9' && !bytes.Contains(n, []byte(".e")) && !bytes.Contains(n, []byte(".E"))
}

func (d *decoder) int() int {
	v, err := strconv.ParseInt(string(d.number()), 10, 64)
	d.check(err)
	return int(v)
}

func (d *decoder) float() float64 {
	v, err := strconv.ParseFloat(string(d.number()), 64)
	d.check(err)
	if math.IsInf(v, 0) {
		d.bad = true
	}
	return v
}

// raw is the next value whole.
func (d *decoder) raw() []byte {
	from, depth := d.i, 0
	for ; d.i < len(d.b); d.i++ {
		switch d.b[d.i] {
		case '"':
			if !d.skipText() {
				d.bad = true
				return nil
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				return d.b[from:d.i]
			}
			continue
		default:
			continue
		}
		if depth < 0 { // the end of what the value is in
			return d.b[from:d.i]
		}
		if depth == 0 {
			d.i++
			return d.b[from:d.i]
		}
	}
	return d.b[from:d.i]
}

// skipText goes to the closing quote of a string.
func (d *decoder) skipText() bool {
	for d.i++; d.i < len(d.b); d.i++ {
		switch d.b[d.i] {
		case '\\':
			d.i++
		case '"':
			return true
		}
	}
	return false
}
