package console

import "bytes"

// echoed reports whether got is the echo of line, with nothing but whole foreign
// lines in between: what a kernel or the loader itself prints while somebody
// types. A lost or a doubled character is no echo. Behind a foreign line the
// loader may show its prompt and the line so far again.
func echoed(line, got []byte, prompt func([]byte) int) bool {
	m := echoMatch{line: line, got: got, prompt: prompt, dead: map[[2]int]bool{}}
	return m.from(0, 0)
}

// echoMatch is a search with a memory of its dead ends.
type echoMatch struct {
	line, got []byte
	prompt    func([]byte) int // length of the prompt at the begin of a text, 0 none
	dead      map[[2]int]bool
}

// from matches line[i:] with got[j:].
func (m *echoMatch) from(i, j int) bool {
	start := [2]int{i, j}
	for i < len(m.line) && j < len(m.got) && m.got[j] == m.line[i] {
		if m.foreign(i, j) {
			return true
		}
		i, j = i+1, j+1
	}
	if i == len(m.line) && j == len(m.got) {
		return true
	}
	if m.dead[start] {
		return false
	}
	m.dead[start] = true
	return m.foreign(i, j)
}

// foreign matches line[i:] behind the foreign text that begins at got[j] and ends
// with a line's end.
func (m *echoMatch) foreign(i, j int) bool {
	if m.dead[[2]int{-1 - i, j}] {
		return false
	}
	m.dead[[2]int{-1 - i, j}] = true
	n := bytes.IndexByte(m.got[j:], '\n')
	if n < 0 {
		return false
	}
	j += n + 1
	if m.from(i, j) {
		return true
	}
	k := m.prompt(m.got[j:])
	return k > 0 && bytes.HasPrefix(m.got[j+k:], m.line[:i]) && m.from(i, j+k+i)
}
